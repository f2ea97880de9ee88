//! MPEG-4 Part 2 (ISO/IEC 14496-2), as far as it is read without a decoder: sizes, colours, which frames need no
//! others, and in which order they are shown. Gesso has no decoder of it.

use std::ops::Range;

use memchr::memmem;

use super::track::Packet;
use crate::cpu::bytes::{Bits, Bytes};
use crate::error::{Error, Result};

/// Object type of an elementary stream (ISO/IEC 14496-1).
pub(super) const OBJECT_TYPE: u8 = 0x20;

/// Ends of start codes: of a layer's parameters the first and the last, of a group of frames, of a frame.
const LAYERS: [u8; 2] = [0x20, 0x2F];
const GROUP: u8 = 0xB3;
const FRAME: u8 = 0xB6;

/// What frames are made of, the first two bits behind their start codes: of themselves, of those on both sides.
const OF_NONE: u8 = 0;
const OF_BOTH_SIDES: u8 = 2;

/// Bytes of a chunk that holds nothing but the place of a frame, at most.
const LARGEST_PLACE: usize = 19;

/// End of the start code of a visual object's parameters.
const OBJECT: u8 = 0xB5;

/// The parameter `aspect_ratio_info` behind which the ratio is.
const OTHER_RATIO: u32 = 15;

/// Where a start code begins, how it ends, and what stands behind it.
fn codes(stream: &[u8]) -> impl Iterator<Item = (usize, u8, &[u8])> {
    memmem::find_iter(stream, &[0, 0, 1]).filter_map(|at| {
        let (&code, behind) = stream.get(at + 3..)?.split_first()?;
        Some((at, code, behind))
    })
}

