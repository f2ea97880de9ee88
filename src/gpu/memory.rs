//! Device memory: buffers from the device's pool, in the order of a stream. It must not know what is in them.

use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::context::driver_error;
use super::device::Stream;
use crate::error::Result;
use crate::limits;
use crate::memory::{DeviceMemory, pattern};

/// Alignment of every sample in a buffer: what a vector load of a warp likes.
pub(super) const ALIGNMENT: usize = 256;

/// Memory on a device; goes back, to the pool in the order of its stream, when it is dropped.
pub struct DeviceBuffer {
    address: sys::CUdeviceptr,
    bytes: usize,
    /// Whether it is of the pool.
    is_pooled: bool,
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
        let address =
            unsafe { result::mem_pool::alloc_async(stream.gpu().pool().raw(), bytes, stream.raw()) }
                .map_err(|error| {
                    let limit =
                        stream.gpu().pool().most().map(|most| format!(", within a limit of {most} in all"));
                    driver_error(
                        &format!("allocating {bytes} bytes on the device{}", limit.unwrap_or_default()),
                        error,
                    )
                })?;
        let buffer = Self { address, bytes, is_pooled: true, stream: Arc::clone(stream) };
        if let Some(pattern) = pattern() {
            // SAFETY: allocated with this size, in the order of the stream.
            unsafe { result::memset_d8_async(address, pattern, bytes, stream.raw()) }
                .map_err(|error| driver_error("filling memory of the device", error))?;
        }
        Ok(buffer)
    }

    /// The same for memory that many batches use: where much of it was a part of the pool, what batches around it free
    /// would not be in one piece.
    ///
    /// # Errors
    /// Unavailable, when the device has no memory.
    pub(super) fn lasting(stream: &Arc<Stream>, bytes: usize) -> Result<Self> {
        // A ceiling is the pool's.
        if bytes < limits::MIN_LASTING_BYTES || stream.gpu().pool().most().is_some() {
            return Self::new(stream, bytes);
        }
        let _bound = stream.gpu().bind()?;
        // SAFETY: nobody relies on what the memory holds.
        let address = unsafe { result::malloc_sync(bytes) }
            .map_err(|error| driver_error(&format!("allocating {bytes} bytes on the device"), error))?;
        let buffer = Self { address, bytes, is_pooled: false, stream: Arc::clone(stream) };
        if let Some(pattern) = pattern() {
            // SAFETY: allocated with this size.
            unsafe { result::memset_d8_sync(address, pattern, bytes) }
                .map_err(|error| driver_error("filling memory of the device", error))?;
        }
        Ok(buffer)
    }

    /// Where it is.
    pub fn address(&self) -> u64 {
        self.address
    }
}

// SAFETY: allocated by `new` with this size, and freed when it is dropped; both numbers stay as they are.
unsafe impl DeviceMemory for DeviceBuffer {
    fn address(&self) -> u64 {
        self.address
    }

    fn len(&self) -> usize {
        self.bytes
    }

    fn wait_for_device(&self) -> Result<()> {
        self.stream.gpu().synchronize()
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let _bound = self.stream.gpu().bind();
        if self.is_pooled {
            // SAFETY: allocated by `new`; what was put into the stream before still finds it.
            let _ = unsafe { result::free_async(self.address, self.stream.raw()) };
        } else {
            // SAFETY: allocated by `lasting`; the driver waits for the device before it goes.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
