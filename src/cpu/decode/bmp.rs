//! BMP by crate `image`, but for the rows of plain 24-bit files. It must not know other formats.

use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::bmp::BmpDecoder;
use multiversion::multiversion;

use super::color::Luma;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::raster::{failed, read_pixels, truncated_header};
use super::{ColorSpace, Header, Job};
use crate::error::{Error, Result};

/// Where a file with colour masks has that of green.
const GREEN_MASK_AT: usize = 14 + 40 + 4;

/// Reads a header. A palette of grays makes a gray image.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let decoder = BmpDecoder::new(Cursor::new(bytes)).map_err(truncated_header)?;
    let (width, height) = decoder.dimensions();
    let channels = match decoder.get_palette() {
        Some(palette) if palette.iter().all(|[r, g, b]| r == g && g == b) => 1,
        Some(_) => 3,
        None if bits(bytes) == 32 => 4,
        None => 3,
    };
    Ok(Header {
        width: width as usize,
        height: height as usize,
        channels,
        bit_depth: usize::from(bits(bytes).min(8)),
        orientation: Orientation::default(),
        halves: false,
    })
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    if job.options.color == ColorSpace::Any && job.info.channels == 4 {
        return Err(Error::unsupported(
            "the 4 channels of a 32-bit image are not returned as they are, expected another output type than ANY_DATA",
        ));
    }
    let decoder = BmpDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    let (width, height) = job.info.stored_size();
    if job.is_plain()
        && job.options.color == ColorSpace::Rgb
        && decoder.dimensions() == (width as u32, height as u32)
        && let Some(rows) = rows_of_24_bits(bytes, width, height)
    {
        for (from, to) in rows.zip(out.chunks_exact_mut(width * 3)) {
            write_reversed(from, to);
        }
        return Ok(());
    }
    if bits(bytes) != 16 {
        return read_pixels(decoder, Luma::Bits14, job, out);
    }
    // `image` fills the low bits of a 5- or 6-bit sample with its high ones; DALI leaves them zero.
    let mut samples = vec![0_u8; width * height * 3];
    if decoder.total_bytes() != samples.len() as u64 {
        return Err(Error::unsupported("pixels of 16 bits with alpha"));
    }
    decoder.read_image(&mut samples).map_err(failed)?;
    let green =
        if bytes.get(GREEN_MASK_AT..GREEN_MASK_AT + 4) == Some(&[0xE0, 0x07, 0, 0]) { 0xFC } else { 0xF8 };
    for [r, g, b] in samples.as_chunks_mut::<3>().0 {
        (*r, *g, *b) = (*r & 0xF8, *g & green, *b & 0xF8);
    }
    Picture { samples: Samples::U8(&samples), channels: 3, luma: Luma::Bits14 }.write(job, out)
}

/// The rows of a file of plain 24-bit pixels, the uppermost first, each with what fills it up to 4 bytes. None for other files, and for
/// those that end before their pixels. `image` reads such a file pixel by pixel.
fn rows_of_24_bits(bytes: &[u8], width: usize, height: usize) -> Option<impl Iterator<Item = &[u8]>> {
    let word = |at: usize| {
        bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u32::from_le_bytes(*bytes))
    };
    let (offset, header, compression) = (word(10)? as usize, word(14)?, word(30)?);
    if header < 40 || bits(bytes) != 24 || compression != 0 || width == 0 {
        return None;
    }
    let is_top_down = word(22)?.cast_signed() < 0;
    let pitch = (width * 3).next_multiple_of(4);
    let pixels = bytes.get(offset..)?.get(..pitch.checked_mul(height)?)?;
    let row = move |y: usize| &pixels[(if is_top_down { y } else { height - 1 - y }) * pitch..][..pitch];
    Some((0..height).map(row))
}

/// Writes the pixels of a row, the three samples of each in the other order.
#[multiversion(targets("x86_64+avx+avx2", "x86_64+ssse3"))]
fn write_reversed(from: &[u8], to: &mut [u8]) {
    for ([r, g, b], &[blue, green, red]) in to.as_chunks_mut::<3>().0.iter_mut().zip(from.as_chunks::<3>().0)
    {
        (*r, *g, *b) = (red, green, blue);
    }
}

/// Bits of a pixel; 0 when the header ends before.
fn bits(bytes: &[u8]) -> u8 {
    // The oldest header has sizes of 2 bytes.
    let at = if bytes.get(14..18) == Some(&[12, 0, 0, 0]) { 24 } else { 28 };
    bytes.get(at).copied().unwrap_or(0)
}
