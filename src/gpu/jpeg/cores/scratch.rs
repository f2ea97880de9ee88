//! Memory on a device for groups of pictures, one after the other. It must not know what is in it.

use super::ALIGNMENT;
use crate::error::Result;
use crate::gpu::Recorder;
use crate::memory::DeviceBytes;

/// So many bytes are reserved at a time, or a multiple: batches that differ little find what others have freed.
const STEP_BYTES: usize = 64 << 20;

/// At least as many as a group has there.
const TABLES: usize = 16;

/// Memory that a group of pictures needs until it is decoded, and the next one behind it in the same stream then; and what groups leave to others.
#[derive(Default)]
pub struct Scratch {
    /// For each stream.
    again: Vec<DeviceBytes<'static>>,
    /// What of it no group has yet.
    kept: Option<DeviceBytes<'static>>,
}

impl Scratch {
    /// Reserves `again` bytes for the groups of each of `streams`, and `kept` for all that they leave: in one piece, as many small ones would break
    /// up what the next large batch wants.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn reserve(recorder: &mut Recorder, streams: usize, again: usize, kept: usize) -> Result<Self> {
        // Tables of a group begin at multiples of it.
        let again = (again + TABLES * ALIGNMENT).next_multiple_of(ALIGNMENT);
        let bytes = (streams * again + kept).next_multiple_of(STEP_BYTES);
        let buffer = recorder.allocate(bytes)?;
        let part = |number| DeviceBytes::of(&buffer, number * again, again);
        let first = streams * again;
        Ok(Self {
            again: (0..streams).map(part).collect(),
            kept: Some(DeviceBytes::of(&buffer, first, bytes - first)),
        })
    }

    /// Where `again` bytes are for one group in a stream, and `kept` more that no other will use, when those are not 0.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn fit(
        &mut self,
        recorder: &mut Recorder,
        stream: usize,
        again: usize,
        kept: usize,
    ) -> Result<(u64, Option<u64>)> {
        let known = self.again.get(stream).filter(|memory| again <= memory.len());
        let Some(address) = known.map(DeviceBytes::address) else {
            let memory = DeviceBytes::of(&recorder.allocate(again + kept)?, 0, again + kept);
            let address = memory.address();
            self.again.resize(self.again.len().max(stream + 1), memory.part(0, 0)?);
            self.again[stream] = memory.part(0, again)?;
            return Ok((address, (kept > 0).then_some(address + again as u64)));
        };
        if kept == 0 {
            return Ok((address, None));
        }
        let left = self.kept.take().filter(|left| kept <= left.len());
        let own = match left {
            Some(left) => left,
            None => DeviceBytes::of(&recorder.allocate(kept)?, 0, kept),
        };
        self.kept = Some(own.part(kept, own.len() - kept)?);
        Ok((address, Some(own.address())))
    }
}
