//! Motion JPEG by our own decoder of JPEGs: every frame is a picture of its own.

use super::budget::{Budget, Cost};
use super::decoder::{Picture, VideoDecoder, check_size};
use crate::cpu::decode::{self, Conditions, DecodeOptions, Decoder as Jpegs, Format};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// See [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 0.6, byte: 4.0 };

#[derive(Default)]
pub(super) struct Decoder {
    ready: std::collections::VecDeque<Frame>,
}

/// A frame, which is decoded when it is wanted.
struct Frame {
    bytes: Vec<u8>,
    size: [usize; 2],
    place: usize,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self::default()
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        let size = size(packet)?;
        budget.hold(self.held() + packet.len() + needs(packet)?)?;
        budget.frame(size, COST.of(size, packet.len()))?;
        self.ready.push_back(Frame { bytes: packet.to_vec(), size, place });
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front().map(|frame| Box::new(frame) as Box<dyn Picture>)
    }

    fn held(&self) -> usize {
        self.ready.iter().map(|frame| frame.bytes.capacity()).sum()
    }
}

fn options() -> DecodeOptions {
    DecodeOptions { adjust_orientation: false, ..DecodeOptions::default() }
}

impl Picture for Frame {
    fn place(&self) -> usize {
        self.place
    }

    fn size(&self) -> [usize; 2] {
        self.size
    }

    fn write_rgb(&self, out: &mut [u8], watch: &Watch<'_>) -> Result<()> {
        Jpegs::new().decode_under(Conditions { watch, pool: None }, &self.bytes, &options(), out)
    }
}

/// Columns and rows of a frame.
pub(super) fn size(packet: &[u8]) -> Result<[usize; 2]> {
    let info = decode::probe(packet, false)?;
    if info.format != Format::Jpeg {
        return Err(Error::invalid(format!("a `{}` image as a frame of Motion JPEG", info.format)));
    }
    check_size([info.width, info.height])
}

/// Bytes of memory that decoding a frame takes at most.
pub(super) fn needs(packet: &[u8]) -> Result<usize> {
    let info = decode::probe(packet, false)?;
    Ok(decode::effort(packet, &info, &options()).scratch)
}
