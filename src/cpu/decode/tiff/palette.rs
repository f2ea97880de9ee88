//! Palettes, which crate `tiff` does not read: their places are read as gray of as many bits, and looked up here.

use std::io::{Read, Seek};

use tiff::decoder::Decoder;
use tiff::tags::{ByteOrder, Tag};

use super::failed;
use crate::error::{Error, Result};

/// Values of `Tag::PhotometricInterpretation`.
const GRAY: u8 = 1;
const PALETTE: u16 = 3;

/// The file's number for the colours of its first image, if it has one.
pub(super) fn photometric<R: Read + Seek>(decoder: &mut Decoder<R>) -> Option<u16> {
    decoder.find_tag_unsigned(Tag::PhotometricInterpretation).ok().flatten()
}

/// Bits of a place in the palette of the first image; `None` for images without one.
///
/// # Errors
/// When they are not 1, 2, 4 or 8, or a pixel is more than a place.
pub(super) fn bits<R: Read + Seek>(decoder: &mut Decoder<R>) -> Result<Option<u8>> {
    if photometric(decoder) != Some(PALETTE) {
        return Ok(None);
    }
    let samples: u16 = decoder.find_tag_unsigned(Tag::SamplesPerPixel).map_err(failed)?.unwrap_or(1);
    let bits: Vec<u16> =
        decoder.find_tag_unsigned_vec(Tag::BitsPerSample).map_err(failed)?.unwrap_or_else(|| vec![1]);
    match bits[..] {
        [bits @ (1 | 2 | 4 | 8)] if samples == 1 => Ok(Some(bits as u8)),
        _ => Err(Error::unsupported(format!(
            "a palette with {samples} samples of {bits:?} bits, expected one of 1, 2, 4 or 8"
        ))),
    }
}

/// The colours, 16 bits each.
///
/// # Errors
/// When there are not 2^`bits` of them.
pub(super) fn colors<R: Read + Seek>(decoder: &mut Decoder<R>, bits: u8) -> Result<Vec<[u16; 3]>> {
    let all: Vec<u16> = decoder.find_tag_unsigned_vec(Tag::ColorMap).map_err(failed)?.unwrap_or_default();
    let count = 1 << bits;
    if all.len() != 3 * count {
        return Err(Error::invalid(format!(
            "damaged: a palette of {} numbers, expected {}",
            all.len(),
            3 * count
        )));
    }
    Ok((0..count).map(|i| [all[i], all[count + i], all[2 * count + i]]).collect())
}

/// A copy of a file with a palette whose first image says that it is gray.
///
/// # Errors
/// When its directory ends too early, or holds the kind of colours in an odd way.
pub(super) fn as_gray<R: Read + Seek>(bytes: &[u8], decoder: &mut Decoder<R>) -> Result<Vec<u8>> {
    let at = place(bytes, decoder).ok_or_else(|| Error::invalid("damaged: no readable kind of colours"))?;
    let mut copy = bytes.to_vec();
    copy[at] = GRAY;
    Ok(copy)
}

/// Where the byte is that says that the first image has a palette.
fn place<R: Read + Seek>(bytes: &[u8], decoder: &mut Decoder<R>) -> Option<usize> {
    let is_big = match decoder.byte_order() {
        ByteOrder::BigEndian => true,
        ByteOrder::LittleEndian => false,
    };
    let number = |at: usize, size: usize| {
        let digits = bytes.get(at..at.checked_add(size)?)?;
        let add = |sum: u64, &digit: &u8| sum << 8 | u64::from(digit);
        Some(if is_big { digits.iter().fold(0, add) } else { digits.iter().rev().fold(0, add) })
    };
    // A directory is the number of its entries and these: tag, type, count, value.
    let has_long_offsets = number(2, 2)? == 43;
    let (head, entry, value) = if has_long_offsets { (8, 20, 12) } else { (2, 12, 8) };
    let first = usize::try_from(decoder.ifd_pointer()?.0).ok()?;
    let tag = u64::from(Tag::PhotometricInterpretation.to_u16());
    let count = number(first, head)?;
    let start = (0..count.min(u64::from(u16::MAX)))
        .map_while(|i| first.checked_add(head + entry * i as usize))
        .take_while(|&at| at < bytes.len())
        .find(|&at| number(at, 2) == Some(tag))?;
    let size = match number(start + 2, 2)? {
        1 => 1,
        3 => 2,
        4 => 4,
        _ => return None,
    };
    let at = start + value + if is_big { size - 1 } else { 0 };
    (bytes.get(at) == Some(&(PALETTE as u8))).then_some(at)
}
