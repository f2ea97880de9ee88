//! BMP by crate `image`. It must not know other formats.

use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::bmp::BmpDecoder;

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
    if bits(bytes) != 16 {
        return read_pixels(decoder, Luma::Bits14, job, out);
    }
    // `image` fills the low bits of a 5- or 6-bit sample with its high ones; DALI leaves them zero.
    let (width, height) = job.info.stored_size();
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

/// Bits of a pixel; 0 when the header ends before.
fn bits(bytes: &[u8]) -> u8 {
    // The oldest header has sizes of 2 bytes.
    let at = if bytes.get(14..18) == Some(&[12, 0, 0, 0]) { 24 } else { 28 };
    bytes.get(at).copied().unwrap_or(0)
}
