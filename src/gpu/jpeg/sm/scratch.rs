//! Memory on a device for groups of pictures, one after the other. It must not know what is in it.

use super::ALIGNMENT;
use crate::error::{Error, Result};
use crate::gpu::Recorder;
use crate::memory::DeviceBytes;

/// So many bytes are reserved at a time, or a multiple: batches that differ little find what others have freed.
const STEP_BYTES: usize = 64 << 20;

/// At least as many as a group has there.
const TABLES: usize = 16;

/// Memory that a group of pictures needs until it is decoded and read, and the next one behind it in the same stream
/// then.
#[derive(Default)]
pub struct Scratch {
    /// For each stream.
    streams: Vec<Part>,
}

/// Of one stream.
#[derive(Clone)]
struct Part {
    /// For the decoder: where it is, and how many bytes.
    own: (u64, usize),
    /// For pixels that somebody reads at once.
    pixels: Option<DeviceBytes<'static>>,
}

impl Scratch {
    /// Reserves for the groups of each of `streams` so many bytes, and `pixels` bytes for pixels: in one piece, as many
    /// small ones would break up what the next large batch wants.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn reserve(recorder: &mut Recorder, streams: usize, own: usize, pixels: usize) -> Result<Self> {
        // Tables of a group begin at multiples of it.
        let own = (own + TABLES * ALIGNMENT).next_multiple_of(ALIGNMENT);
        let each = own + pixels.next_multiple_of(ALIGNMENT);
        let bytes = (streams * each).next_multiple_of(STEP_BYTES);
        let buffer = recorder.allocate(bytes)?;
        let part = |number| Part {
            own: (buffer.address() + (number * each) as u64, own),
            pixels: Some(DeviceBytes::of(&buffer, number * each + own, each - own)),
        };
        Ok(Self { streams: (0..streams).map(part).collect() })
    }

    /// Where `bytes` bytes are for one group in a stream.
    ///
    /// # Errors
    /// When there is no memory.
    pub(super) fn fit(&mut self, recorder: &mut Recorder, stream: usize, bytes: usize) -> Result<u64> {
        if let Some(part) = self.streams.get(stream).filter(|part| bytes <= part.own.1) {
            return Ok(part.own.0);
        }
        let address = recorder.scratch(bytes)?;
        let none = Part { own: (0, 0), pixels: None };
        self.streams.resize(self.streams.len().max(stream + 1), none);
        let part = self.streams.get_mut(stream).ok_or_else(|| Error::internal("a stream without memory"))?;
        part.own = (address, bytes);
        Ok(address)
    }

    /// Where pixels of one group in a stream go that are read before the next.
    ///
    /// # Errors
    /// When there is no memory.
    pub fn pixels(
        &mut self,
        recorder: &mut Recorder,
        stream: usize,
        bytes: usize,
    ) -> Result<DeviceBytes<'static>> {
        let pixels = self.streams.get(stream).and_then(|part| part.pixels.as_ref());
        match pixels.filter(|pixels| bytes <= pixels.len()) {
            Some(pixels) => pixels.part(0, bytes),
            None => Ok(DeviceBytes::of(&recorder.allocate(bytes)?, 0, bytes)),
        }
    }
}
