//! Streams of one gray key frame, of any size: what a decoder's surfaces are painted with, so that a damaged frame
//! shows nothing of other videos. Only for codecs whose decoders do not tell of damage. It must not know decoders.
//!
//! A gray frame predicts every block from nothing and has no coefficients. In VP8 and VP9 that is what arithmetic
//! coding makes of zeros.

use super::coded_video::Codec;
use super::decoder::Shape;

/// Bits, the highest of a number first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    /// Bits of the last byte that are taken; 0: it is full.
    taken: u32,
}

impl Bits {
    /// Puts the lowest `count` bits of `value`.
    fn put(&mut self, count: u32, value: u32) {
        for place in (0..count).rev() {
            if self.taken == 0 {
                self.bytes.push(0);
            }
            let bit = (value >> place & 1) as u8;
            if let Some(last) = self.bytes.last_mut() {
                *last |= bit << (7 - self.taken);
            }
            self.taken = (self.taken + 1) % 8;
        }
    }

    /// Puts fields: their bits and values.
    fn fields(&mut self, fields: &[(u32, u32)]) {
        fields.iter().for_each(|&(count, value)| self.put(count, value));
    }

    /// Fills the last byte with ones.
    fn fill(&mut self) {
        while self.taken != 0 {
            self.put(1, 1);
        }
    }
}

/// A gray frame of `shape`; `None` for codecs that have none here.
pub(super) fn frame(shape: &Shape) -> Option<Vec<u8>> {
    const VP8: i32 = Codec::Vp8 as i32;
    const VP9: i32 = Codec::Vp9 as i32;
    const MPEG4: i32 = Codec::Mpeg4 as i32;
    match shape.codec {
        VP8 => Some(vp8(shape.width, shape.height)),
        VP9 => Some(vp9(shape)),
        MPEG4 => Some(mpeg4(shape.width, shape.height)),
        _ => None,
    }
}

/// Macroblocks, or blocks of `side` x `side` pixels.
fn blocks(width: u32, height: u32, side: u32) -> usize {
    width.div_ceil(side) as usize * height.div_ceil(side) as usize
}

/// RFC 6386, section 9.1: a tag with the size of the first partition, a start code, the sides; then two partitions of
/// zeros.
fn vp8(width: u32, height: u32) -> Vec<u8> {
    const SHOWN: u32 = 1 << 4;
    let macroblocks = blocks(width, height, 16);
    // The modes of a macroblock take about four bits, its coefficients about eight; a frame's header some dozens of
    // bytes.
    let (modes, coefficients) = (macroblocks + 256, 4 * macroblocks + 64);
    let mut frame = ((modes as u32) << 5 | SHOWN).to_le_bytes()[..3].to_vec();
    frame.extend([0x9D, 0x01, 0x2A]);
    frame.extend((width as u16).to_le_bytes());
    frame.extend((height as u16).to_le_bytes());
    frame.resize(frame.len() + modes + coefficients, 0);
    frame
}

/// VP9's specification, sections 6.2 to 6.4: an uncompressed header; then zeros, a compressed header and the tiles.
fn vp9(shape: &Shape) -> Vec<u8> {
    const COMPRESSED_HEADER: u32 = 8;
    let Shape { width, height, depth, .. } = *shape;
    let mut header = Bits::default();
    let (is_whole, is_deep) = (u32::from(shape.is_planar()), u32::from(depth > 8));
    // A mark and the profile.
    header.put(2, 2);
    header.put(1, is_whole);
    header.put(1, is_deep);
    header.put(is_whole & is_deep, 0);
    // No frame that exists, a key frame, shown, resilient to errors; the start code.
    header.put(4, 0b0011);
    header.put(24, 0x49_8342);
    // Bits, BT.601 of the limited range, chroma.
    header.put(is_deep, u32::from(depth == 12));
    header.put(4, 0b0010);
    header.put(3 * is_whole, 0);
    header.put(16, width - 1);
    header.put(16, height - 1);
    // No other size to render, the first context, no loop filter, quantisation that is not lossless, no segments.
    header.put(1 + 2 + 10, 0);
    header.put(8, 1);
    header.put(3 + 1, 0);
    // As few columns of tiles as may be, and one row of them.
    let across = width.div_ceil(64);
    let columns = (0..).find(|log| 64 << log >= across).unwrap_or(0);
    let most = (1..).find(|log| across >> log < 4).unwrap_or(1) - 1;
    header.put(u32::from(columns < most), 0);
    header.put(1, 0);
    header.put(16, COMPRESSED_HEADER);
    let mut frame = header.bytes;
    frame.resize(frame.len() + COMPRESSED_HEADER as usize, 0);
    for column in 0..1 << columns {
        let begin = |column: u32| (column * across) >> columns;
        let wide = begin(column + 1) - begin(column);
        // A block of 64 x 64 takes about thirty.
        let bytes = 64 * (wide * height.div_ceil(64)) + 64;
        if column + 1 < 1 << columns {
            frame.extend(bytes.to_be_bytes());
        }
        frame.resize(frame.len() + bytes as usize, 0);
    }
    frame
}

