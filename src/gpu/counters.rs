//! What a batch does on a device, counted.

/// What a batch cost; tests hold it to what ARCHITECTURE.md promises.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Copies from host to device.
    pub uploads: u32,
    /// Copies from device to host.
    pub downloads: u32,
    /// Copies within the device.
    pub copies: u32,
    /// Kernels launched.
    pub launches: u32,
    /// Times the host waited for the device.
    pub waits: u32,
    /// Pieces of host memory pinned for uploads: none once batches are like those before.
    pub pinned: u32,
}
