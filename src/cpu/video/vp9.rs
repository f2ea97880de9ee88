//! VP9 by the crate `rusty_vp9`. Its colours are converted as BT.601 whatever the stream says, which is what DALI does.

use std::collections::VecDeque;

use rusty_vp9::{
    BitReader, DecodedFrame, Error as Cause, FrameHeader, Vp9Decoder, parse_uncompressed_header,
};

use super::budget::{Budget, Cost};
use super::decoder::{Picture, VideoDecoder, check_size, damaged};
use crate::cpu::yuv::{self, Color, Layout, Matrix, Planes, TakeRow};
use crate::deadline::Watch;
use crate::error::{Error, Result};

/// See [`Cost`].
pub(super) const COST: Cost = Cost { pixel: 4.0, byte: 40.0 };

/// References that a stream may hold.
pub(super) const SLOTS: usize = 8;
/// Frames beside them: the one at work, and two whose memory is used again.
pub(super) const BESIDE: usize = 3;

/// The number of the colour space that is no luma and chroma.
const RGB: u32 = 7;

/// Samples that the crate has beyond a picture's sides.
const BEYOND: usize = 64 + 8;
/// Bytes that are known of each block of 8 x 8 pixels, of this frame and the one before.
const BLOCK: usize = 96;

/// How large frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) size: [usize; 2],
    /// Whether chroma has half as many columns and rows.
    halved: [u32; 2],
}

pub(super) struct Decoder {
    inner: Vp9Decoder,
    follower: Follower,
    ready: VecDeque<Decoded>,
}

/// What headers say, one frame after the other.
pub(super) struct Follower {
    /// Sizes of the pictures that later ones may refer to.
    references: [(u32, u32); SLOTS],
    /// By which frame each of them was made.
    made_by: [u64; SLOTS],
    frames: u64,
    /// How the frames are made of luma and chroma.
    halved: [u32; 2],
    pub(super) full_range: bool,
    /// The first frame's; larger ones are an error.
    pub(super) first: Shape,
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

impl Shape {
    /// Bytes of one frame that others may be made from.
    fn bytes(&self) -> usize {
        let [width, height] = self.size;
        let [across, down] = self.halved;
        let plane =
            |width: usize, height: usize| 2 * (width + BEYOND).next_power_of_two() * (height + BEYOND);
        plane(width, height) + 2 * plane(width.div_ceil(1 << across), height.div_ceil(1 << down))
    }

    /// Bytes of so many frames, and of `ready` ones as they are shown.
    pub(super) fn held(&self, frames: usize, ready: usize) -> usize {
        let [width, height] = self.size;
        let work = width.div_ceil(8) * height.div_ceil(8) * BLOCK;
        frames * self.bytes() + work + ready * 6 * width * height
    }
}

/// The frames of a packet: several where the last byte is the mark of an index (Annex B of VP9's specification).
///
/// # Errors
/// An index of frames that are not there.
pub(super) fn frames(packet: &[u8]) -> Result<Vec<&[u8]>> {
    let Some(index) = index(packet) else { return Ok(vec![packet]) };
    let wrong = || damaged("VP9: an index of frames that are not in their packet");
    let (mut rest, mut found) = (packet, Vec::with_capacity(index.len()));
    for size in index {
        let (frame, after) = rest.split_at_checked(size).filter(|_| size > 0).ok_or_else(wrong)?;
        if self::index(frame).is_some() {
            return Err(damaged("VP9: frames in a frame"));
        }
        found.push(frame);
        rest = after;
    }
    Ok(found)
}

/// The sizes in the index at a packet's end, if there is one.
fn index(packet: &[u8]) -> Option<Vec<usize>> {
    let mark = *packet.last()?;
    let (count, bytes) = (usize::from(mark & 7) + 1, usize::from(mark >> 3 & 3) + 1);
    let begin = packet.len().checked_sub(2 + count * bytes)?;
    if mark & 0xE0 != 0xC0 || packet.get(begin) != Some(&mark) {
        return None;
    }
    let sizes = packet.get(begin + 1..packet.len() - 1)?.chunks_exact(bytes);
    Some(sizes.map(|size| size.iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte))).collect())
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

