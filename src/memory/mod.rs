//! What a batch holds: memory of the host in pools, and memory of devices, known by address and owner; what of it there
//! is room for; how bytes are copied. It must not know what the bytes mean, nor how a device is driven.

mod bounds;
mod copies;
mod counted;
mod device;
mod fallible;
mod filling;
mod host;
mod slack;
mod stuffed;

pub(crate) use bounds::{Bounds, Size, bound};
pub use copies::{SharedBytes, copied_once, copy_once, fill};
pub use counted::Counted;
pub use device::{DeviceBytes, DeviceMemory};
pub(crate) use fallible::{grow, zeroed};
#[doc(hidden)]
pub use filling::fill_with;
pub(crate) use filling::pattern;
pub use host::{ALIGNMENT, HostBuffer, HostPool, PoolLease, align_up};
pub use slack::Slack;
pub(crate) use stuffed::{Unstuffed, unstuff, unstuff_blocks, unstuffs_by_blocks};
