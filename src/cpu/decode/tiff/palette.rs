//! Palettes, which crate `tiff` does not read: their places are read as gray of as many bits, and looked up here.

use std::io::{Read, Seek};

use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::{edit, failed};
use crate::error::{Error, Result};

/// Values of `Tag::PhotometricInterpretation`.
const GRAY: u32 = 1;
const PALETTE: u16 = 3;

/// The file's number for the colours of its first image, if it has one.
pub(super) fn photometric<R: Read + Seek>(decoder: &mut Decoder<R>) -> Option<u16> {
    decoder.find_tag_unsigned(Tag::PhotometricInterpretation).ok().flatten()
}

/// Bits of a place in the palette of the first image; `None` for images without one.
///
/// # Errors
/// When they are not 1, 2, 4, 8 or 16, or a pixel is more than a place.
pub(super) fn bits<R: Read + Seek>(decoder: &mut Decoder<R>) -> Result<Option<u8>> {
    if photometric(decoder) != Some(PALETTE) {
        return Ok(None);
    }
    let samples: u16 = decoder.find_tag_unsigned(Tag::SamplesPerPixel).map_err(failed)?.unwrap_or(1);
    let bits: Vec<u16> =
        decoder.find_tag_unsigned_vec(Tag::BitsPerSample).map_err(failed)?.unwrap_or_else(|| vec![1]);
    match bits[..] {
        [bits @ (1 | 2 | 4 | 8 | 16)] if samples == 1 => Ok(Some(bits as u8)),
        _ => Err(Error::unsupported(format!(
            "a palette with {samples} samples of {bits:?} bits, expected one of 1, 2, 4, 8 or 16"
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
    edit::edited(bytes, decoder, &[(Tag::PhotometricInterpretation, GRAY)])
}
