//! What decoding an image is expected to take, from its header: enough to tell what takes milliseconds from what takes
//! seconds. It must not decode.
//!
//! The figures here and in the formats' files are nanoseconds of one core of a Zen 5, of images with noise of
//! 2000 x 1500 pixels; small ones take a little more.

use std::time::Duration;

use super::{ColorSpace, DecodeOptions, ImageInfo, is_plain, srgb};
use crate::deadline::Effort;

/// For each byte of samples that are stored as they are, and of the file where they are text.
pub(super) const STORED_BYTE: f64 = 0.6;
/// For each pixel that is turned, cut, or converted to other colours or another type; not measured.
const CONVERTED_PIXEL: f64 = 3.0;

/// How large an image is, as its header says.
pub(super) struct Measures<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) info: &'a ImageInfo,
    pub(super) pixels: f64,
    pub(super) samples: f64,
    /// Bytes of the samples.
    pub(super) stored: f64,
    /// Bytes of the file.
    pub(super) length: f64,
    /// Whether what is decoded is written to the output at once, and needs no memory of its own.
    pub(super) is_output: bool,
}

/// What decoding takes, whatever becomes of the pixels.
pub(super) struct Cost {
    pub(super) nanoseconds: f64,
    /// Bytes of memory besides those of the samples.
    pub(super) scratch: f64,
}

/// What decoding `bytes`, whose header says `info`, as `options` ask is expected to take.
pub fn effort(bytes: &[u8], info: &ImageInfo, options: &DecodeOptions) -> Effort {
    effort_of(bytes, bytes.len(), info, options)
}

/// The same for a file of `length` bytes, of which `bytes` are the first.
pub(super) fn effort_of(bytes: &[u8], length: usize, info: &ImageInfo, options: &DecodeOptions) -> Effort {
    let pixels = info.width as f64 * info.height as f64;
    let samples = pixels * info.channels as f64;
    // Samples of 9 bits have two bytes.
    let stored = samples * info.bit_depth.div_ceil(8).max(1) as f64;
    let as_stored = is_plain(info, options) && options.color == ColorSpace::Rgb;
    let is_output = as_stored && info.bit_depth == 8 && info.channels == 3;
    let length = length as f64;
    let measures = Measures { bytes, info, pixels, samples, stored, length, is_output };
    let cost = (info.format.row().effort)(&measures);
    let to_srgb = if options.to_srgb { pixels * srgb::PIXEL } else { 0.0 };
    let converted = if as_stored { 0.0 } else { pixels * CONVERTED_PIXEL } + to_srgb;
    // Its own colours are decoded to memory of their own.
    let own = if options.to_srgb { stored } else { 0.0 };
    let scratch = own + if is_output { 0.0 } else { stored };
    Effort {
        time: Duration::from_nanos((converted + cost.nanoseconds) as u64),
        scratch: (scratch + cost.scratch) as usize,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, Orientation};
    use super::*;

    fn info(format: Format, side: usize) -> ImageInfo {
        ImageInfo {
            format,
            width: side,
            height: side,
            channels: 3,
            bit_depth: 8,
            orientation: Orientation::default(),
            halves: false,
        }
    }

    #[test]
    fn what_takes_seconds_is_told_from_what_takes_milliseconds() {
        let options = DecodeOptions::default();
        for format in
            [Format::Png, Format::Gif, Format::Tiff, Format::WebP, Format::Avif, Format::Heic, Format::JpegXl]
        {
            let of = |side| effort(&[], &info(format, side), &options).time;
            assert!(of(400) < Duration::from_millis(50), "{format}");
            assert!(of(11_000) > Duration::from_millis(500), "{format}");
        }
    }

    #[test]
    fn what_is_converted_takes_memory_of_its_own() {
        let png = info(Format::Png, 1_000);
        let gray = DecodeOptions { color: ColorSpace::Gray, ..DecodeOptions::default() };
        assert_eq!(effort(&[], &png, &DecodeOptions::default()).scratch, 0);
        assert_eq!(effort(&[], &png, &gray).scratch, 3_000_000);
        let with_alpha = ImageInfo { channels: 4, ..png };
        assert_eq!(effort(&[], &with_alpha, &DecodeOptions::default()).scratch, 4_000_000);
    }
}
