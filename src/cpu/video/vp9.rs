//! VP9 by the crate `rusty_vp9`. Its colours are converted as BT.601 whatever the stream says, which is what DALI does.

use std::collections::VecDeque;

use rusty_vp9::{
    BitReader, DecodedFrame, Error as Cause, FrameHeader, Vp9Decoder, parse_uncompressed_header,
};

use super::decoder::{Picture, VideoDecoder, check_size, damaged};
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes};
use crate::error::{Error, Result};

/// References that a stream may hold.
const SLOTS: usize = 8;

/// The number of the colour space that is no luma and chroma.
const RGB: u32 = 7;

#[derive(Default)]
pub(super) struct Decoder {
    inner: Vp9Decoder,
    /// Sizes of the pictures that later ones may refer to.
    references: [(u32, u32); SLOTS],
    full_range: bool,
    ready: VecDeque<Decoded>,
}

struct Decoded {
    frame: DecodedFrame,
    full_range: bool,
}

/// The crate's error in our words.
fn error(error: Cause) -> Error {
    match error {
        Cause::Unsupported(what) => Error::unsupported(format!("VP9: {what}")),
        other => damaged(other),
    }
}

/// The frames of a packet: several where the last byte is the mark of an index (Annex B of VP9's specification).
fn frames(packet: &[u8]) -> Vec<&[u8]> {
    let split = || {
        let mark = *packet.last()?;
        let (count, bytes) = (usize::from(mark & 7) + 1, usize::from(mark >> 3 & 3) + 1);
        let begin = packet.len().checked_sub(2 + count * bytes)?;
        if mark & 0xE0 != 0xC0 || packet[begin] != mark {
            return None;
        }
        let index = packet.get(begin + 1..packet.len() - 1)?;
        let (mut at, mut found) = (0, Vec::with_capacity(count));
        for size in index.chunks_exact(bytes) {
            let size = size.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte));
            found.push(packet.get(at..at + size)?);
            at += size;
        }
        Some(found)
    };
    split().unwrap_or_else(|| vec![packet])
}

/// Reads a frame's header, and lets it pass if its picture is not too large.
fn header(frame: &[u8], references: &[(u32, u32); SLOTS]) -> Result<FrameHeader> {
    let header = parse_uncompressed_header(&mut BitReader::new(frame), references).map_err(error)?;
    if !header.show_existing_frame {
        check_size([header.width as usize, header.height as usize])?;
    }
    if header.color_space == RGB {
        return Err(Error::unsupported("VP9 of red, green and blue"));
    }
    Ok(header)
}

/// Whether the bit of a key frame's header is set that says that samples take the whole range.
fn full_range(frame: &[u8], header: &FrameHeader) -> bool {
    // Behind two bits of a mark, two of the profile (and one reserved in the last), four flags, three bytes of a mark; one more bit where
    // samples may have 10 bits; three of the colour space.
    let at = 32 + if header.profile == 3 { 1 } else { 0 } + if header.profile >= 2 { 1 } else { 0 } + 3;
    frame.get(at / 8).is_some_and(|byte| byte << (at % 8) & 0x80 != 0)
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self::default()
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize) -> Result<()> {
        let frames = frames(packet);
        for frame in frames.iter().filter(|frame| !frame.is_empty()) {
            let header = header(frame, &self.references)?;
            if header.key_frame {
                self.full_range = full_range(frame, &header);
            }
            let refreshed = if header.key_frame { 0xFF } else { header.refresh_frame_flags };
            for (slot, reference) in self.references.iter_mut().enumerate() {
                if refreshed & 1 << slot != 0 && !header.show_existing_frame {
                    *reference = (header.width, header.height);
                }
            }
        }
        self.inner.push(packet, Some(place as i64)).map_err(error)?;
        for _ in frames {
            match self.inner.next_frame() {
                Ok(frame) => self.ready.push_back(Decoded { frame, full_range: self.full_range }),
                // A frame that is not shown; there may be more in the packet.
                Err(Cause::Again) => {}
                Err(cause) => return Err(error(cause)),
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front().map(|decoded| Box::new(decoded) as Box<dyn Picture>)
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.frame.pts.and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX)
    }

    fn size(&self) -> [usize; 2] {
        [self.frame.width as usize, self.frame.height as usize]
    }

    fn write_rgb(&self, out: &mut [u8]) -> Result<()> {
        let [width, height] = self.size();
        let halved = Some([self.frame.subsampling_x, self.frame.subsampling_y]);
        let layout = Layout { width, height, depth: self.frame.bit_depth, halved, spread: true };
        yuv::to_rgb(&self.frame, layout, Color { matrix: Matrix::BT601, full_range: self.full_range }, out);
        Ok(())
    }
}

impl Planes for DecodedFrame {
    fn read(&self, plane: usize, y: usize, row: &mut [u16]) {
        let (Some(samples), Some(stride)) = (self.planes.get(plane), self.strides.get(plane)) else { return };
        let samples = samples.get(y * stride..).unwrap_or_default();
        if self.bit_depth == 8 {
            row.iter_mut().zip(samples).for_each(|(to, from)| *to = u16::from(*from));
        } else {
            row.iter_mut().zip(samples.as_chunks().0).for_each(|(to, from)| *to = u16::from_le_bytes(*from));
        }
    }
}

/// Columns and rows, from the first packet.
pub(super) fn size(first: &[u8]) -> Result<[usize; 2]> {
    let frame = frames(first).into_iter().next().unwrap_or_default();
    let header = header(frame, &[(0, 0); SLOTS])?;
    Ok([header.width as usize, header.height as usize])
}

/// Whether the samples of a key frame, and of those behind it, take the whole range.
pub(super) fn is_full_range(key: &[u8]) -> Result<bool> {
    let frame = frames(key).into_iter().next().unwrap_or_default();
    Ok(full_range(frame, &header(frame, &[(0, 0); SLOTS])?))
}

/// Whether a packet is a key frame.
pub(super) fn is_key(packet: &[u8]) -> bool {
    let Some(&head) = frames(packet).first().and_then(|frame| frame.first()) else { return false };
    // A mark of two bits, two of the profile and one more in the last one; then: shown before? no key?
    let rest = if head & 0x30 == 0x30 { head << 1 } else { head };
    head & 0xC0 == 0x80 && rest & 0x0C == 0
}
