//! Memory on a device for groups of pictures, one after the other. It must not know what is in it.

use std::sync::Arc;

use crate::error::Result;
use crate::gpu::{DeviceBuffer, Recorder};

/// Memory that a group of pictures needs until it is decoded, and the next one behind it in the same stream then.
#[derive(Default)]
pub struct Scratch {
    memory: Option<Arc<DeviceBuffer>>,
    /// Bytes from its beginning on that are used again.
    bytes: usize,
}

impl Scratch {
    /// Where `bytes` bytes are for one group, and `kept` more that no other will use, when those are not 0.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn fit(
        &mut self,
        recorder: &mut Recorder,
        bytes: usize,
        kept: usize,
    ) -> Result<(u64, Option<u64>)> {
        let own = |address: u64| (kept > 0).then_some(address);
        if let Some(memory) = self.memory.as_ref().filter(|_| bytes <= self.bytes) {
            let kept = if kept > 0 { recorder.allocate(kept)?.address() } else { 0 };
            return Ok((memory.address(), own(kept)));
        }
        let memory = recorder.allocate(bytes + kept)?;
        let address = memory.address();
        *self = Self { memory: Some(memory), bytes };
        Ok((address, own(address + bytes as u64)))
    }
}