/// How large the frames of a stream are that begins with `packet`.
fn shape(packet: &[u8]) -> Result<Shape> {
    let frame = frames(packet)?.into_iter().next().unwrap_or_default();
    let header = header(frame, &[(0, 0); SLOTS])?;
    let size = check_size([header.width as usize, header.height as usize])?;
    Ok(Shape { size, halved: [header.subsampling_x, header.subsampling_y] })
}

/// Whether the bit of a key frame's header is set that says that samples take the whole range.
fn full_range(frame: &[u8], header: &FrameHeader) -> bool {
    // Behind two bits of a mark, two of the profile (and one reserved in the last), four flags, three bytes of a mark;
    // one more bit where samples may have 10 bits; three of the colour space.
    let at = 32 + if header.profile == 3 { 1 } else { 0 } + if header.profile >= 2 { 1 } else { 0 } + 3;
    frame.get(at / 8).is_some_and(|byte| byte << (at % 8) & 0x80 != 0)
}

impl Follower {
    /// Of a stream that begins with packet `first`.
    pub(super) fn new(first: &[u8]) -> Result<Self> {
        let first = shape(first)?;
        Ok(Self {
            references: [(0, 0); SLOTS],
            made_by: [0; SLOTS],
            frames: 0,
            halved: first.halved,
            full_range: false,
            first,
        })
    }

    /// Frames that are kept to make others from.
    fn kept(&self) -> usize {
        let mut made_by = self.made_by.to_vec();
        made_by.sort_unstable();
        made_by.dedup();
        made_by.iter().filter(|frame| **frame > 0).count()
    }

    /// The header of the next frame.
    pub(super) fn header(&self, frame: &[u8]) -> Result<FrameHeader> {
        header(frame, &self.references)
    }

    fn shape(&self, header: &FrameHeader) -> Shape {
        let is_new = header.key_frame || header.intra_only;
        let halved = if is_new { [header.subsampling_x, header.subsampling_y] } else { self.halved };
        Shape { size: [header.width as usize, header.height as usize], halved }
    }

    /// Columns and rows of a frame that takes more memory than the first one.
    pub(super) fn larger(&self, header: &FrameHeader) -> Option<[usize; 2]> {
        let shape = self.shape(header);
        (!header.show_existing_frame && shape.bytes() > self.first.bytes()).then_some(shape.size)
    }

    /// Pays for a frame that is decoded next, whose header says what becomes of the references.
    pub(super) fn follow(
        &mut self,
        frame: &[u8],
        header: &FrameHeader,
        cost: Cost,
        budget: &Budget<'_>,
    ) -> Result<()> {
        if header.show_existing_frame {
            return budget.part(self.first.bytes());
        }
        let shape = self.shape(header);
        self.halved = shape.halved;
        budget.part(shape.bytes())?;
        budget.frame(shape.size, cost.of(shape.size, frame.len()))?;
        self.frames += 1;
        let refreshed = if header.key_frame { 0xFF } else { header.refresh_frame_flags };
        let slots = self.references.iter_mut().zip(&mut self.made_by).enumerate();
        for (_, (reference, made_by)) in slots.filter(|(slot, _)| refreshed & 1 << slot != 0) {
            (*reference, *made_by) = ((header.width, header.height), self.frames);
        }
        if header.key_frame {
            self.full_range = full_range(frame, header);
        }
        Ok(())
    }
}

impl Decoder {
    /// A decoder of a stream that begins with packet `first`.
    pub(super) fn new(first: &[u8]) -> Result<Self> {
        Ok(Self { inner: Vp9Decoder::new(), follower: Follower::new(first)?, ready: VecDeque::new() })
    }

    /// Pays for a frame.
    fn pay(&mut self, frame: &[u8], header: &FrameHeader, budget: &Budget<'_>) -> Result<()> {
        let follower = &mut self.follower;
        if let Some([width, height]) = follower.larger(header) {
            let [first_width, first_height] = follower.first.size;
            return Err(Error::unsupported(format!(
                "a frame of {width} x {height} pixels in a video of {first_width} x {first_height}"
            )));
        }
        if !header.show_existing_frame {
            budget.hold(follower.first.held(follower.kept() + BESIDE, self.ready.len() + 2))?;
        }
        follower.follow(frame, header, COST, budget)
    }
}

