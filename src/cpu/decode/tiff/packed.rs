//! Samples of 9 to 15 bits, which crate `tiff` does not read: their rows are read as those of a gray image of bytes, and taken apart here.

use std::io::{Read, Seek};

use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::tags::Tag;

use super::super::Job;
use super::super::color::Luma;
use super::super::watched::Watched;
use super::{edit, failed, open, palette, tiff_limits};
use crate::error::{Error, Result};
use crate::limits;

/// Values of `Tag::PhotometricInterpretation`.
const GRAY: [u16; 2] = [0, 1];
const RGB: u16 = 2;
/// Of these, gray where 0 is white.
const WHITE_IS_ZERO: u16 = 0;

/// Whether samples of so many bits are read here.
fn takes(bits: usize) -> bool {
    (9..=15).contains(&bits)
}

/// How RGB of so many bits becomes gray, as in DALI.
pub(super) fn luma(bits: usize) -> Luma {
    Luma::Bits14Above(16_u32.saturating_sub(bits as u32))
}

/// The samples of the first image, interleaved, their highest bit that of 16, as in DALI; `None` when they do not have 9 to 15 bits.
///
/// # Errors
/// When they are stored in a way that is not read: as planes, differences, signed or floating-point numbers, other than gray or RGB; when the
/// file is damaged; when nobody waits any more.
pub(super) fn decode<R: Read + Seek>(
    bytes: &[u8],
    decoder: &mut Decoder<R>,
    job: &Job<'_>,
) -> Result<Option<Vec<u16>>> {
    let bits = job.info.bit_depth;
    if !takes(bits) {
        return Ok(None);
    }
    let mut number =
        |tag| Ok::<_, Error>(decoder.find_tag_unsigned::<u16>(tag).map_err(failed)?.unwrap_or(1));
    let usual = [Tag::PlanarConfiguration, Tag::Predictor, Tag::FillOrder];
    for tag in usual {
        let found = number(tag)?;
        if found != 1 {
            return Err(Error::unsupported(format!("{tag:?} {found} of samples of {bits} bits, expected 1")));
        }
    }
    let formats =
        decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat).map_err(failed)?.unwrap_or_default();
    if formats.iter().any(|&format| format != 1) {
        return Err(Error::unsupported(format!("samples of {bits} bits that are not unsigned")));
    }
    let kind = palette::photometric(decoder).unwrap_or_default();
    if !GRAY.contains(&kind) && kind != RGB {
        return Err(Error::unsupported(format!(
            "samples of {bits} bits of photometric interpretation {kind}, expected gray or RGB"
        )));
    }
    let (width, height) = job.info.stored_size();
    let samples = width * job.info.channels;
    let row = (samples * bits).div_ceil(8);
    let packed = rows(bytes, decoder, job, row)?;
    if packed.len() != row * height {
        return Err(Error::internal(format!("{} bytes of rows, expected {row} x {height}", packed.len())));
    }
    let mut unpacked: Vec<u16> =
        packed.chunks(row.max(1)).flat_map(|line| (0..samples).map(move |i| sample(line, i, bits))).collect();
    if kind == WHITE_IS_ZERO {
        let white = u16::MAX << (16 - bits);
        unpacked.iter_mut().for_each(|sample| *sample = white - *sample);
    }
    Ok(Some(unpacked))
}

/// The bytes of rows, `row` of them each.
fn rows<R: Read + Seek>(
    bytes: &[u8],
    decoder: &mut Decoder<R>,
    job: &Job<'_>,
    row: usize,
) -> Result<Vec<u8>> {
    let as_u32 = |bytes: usize| u32::try_from(bytes).map_err(|_| Error::invalid("damaged: rows too long"));
    let mut numbers = vec![
        (Tag::ImageWidth, as_u32(row)?),
        (Tag::BitsPerSample, 8),
        (Tag::PhotometricInterpretation, u32::from(GRAY[1])),
    ];
    for (tag, number) in [(Tag::SamplesPerPixel, 1), (Tag::ExtraSamples, 0)] {
        if decoder.find_tag(tag).map_err(failed)?.is_some() {
            numbers.push((tag, number));
        }
    }
    if decoder.get_chunk_type() == ChunkType::Tile {
        let bits = decoder.chunk_dimensions().0 as usize * job.info.channels * job.info.bit_depth;
        if !bits.is_multiple_of(8) {
            return Err(Error::unsupported(format!("tiles with rows of {bits} bits, expected whole bytes")));
        }
        numbers.push((Tag::TileWidth, as_u32(bits / 8)?));
    }
    let copy = edit::edited(bytes, decoder, &numbers)?;
    let mut decoder = open(Watched::new(&copy, job.conditions.watch))?;
    let layout = decoder.image_buffer_layout().map_err(failed)?;
    if layout.complete_len > limits::MAX_SAMPLE_BYTES {
        return Err(Error::invalid(format!(
            "the pixels take {} bytes, more than the limit of {}",
            layout.complete_len,
            limits::MAX_SAMPLE_BYTES
        )));
    }
    let mut decoded = DecodingResult::U8(Vec::new());
    decoder = decoder.with_limits(tiff_limits(layout.complete_len));
    decoder.read_image_to_buffer(&mut decoded).map_err(failed)?;
    match decoded {
        DecodingResult::U8(rows) => Ok(rows),
        _ => Err(Error::internal("rows of bytes that are not bytes")),
    }
}

/// Sample `i` of a row, its highest bit that of 16.
fn sample(row: &[u8], i: usize, bits: usize) -> u16 {
    let bit = i * bits;
    let bytes = [0, 1, 2].map(|k| u32::from(row.get(bit / 8 + k).copied().unwrap_or(0)));
    let word = bytes[0] << 16 | bytes[1] << 8 | bytes[2];
    let low = word >> (24 - bits - bit % 8) & ((1 << bits) - 1);
    (low << (16 - bits)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_lie_from_the_highest_on() {
        let row = [0x12, 0x3A, 0xBC];
        assert_eq!([0, 1].map(|i| sample(&row, i, 12)), [0x1230, 0xABC0]);
        // 0001001 000111010 ... as 9 bits: 0x024, 0x0EA.
        assert_eq!([0, 1].map(|i| sample(&row, i, 9)), [0x024 << 7, 0x0EA << 7]);
        assert_eq!(sample(&row, 0, 15), 0x123A & 0xFFFE);
    }
}