/// ISO/IEC 14496-2, sections 6.2.3 to 6.2.6: a layer of 25 frames a second, an intra frame.
fn mpeg4(width: u32, height: u32) -> Vec<u8> {
    // The kind of macroblock, no prediction of coefficients, none there; DC differences of no bits, four of luma and
    // two of chroma.
    const MACROBLOCK: [(u32, u32); 9] =
        [(1, 1), (1, 0), (4, 3), (3, 3), (3, 3), (3, 3), (3, 3), (2, 3), (2, 3)];
    let mut bits = Bits::default();
    bits.put(32, 0x100);
    bits.put(32, 0x120);
    // Not for access at random, simple, no identifier, square pixels, no control parameters, rectangular, a marker.
    bits.fields(&[(1, 0), (8, 1), (1, 0), (4, 1), (1, 0), (2, 0), (1, 1)]);
    bits.put(16, 25);
    // A marker, no fixed rate; then the sides, between markers.
    bits.put(3, 0b101);
    bits.put(13, width);
    bits.put(1, 1);
    bits.put(13, height);
    bits.put(1, 1);
    // Progressive, no overlapped motion, no sprite, 8 bits, H.263's quantisation, no estimation, no resync markers, no
    // partitions, not scalable; the bit that begins the stuffing.
    bits.fields(&[(1, 0), (1, 1), (1, 0), (1, 0), (1, 0), (1, 1), (1, 1), (1, 0), (1, 0), (1, 0)]);
    bits.fill();
    bits.put(32, 0x1B6);
    // Intra, at time 0 (of five bits), coded, quantised by 1.
    bits.fields(&[(2, 0), (1, 0), (1, 1), (5, 0), (1, 1), (1, 1), (3, 0), (5, 1)]);
    for _ in 0..blocks(width, height, 16) {
        bits.fields(&MACROBLOCK);
    }
    bits.put(1, 0);
    bits.fill();
    bits.bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::video::decoder::{HALVED_CHROMA, WHOLE_CHROMA};

    fn shape(codec: Codec, [width, height]: [u32; 2], depth: u32, chroma: i32) -> Shape {
        Shape { codec: codec as i32, chroma, depth, width, height, surfaces: 1 }
    }

    #[test]
    fn vp9_is_gray() {
        for size in [[2, 2], [162, 146], [1920, 1080], [8190, 130]] {
            for (depth, chroma) in
                [(8, HALVED_CHROMA), (10, HALVED_CHROMA), (12, HALVED_CHROMA), (8, WHOLE_CHROMA)]
            {
                let file = frame(&shape(Codec::Vp9, size, depth, chroma)).unwrap();
                let mut decoder = rusty_vp9::Vp9Decoder::default();
                decoder.push(&file, None).unwrap();
                let found = decoder.next_frame().unwrap();
                assert_eq!(([found.width, found.height], found.bit_depth), (size, depth));
                let gray = (128_u16 << (depth - 8)).to_le_bytes();
                for plane in &found.planes {
                    let is_gray = match depth {
                        8 => plane.iter().all(|&sample| sample == 128),
                        _ => plane.as_chunks().0.iter().all(|&sample| sample == gray),
                    };
                    assert!(is_gray, "{size:?}, {depth} bits");
                }
            }
        }
    }

    #[test]
    fn sizes_are_those_of_the_surfaces() {
        let file = frame(&shape(Codec::Vp8, [162, 146], 8, HALVED_CHROMA)).unwrap();
        assert_eq!(file[6..10], [162, 0, 146, 0]);
        assert_eq!(u32::from_le_bytes([file[0], file[1], file[2], 0]) >> 5, 11 * 10 + 256);
        let file = frame(&shape(Codec::Mpeg4, [162, 146], 8, HALVED_CHROMA)).unwrap();
        // What FFmpeg 7 decodes to gray of that size.
        assert_eq!(file.len(), 327);
        assert_eq!(frame(&shape(Codec::H264, [162, 146], 8, HALVED_CHROMA)), None);
    }
}
