//! HEIC: pictures of H.265 in HEIF, of a sequence the one that stands for it. It must not know other formats.

use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::heif::{self, Coding};

/// Brands of files whose pictures may be coded in any way: of those with no other brand most are H.265.
const ANY_BRANDS: &[&[u8; 4]] = &[b"mif1", b"mif2", b"msf1"];
const BRANDS: &[&[u8; 4]] = &[b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"];

/// Nanoseconds for each pixel, and for each byte of codes.
const PIXEL: f64 = 15.0;
const BYTE: f64 = 60.0;
/// As many times as much where chroma is not halved twice, and for alpha: these are decoded without vectors.
const WITHOUT_VECTORS: f64 = 4.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "HEIC",
    parameter: "heic",
    is_one: |bytes| {
        !heif::has_brand(bytes, heif::AV1_BRANDS)
            && (heif::has_brand(bytes, BRANDS) || heif::has_brand(bytes, ANY_BRANDS))
    },
    header: |bytes| heif::header(bytes, Coding::H265),
    decode: |_, bytes, job, out| heif::decode(bytes, Coding::H265, job, out),
    profile: |bytes| heif::profile(bytes, Coding::H265),
    effort: expected,
};

fn expected(image: &Measures<'_>) -> Cost {
    let is_usual = heif::has_halved_chroma(image.bytes, Coding::H265);
    let color = if is_usual { 1.0 } else { WITHOUT_VECTORS };
    let alpha = if image.info.channels.is_multiple_of(2) { WITHOUT_VECTORS } else { 0.0 };
    // Planes of samples, those of a grid once more, and what is known of blocks; its pixels, and those with alpha.
    let planes = if is_usual { 12.0 } else { 24.0 } + if alpha > 0.0 { 12.0 } else { 0.0 };
    Cost {
        nanoseconds: (color + alpha) * (image.pixels * PIXEL + image.length * BYTE),
        scratch: 2.0 * image.stored + planes * image.pixels,
    }
}
