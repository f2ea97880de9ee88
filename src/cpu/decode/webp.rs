//! WebP by crate `image`; of an animation the first frame. It must not know other formats.

use std::io::Cursor;

use image::ImageDecoder;
use image::codecs::webp::WebPDecoder;

use super::color::Luma;
use super::orientation::{Orientation, from_exif_block};
use super::raster::{failed, read_pixels, truncated_header};
use super::{Header, Job};
use crate::error::{Error, Result};

/// Where the first chunk is.
const CHUNKS_AT: usize = 12;

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(truncated_header)?;
    let (width, height) = decoder.dimensions();
    Ok(Header {
        width: width as usize,
        height: height as usize,
        channels: usize::from(decoder.color_type().channel_count()),
        bit_depth: 8,
        orientation: exif(bytes).map_or(Orientation::default(), from_exif_block),
        halves: false,
    })
}

/// The EXIF chunk, where it is: `image` would first make memory for as many bytes as the chunk claims to have.
fn exif(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = CHUNKS_AT;
    loop {
        let &[a, b, c, d, s0, s1, s2, s3] = bytes.get(at..at.checked_add(8)?)? else { return None };
        let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        if &[a, b, c, d] == b"EXIF" {
            return bytes.get(at + 8..at + 8 + size);
        }
        // Chunks are padded to an even size.
        at = at + 8 + size.next_multiple_of(2);
    }
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    job.must_end_in_time()?;
    let decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(failed)?;
    read_pixels(decoder, Luma::Bits15, job, out).map_err(|error| match bytes {
        // Missing bytes look like damage to the decoder.
        &[_, _, _, _, s0, s1, s2, s3, ..]
            if u32::from_le_bytes([s0, s1, s2, s3]) as usize + 8 > bytes.len() =>
        {
            Error::invalid(format!(
                "truncated: the input of {} bytes ends before the image does",
                bytes.len()
            ))
        }
        _ => error,
    })
}
