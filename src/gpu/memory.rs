//! Device memory: buffers from the device's pool, in the order of a stream, and the bytes of one sample in one of them.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::driver_error;
use super::device::{Gpu, Stream};
use crate::error::{Error, Result};

/// Alignment of every sample in a buffer: what a vector load of a warp likes.
pub(super) const ALIGNMENT: usize = 256;

/// Memory on a device; goes back to the pool, in the order of its stream, when it is dropped.
pub struct DeviceBuffer {
    address: sys::CUdeviceptr,
    bytes: usize,
    stream: Arc<Stream>,
}

impl DeviceBuffer {
    /// At least one byte, for use in `stream` and in streams that wait for it.
    ///
    /// # Errors
    /// Unavailable, when the device has no memory.
    pub fn new(stream: &Arc<Stream>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1);
        let _bound = stream.gpu().bind()?;
        // SAFETY: pool and stream are valid; nobody relies on what the memory holds.
        let address = unsafe { result::mem_pool::alloc_async(stream.gpu().pool(), bytes, stream.raw()) }
            .map_err(|error| {
                let limit =
                    stream.gpu().most_bytes().map(|most| format!(", within a limit of {most} in all"));
                driver_error(
                    &format!("allocating {bytes} bytes on the device{}", limit.unwrap_or_default()),
                    error,
                )
            })?;
        Ok(Self { address, bytes, stream: Arc::clone(stream) })
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// The device.
    pub fn gpu(&self) -> &Arc<Gpu> {
        self.stream.gpu()
    }

    /// How large it is.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Never: it has at least a byte.
    pub fn is_empty(&self) -> bool {
        false
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let _bound = self.stream.gpu().bind();
        // SAFETY: allocated by `new`; what was put into the stream before still finds it.
        let _ = unsafe { result::free_async(self.address, self.stream.raw()) };
    }
}

/// The bytes of one sample on a device.
#[derive(Clone)]
pub struct DeviceBytes {
    address: u64,
    bytes: usize,
    /// What keeps the memory; `None`: a request or a response, which outlives the batch.
    owner: Option<Arc<DeviceBuffer>>,
}

impl DeviceBytes {
    /// `bytes` bytes of `owner` from `offset` on.
    ///
    /// # Panics
    /// When they are not inside of it.
    pub fn of(owner: &Arc<DeviceBuffer>, offset: usize, bytes: usize) -> Self {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= owner.len()), "outside of its buffer");
        Self { address: owner.address + offset as u64, bytes, owner: Some(Arc::clone(owner)) }
    }

    /// `bytes` of these bytes from `offset` on.
    ///
    /// # Errors
    /// Internal, when they are not inside.
    pub fn part(&self, offset: usize, bytes: usize) -> Result<Self> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(Error::internal(format!("{bytes} bytes from {offset} on of {}", self.bytes)));
        }
        Ok(Self { address: self.address + offset as u64, bytes, owner: self.owner.clone() })
    }

    /// Bytes in memory that the caller keeps until the batch is done.
    pub fn foreign(address: u64, bytes: usize) -> Self {
        Self { address, bytes, owner: None }
    }

    /// Where they are.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// What keeps them, when it is one of our buffers.
    pub fn owner(&self) -> Option<&Arc<DeviceBuffer>> {
        self.owner.as_ref()
    }
}
