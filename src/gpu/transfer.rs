//! Copies that no batch records: tensors of requests that arrived in device memory and are needed on the host, and
//! outputs that a client wants in memory that a batch cannot write. It must not know requests.

use std::sync::Arc;

use cudarc::driver::result;

use super::context::driver_error;
use super::counters::Counters;
use super::device::Stream;
use super::retention::Reused;
use super::staging::Pinned;
use crate::error::{Error, Result};
use crate::memory::DeviceBytes;

/// Brings bytes from a device to the host, into pinned memory that stays for the next time.
pub struct Fetch {
    stream: Arc<Stream>,
    pinned: Reused<Pinned>,
    counters: Counters,
}

impl Fetch {
    /// Copies go through `stream`.
    pub fn new(stream: &Arc<Stream>) -> Self {
        Self { stream: Arc::clone(stream), pinned: Reused::default(), counters: Counters::default() }
    }

    /// The bytes of each source, in order: one copy each and one wait. The sources may be on any device of the process.
    ///
    /// # Errors
    /// Unavailable, when there is no memory to pin; what the driver says.
    pub fn fetch(&mut self, sources: &[DeviceBytes<'_>]) -> Result<Vec<&[u8]>> {
        self.counters = Counters::default();
        let bytes: usize = sources.iter().map(DeviceBytes::len).sum();
        // Nobody reads what the last one fetched any more.
        self.pinned.end_batch();
        let gpu = self.stream.gpu();
        let pinned = self.pinned.fit(bytes, |bytes, smaller| {
            drop(smaller);
            Pinned::new(gpu, bytes)
        })?;
        let _bound = gpu.bind()?;
        let mut rest = pinned.bytes_mut();
        let mut enqueued = Ok(());
        for source in sources.iter().filter(|source| !source.is_empty()) {
            let (target, tail) = rest.split_at_mut(source.len());
            rest = tail;
            // SAFETY: the source is there as long as its `DeviceBytes`; both stay until the stream was waited for,
            // below.
            enqueued = unsafe { result::memcpy_dtoh_async(target, source.address(), self.stream.raw()) }
                .map_err(|error| driver_error("copying a tensor to the host", error));
            if enqueued.is_err() {
                break;
            }
            self.counters.downloads += 1;
        }
        // Waited for also after a failure: what was enqueued before still writes.
        let waited = self.stream.synchronize();
        self.counters.waits += 1;
        enqueued.and(waited)?;
        let mut rest = pinned.bytes();
        let mut fetched = Vec::with_capacity(sources.len());
        for source in sources {
            let (bytes, tail) = rest.split_at(source.len());
            fetched.push(bytes);
            rest = tail;
        }
        Ok(fetched)
    }

    /// What the last fetch cost.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Stream {
    /// Copies bytes of the host to a device, all of them before one wait. The targets may be on any device of the
    /// process.
    ///
    /// # Errors
    /// Internal, when a target has another size than its bytes; what the driver says.
    pub fn put(&self, copies: &[(DeviceBytes<'_>, &[u8])]) -> Result<()> {
        if let Some((target, bytes)) = copies.iter().find(|(target, bytes)| target.len() != bytes.len()) {
            return Err(Error::internal(format!("a copy of {} bytes to {}", bytes.len(), target.len())));
        }
        let _bound = self.gpu().bind()?;
        let mut enqueued = Ok(());
        for (target, bytes) in copies.iter().filter(|(target, _)| !target.is_empty()) {
            // SAFETY: the target is there as long as its `DeviceBytes`; both sides are equally long and stay until the
            // stream was waited for, below.
            enqueued = unsafe { result::memcpy_htod_async(target.address(), bytes, self.raw()) }
                .map_err(|error| driver_error("copying an output to the device", error));
            if enqueued.is_err() {
                break;
            }
        }
        enqueued.and(self.synchronize())
    }

    /// Fills bytes of a device with zeros, and waits until they are there.
    ///
    /// # Errors
    /// What the driver says.
    pub fn clear(&self, target: &DeviceBytes<'_>) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        let _bound = self.gpu().bind()?;
        // SAFETY: the target is there as long as its `DeviceBytes`, and so until the stream was waited for, below.
        let enqueued = unsafe { result::memset_d8_async(target.address(), 0, target.len(), self.raw()) }
            .map_err(|error| driver_error("filling memory with zeros", error));
        enqueued.and(self.synchronize())
    }
}
