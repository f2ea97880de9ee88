//! GIF by crate `image`; as a picture the first frame. It must not know other formats.

use image::ImageDecoder;
use image::codecs::gif::GifDecoder;

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::frames::{Take, hand_on};
use super::orientation::Orientation;
use super::raster::{failed, read_pixels, scratch_limits, truncated_header};
use super::watched::Watched;
use super::{Header, Job};
use crate::deadline::Watch;
use crate::error::Result;

/// Red, green, blue, and whether the frame covers a place.
const CHANNELS: usize = 4;

/// Nanoseconds for each pixel: its codes, and the colours that they name; and for each of its codes, which may be more
/// than there are pixels.
const PIXEL: f64 = 20.0;
const CODE: f64 = 34.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "GIF",
    parameter: "gif",
    is_one: |bytes| matches!(bytes, [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile: |_| Ok(None),
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: image.pixels * PIXEL + codes(image.bytes) as f64 * CODE,
        // Its pixels with alpha, and those of a frame that is smaller.
        scratch: 8.0 * image.pixels,
    },
};

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

/// All pictures, one after the other.
pub(super) fn animation(bytes: &[u8], watch: &Watch<'_>, take: &mut Take<'_>) -> Result<()> {
    hand_on(open(bytes, watch).map_err(failed)?, take)
}

/// Frames that have begun.
pub(super) fn frame_count(bytes: &[u8]) -> usize {
    frames(bytes).count()
}

/// Most codes that the first frame may have, of which there may be any number for a few pixels.
pub(super) fn codes(bytes: &[u8]) -> usize {
    frames(bytes).next().unwrap_or(0)
}

/// The most codes of each frame, as its blocks say.
fn frames(bytes: &[u8]) -> impl Iterator<Item = usize> {
    // Behind signature and canvas, of which a bit says that colours follow, stand blocks.
    const HEAD: usize = 13;
    let colors = |flags: u8| if flags & 0x80 == 0 { 0 } else { 3 << (usize::from(flags & 7) + 1) };
    let mut at = HEAD + bytes.get(10).copied().map_or(0, colors);
    std::iter::from_fn(move || {
        loop {
            let is_frame = match bytes.get(at) {
                Some(0x21) => false,
                Some(0x2C) => true,
                _ => return None,
            };
            at += if is_frame { 11 + bytes.get(at + 9).copied().map_or(0, colors) } else { 2 };
            let first = at;
            // A code has a bit more than a colour at first, and again when it says that the table is empty.
            let bits =
                usize::from(bytes.get(at.saturating_sub(1)).copied().unwrap_or_default()).clamp(1, 12) + 1;
            while let Some(&length @ 1..) = bytes.get(at) {
                at += 1 + usize::from(length);
            }
            let last = at;
            at += 1;
            if is_frame {
                return Some(last.saturating_sub(first).saturating_mul(8) / bits);
            }
        }
    })
}

fn open<'a>(bytes: &'a [u8], watch: &'a Watch<'a>) -> image::ImageResult<GifDecoder<Watched<'a>>> {
    let mut decoder = GifDecoder::new(Watched::new(bytes, watch))?;
    decoder.set_limits(scratch_limits())?;
    Ok(decoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_counted_by_their_bits() {
        let file = |bits: u8| {
            let mut file = b"GIF89a\x08\0\x08\0\0\0\0\x2C\0\0\0\0\x08\0\x08\0\0".to_vec();
            file.push(bits);
            file.extend([[3, 0x24, 0x49, 0x92]; 90].as_flattened());
            file.push(0);
            file
        };
        assert_eq!([2, 8].map(|bits| codes(&file(bits))), [360 * 8 / 3, 360 * 8 / 9]);
        assert_eq!((codes(b"GIF89a"), frame_count(b"GIF89a")), (0, 0));
        let one = file(2);
        assert_eq!(frame_count(&[&one[..], &one[13..], b"\x3B"].concat()), 2);
    }
}
