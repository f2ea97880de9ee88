//! AVIF: pictures of AV1 in HEIF, of a sequence the one that stands for it. It must not know other formats.

use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::heif::{self, Coding};

/// Nanoseconds for each pixel, of which alpha is half as much again: 40 of a smooth one; and for each byte of codes,
/// from 50 to 150.
const PIXEL: f64 = 60.0;
const BYTE: f64 = 120.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "AVIF",
    parameter: "avif",
    is_one: |bytes| heif::has_brand(bytes, heif::AV1_BRANDS),
    header: |bytes| heif::header(bytes, Coding::Av1),
    decode: |_, bytes, job, out| heif::decode(bytes, Coding::Av1, job, out),
    profile: |bytes| heif::profile(bytes, Coding::Av1),
    effort: expected,
};

fn expected(image: &Measures<'_>) -> Cost {
    let alpha = if image.info.channels.is_multiple_of(2) { 0.5 } else { 0.0 };
    Cost {
        nanoseconds: image.pixels * (1.0 + alpha) * PIXEL + image.length * BYTE,
        // Planes of samples, those of a grid once more, and what is known of blocks; its pixels, and those with alpha.
        scratch: 2.0 * image.stored + 14.0 * image.pixels,
    }
}