impl VideoDecoder for Decoder {
    fn send(&mut self, packet: &[u8], place: usize, budget: &Budget<'_>) -> Result<()> {
        let mut shown = None;
        // Each by itself, as the crate would take a packet apart in a way of its own.
        for frame in frames(packet)? {
            let header = self.follower.header(frame)?;
            self.pay(frame, &header, budget)?;
            self.inner.push(frame, Some(place as i64)).map_err(error)?;
            match self.inner.next_frame() {
                // Of several layers the last one is meant.
                Ok(frame) => shown = Some(Decoded { frame, full_range: self.follower.full_range }),
                // It is not shown.
                Err(Cause::Again) => {}
                Err(cause) => return Err(error(cause)),
            }
        }
        self.ready.extend(shown);
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn next(&mut self) -> Option<Box<dyn Picture>> {
        self.ready.pop_front().map(|decoded| Box::new(decoded) as Box<dyn Picture>)
    }

    fn held(&self) -> usize {
        let follower = &self.follower;
        let frames = if follower.frames == 0 { 0 } else { follower.kept() + BESIDE };
        follower.first.held(frames, self.ready.len())
    }
}

impl Picture for Decoded {
    fn place(&self) -> usize {
        self.frame.pts.and_then(|place| usize::try_from(place).ok()).unwrap_or(usize::MAX)
    }

    fn size(&self) -> [usize; 2] {
        [self.frame.width as usize, self.frame.height as usize]
    }

    fn write_rgb(&self, out: &mut [u8], _watch: &Watch<'_>) -> Result<()> {
        yuv::to_rgb(&self.frame, self.layout(), self.color(), out);
        Ok(())
    }

    fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        yuv::to_rows(&self.frame, self.layout(), self.color(), take);
        Ok(true)
    }
}

impl Decoded {
    fn layout(&self) -> Layout {
        let [width, height] = self.size();
        let halved = Some([self.frame.subsampling_x, self.frame.subsampling_y]);
        Layout { width, height, depth: self.frame.bit_depth, halved, spread: true }
    }

    fn color(&self) -> Color {
        Color { matrix: Matrix::BT601, full_range: self.full_range }
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
    shape(first).map(|shape| shape.size)
}

/// Bytes of memory that a decoder takes at most.
pub(super) fn needs(first: &[u8]) -> Result<usize> {
    shape(first).map(|shape| shape.held(SLOTS + BESIDE, 3))
}

/// Whether the samples of a key frame, and of those behind it, take the whole range.
pub(super) fn is_full_range(key: &[u8]) -> Result<bool> {
    let frame = frames(key)?.into_iter().next().unwrap_or_default();
    Ok(full_range(frame, &header(frame, &[(0, 0); SLOTS])?))
}

/// Whether a packet is a key frame.
pub(super) fn is_key(packet: &[u8]) -> bool {
    let frames = frames(packet).unwrap_or_default();
    let Some(&head) = frames.first().and_then(|frame| frame.first()) else { return false };
    // A mark of two bits, two of the profile and one more in the last one; then: shown before? no key?
    let rest = if head & 0x30 == 0x30 { head << 1 } else { head };
    head & 0xC0 == 0x80 && rest & 0x0C == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_split_as_its_index_says() {
        let two = [7, 8, 9, 0xC1, 1, 2, 0xC1];
        assert_eq!(frames(&two).unwrap(), [&[7][..], &[8, 9]]);
        assert_eq!(frames(&[7, 8]).unwrap(), [&[7, 8]]);
        // The second goes on into the index, which is no frame's.
        assert!(frames(&[7, 8, 9, 0xC1, 1, 7, 0xC1]).is_err());
        assert!(frames(&[7, 8, 9, 0xC1, 0, 2, 0xC1]).is_err());
        // An index in a frame of another index.
        assert!(frames(&[7, 0xC0, 1, 0xC0, 0xC0, 4, 0xC0]).is_err());
    }
}