/// What stands before the first frame of a packet: the parameters of the stream, where no container has them.
pub(super) fn parameters(packet: &[u8]) -> &[u8] {
    let end = codes(packet).find(|(_, code, _)| [GROUP, FRAME].contains(code)).map(|(at, ..)| at);
    packet.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// What the first frame of a packet is made of.
fn kind(packet: &[u8]) -> Option<u8> {
    let frame = codes(packet).find(|(_, code, _)| *code == FRAME);
    frame.and_then(|(_, _, frame)| frame.first()).map(|first| first >> 6)
}

/// Whether a packet's first frame needs no others.
pub(super) fn is_key(packet: &[u8]) -> bool {
    kind(packet) == Some(OF_NONE)
}

/// Chunks of a container that has a place for each frame that is shown, and no times. Some writers put a frame together
/// with those that are decoded behind it and shown before it, and leave frames that are nothing in their places.
#[derive(Debug, Default)]
pub(super) struct Packed {
    /// Frames that came before their places.
    early: usize,
}

impl Packed {
    /// Where the frames of the next chunk are in it, each with what stands before it.
    pub(super) fn frames(&mut self, chunk: &[u8]) -> Vec<Range<usize>> {
        let begins: Vec<usize> =
            codes(chunk).filter(|(_, code, _)| *code == FRAME).map(|(at, ..)| at).collect();
        if begins.len() == 1 && chunk.len() <= LARGEST_PLACE && self.early > 0 {
            self.early -= 1;
            return Vec::new();
        }
        self.early += begins.len().saturating_sub(1);
        let starts = begins.iter().enumerate().map(|(frame, &at)| if frame == 0 { 0 } else { at });
        let ends = begins.iter().skip(1).copied().chain([chunk.len()]);
        starts.zip(ends).map(|(start, end)| start..end).collect()
    }
}

/// Numbers packets in the order in which their frames are shown: one that is made of those on both sides at once,
/// others when the next of them comes.
pub(super) fn set_times(file: &[u8], packets: &mut [Packet]) {
    let (mut waiting, mut time) = (None, 0);
    let mut show = |packet: &mut Packet| {
        packet.time = time;
        time += 1;
    };
    for number in 0..packets.len() {
        let is_between = kind(packets[number].of(file)) == Some(OF_BOTH_SIDES);
        let shown = if is_between { Some(number) } else { waiting.replace(number) };
        if let Some(packet) = shown.and_then(|shown| packets.get_mut(shown)) {
            show(packet);
        }
    }
    if let Some(packet) = waiting.and_then(|last| packets.get_mut(last)) {
        show(packet);
    }
}

/// Columns and rows of the pictures, from the parameters of a layer in `config`, or else in the `first` packet.
///
/// # Errors
/// Parameters that are missing, cut off, or of objects that are no rectangles.
pub(super) fn size(config: &[u8], first: &[u8]) -> Result<[usize; 2]> {
    let [from, to] = LAYERS;
    let layer = codes(config).chain(codes(first)).find(|(_, code, _)| (from..=to).contains(code));
    let (.., bytes) =
        layer.ok_or_else(|| Error::invalid("MPEG-4 video without the parameters of its layer"))?;
    let mut bits = Bits::behind(bytes, 9);
    if bits.flag()? {
        bits.skip(7);
    }
    if bits.read(4)? == OTHER_RATIO {
        bits.skip(16);
    }
    if bits.flag()? {
        bits.skip(3);
        if bits.flag()? {
            bits.skip(79);
        }
    }
    let shape = bits.read(2)?;
    if shape != 0 {
        return Err(Error::unsupported(format!("MPEG-4 video of shape {shape}, expected 0, a rectangle")));
    }
    bits.skip(1);
    let ticks = bits.read(16)?;
    bits.skip(1);
    if bits.flag()? {
        bits.skip((u32::BITS - ticks.saturating_sub(1).leading_zeros()).max(1) as usize);
    }
    bits.skip(1);
    let width = bits.read(13)?;
    bits.skip(1);
    Ok([width as usize, bits.read(13)? as usize])
}

/// How much each colour counts in luma, a number of ISO/IEC 23091-2, where the parameters of the visual object in
/// `config` say so.
pub(super) fn matrix(config: &[u8]) -> Option<u8> {
    let (.., bytes) = codes(config).find(|(_, code, _)| *code == OBJECT)?;
    let mut bits = Bits::behind(bytes, 0);
    let mut described = || -> Result<Option<u8>> {
        if bits.flag()? {
            bits.skip(7);
        }
        let is_picture = [1, 2].contains(&bits.read(4)?);
        if !is_picture || !bits.flag()? {
            return Ok(None);
        }
        bits.skip(4);
        if !bits.flag()? {
            return Ok(None);
        }
        bits.skip(16);
        bits.read(8).map(|matrix| Some(matrix as u8))
    };
    described().unwrap_or_default()
}

/// Object type and parameters that an `esds` box of MP4 has (ISO/IEC 14496-1): descriptors in one another, each a tag
/// and a length.
pub(in crate::cpu) fn elementary_stream(esds: &[u8]) -> Option<(u8, &[u8])> {
    let mut at = Bytes(esds.get(4..)?);
    let mut object_type = None;
    loop {
        let tag = at.u8().ok();
        let mut length = 0_usize;
        while let Ok(byte) = at.u8() {
            length = length << 7 | usize::from(byte & 0x7F);
            if byte & 0x80 == 0 {
                break;
            }
        }
        match (tag, object_type) {
            (Some(3), None) => {
                at.skip(2).ok()?;
                let flags = at.u8().ok()?;
                at.skip(if flags & 0x80 == 0 { 0 } else { 2 }).ok()?;
            }
            (Some(4), None) => {
                object_type = Some(at.u8().ok()?);
                // Rates and sizes of buffers.
                let _ = at.skip(12);
            }
            (Some(5), Some(found)) => return Some((found, at.take(length).unwrap_or_default())),
            (_, found) => return found.map(|found| (found, &[][..])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::video::track::{Codec, Track};

    /// A layer of 352 x 288 pixels at 25 frames a second, behind a visual object.
    const LAYER: [u8; 31] = [
        0, 0, 1, 0xB0, 0xF1, 0, 0, 1, 0xB5, 0xA9, 0x13, 0, 0, 1, 0, 0, 0, 1, 0x20, 0x08, 0xD4, 0x8D, 0x08,
        0x00, 0xCD, 0x0B, 0x04, 0x24, 0x14, 0x10, 0x3F,
    ];

    #[test]
    fn packets_are_taken_apart() {
        let key = [&LAYER[..], &[0, 0, 1, 0xB6, 0x10, 0x60]].concat();
        assert_eq!(parameters(&key), LAYER);
        assert!(is_key(&key) && !is_key(&[0, 0, 1, 0xB6, 0x56, 0xE2]) && !is_key(&LAYER));
        assert!(parameters(&[0, 0, 1, 0xB6, 0x10]).is_empty());
    }

    #[test]
    fn frames_are_numbered_as_they_are_shown() {
        // Of none, of one before, and of both sides.
        let [none, before, both] = [0x10, 0x50, 0x90].map(|kind| [0, 0, 1, FRAME, kind]);
        let file = [none, before, both, both, none, both, before].concat();
        let mut track = Track::new(Codec::Mpeg4);
        for start in (0..file.len()).step_by(5) {
            track.push(file.len(), start..start + 5, 0, true).unwrap();
        }
        set_times(&file, &mut track.packets);
        let times: Vec<i64> = track.packets.iter().map(|packet| packet.time).collect();
        assert_eq!(times, [0, 3, 1, 2, 5, 4, 6]);
    }

    #[test]
    fn packed_frames_are_parted_and_their_places_left_out() {
        let mut packed = Packed::default();
        let frame = [&[0, 0, 1, FRAME, 0x50][..], &[7; 30]].concat();
        let two = [&LAYER[..], &frame, &frame].concat();
        assert_eq!(packed.frames(&frame).first(), Some(&(0..35)));
        assert_eq!(packed.frames(&two), [0..66, 66..101]);
        let place = &frame[..7];
        assert_eq!(packed.frames(place), []);
        assert_eq!(packed.frames(place).first(), Some(&(0..7)), "a small frame");
        assert_eq!(packed.frames(&[]), []);
    }

    #[test]
    fn sizes_are_read_from_either_place() {
        assert_eq!(size(&LAYER, &[]).unwrap(), [352, 288]);
        assert_eq!(size(&[], &LAYER).unwrap(), [352, 288]);
        // All but what follows the size.
        for end in 0..LAYER.len() - 2 {
            assert!(size(&LAYER[..end], &[]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn colours_are_read_where_they_are_described() {
        assert_eq!(matrix(&LAYER), None);
        // Identifier, version 5, priority 1, video; a signal of format 5, limited range, described by 1, 6, 7.
        let described = [0, 0, 1, 0xB5, 0xA9, 0x1D, 0x40, 0x41, 0x81, 0xC0];
        assert_eq!(matrix(&described), Some(7));
        for end in 0..described.len() {
            assert_eq!(matrix(&described[..end]), None, "{end} bytes");
        }
    }

    #[test]
    fn descriptors_are_found_in_one_another() {
        let esds = [
            &[0, 0, 0, 0, 3, 0x80, 0x80, 0x80, 37, 0, 1, 0, 4, 0x80, 0x80, 0x80, 23, OBJECT_TYPE, 0x11][..],
            &[0; 11],
            &[5, 0x80, 0x80, 0x80, 3, 7, 8, 9, 6, 1, 2],
        ]
        .concat();
        assert_eq!(elementary_stream(&esds), Some((OBJECT_TYPE, &[7, 8, 9][..])));
        assert_eq!(elementary_stream(&esds[..18]), Some((OBJECT_TYPE, &[][..])));
        assert_eq!(elementary_stream(&esds[..17]), None);
    }
}
