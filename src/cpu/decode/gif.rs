//! GIF by crate `image`; of an animation the first frame. It must not know other formats.

use image::ImageDecoder;
use image::codecs::gif::GifDecoder;

use super::color::Luma;
use super::orientation::Orientation;
use super::raster::{failed, read_pixels, scratch_limits, truncated_header};
use super::watched::Watched;
use super::{Header, Job};
use crate::error::Result;
use crate::waiting::Watch;

/// Red, green, blue, and whether the frame covers a place.
const CHANNELS: usize = 4;

/// Reads a header: the size of the canvas, on which the first frame lies.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let watch = Watch::forever();
    let (width, height) = open(bytes, &watch).map_err(truncated_header)?.dimensions();
    Ok(Header {
        width: width as usize,
        height: height as usize,
        channels: CHANNELS,
        bit_depth: 8,
        orientation: Orientation::default(),
        halves: false,
    })
}

/// Decodes what `job` asks for to `out`, whose size was checked. Places that the first frame leaves open are black.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let decoder = open(bytes, job.conditions.watch).map_err(failed)?;
    read_pixels(decoder, Luma::Bits14, job, out)
}

fn open<'a>(bytes: &'a [u8], watch: &'a Watch<'a>) -> image::ImageResult<GifDecoder<Watched<'a>>> {
    let mut decoder = GifDecoder::new(Watched::new(bytes, watch))?;
    decoder.set_limits(scratch_limits())?;
    Ok(decoder)
}
