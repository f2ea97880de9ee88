//! What decoding an image is expected to take, from its header: enough to tell what takes milliseconds from what takes
//! seconds. It must not decode.
//!
//! The figures are nanoseconds of one core of a Zen 5, of images with noise of 2000 x 1500 pixels; small ones take a
//! little more.

use std::time::Duration;

use super::{
    ColorSpace, DecodeOptions, Format, ImageInfo, gif, is_plain, jpeg, jpeg_xl, jpeg2000, png, tiff,
};
use crate::deadline::Effort;

/// For each pixel of a JPEG: transform and colours.
const JPEG_PIXEL: f64 = 0.6;
/// For each byte of its data: codes.
const JPEG_BYTE: f64 = 4.0;
/// For each pixel, each time that a scan goes over the coefficients.
const JPEG_SCAN_PIXEL: f64 = 0.4;
/// For each byte of samples of a PNG: inflating and filters.
const PNG_BYTE: f64 = 1.5;
/// For each of its chunks.
const PNG_CHUNK: f64 = 250.0;
/// The same of a TIFF: 0.2 where they are stored as they are, 3.6 where they are inflated, 6.5 with LZW. The header
/// does not tell soon.
const TIFF_BYTE: f64 = 4.0;
/// For each byte of its strips, which may have more of them than it becomes.
const CODED_BYTE: f64 = 1.0;
/// For each pixel of a GIF: its codes, and the colours that they name.
const GIF_PIXEL: f64 = 20.0;
/// For each of its codes, which may be more than there are pixels.
const GIF_CODE: f64 = 34.0;
/// For each pixel of a WebP: a lossy one, which takes longer than others.
const WEBP_PIXEL: f64 = 17.0;
/// For each pixel of an AVIF, of which alpha is half as much again: 40 of a smooth one; and for each byte of codes,
/// from 50 to 150.
const AVIF_PIXEL: f64 = 60.0;
const AVIF_BYTE: f64 = 120.0;
/// For each sample of a JPEG XL: 8 of a lossy one, up to 24 of a lossless one; and for each byte of codes, 15 or 40.
const JPEG_XL_SAMPLE: f64 = 12.0;
const JPEG_XL_BYTE: f64 = 40.0;
/// For each byte of samples that are stored as they are, and of the file where they are text.
const STORED_BYTE: f64 = 0.6;
/// For each pixel that is turned, cut, or converted to other colours or another type; not measured.
const CONVERTED_PIXEL: f64 = 3.0;

/// What decoding `bytes`, whose header says `info`, as `options` ask is expected to take.
pub fn effort(bytes: &[u8], info: &ImageInfo, options: &DecodeOptions) -> Effort {
    let pixels = info.width as f64 * info.height as f64;
    let samples = pixels * info.channels as f64;
    let stored = samples * (info.bit_depth as f64 / 8.0).max(1.0);
    let length = bytes.len() as f64;
    let as_stored = is_plain(info, options) && options.color == ColorSpace::Rgb;
    // What is written to the output at once needs no memory of its own.
    let is_output = as_stored && info.bit_depth == 8 && info.channels == 3;
    let mut scratch = if is_output { 0.0 } else { stored };
    let mut nanoseconds = if as_stored { 0.0 } else { pixels * CONVERTED_PIXEL };
    nanoseconds += match info.format {
        Format::Jpeg => {
            // Data without markers; of files with several scans all coefficients.
            scratch += length;
            let scans = jpeg::scans(bytes);
            if scans > 1 {
                scratch += 2.5 * samples;
            }
            let passes = if scans > 1 { f64::from(scans) } else { 0.0 };
            pixels * (JPEG_PIXEL + passes * JPEG_SCAN_PIXEL) + length * JPEG_BYTE
        }
        Format::Png => stored * PNG_BYTE + png::chunk_count(bytes) as f64 * PNG_CHUNK,
        Format::Tiff => {
            // Where it is made to look otherwise for its decoder, the file itself.
            scratch += 2.0 * stored + length;
            stored * TIFF_BYTE + tiff::coded_bytes(bytes) as f64 * CODED_BYTE
        }
        Format::Gif => {
            // Its pixels with alpha, and those of a frame that is smaller.
            scratch += 8.0 * pixels;
            pixels * GIF_PIXEL + gif::codes(bytes) as f64 * GIF_CODE
        }
        Format::WebP => {
            // Of a lossless one what was decoded, and its pixels.
            scratch += 8.0 * pixels;
            pixels * WEBP_PIXEL
        }
        Format::Avif => {
            // Planes of samples and what is known of blocks; its pixels, and those with alpha.
            scratch += 2.0 * stored + 8.0 * pixels;
            let alpha = if info.channels.is_multiple_of(2) { 0.5 } else { 0.0 };
            pixels * (1.0 + alpha) * AVIF_PIXEL + length * AVIF_BYTE
        }
        Format::Jpeg2000 => {
            let (taken, nanoseconds) = jpeg2000::price(bytes);
            scratch = stored + taken;
            nanoseconds
        }
        Format::JpegXl => {
            // Two or three bytes a sample, and floats of frames that are not shown.
            scratch += 4.0 * samples + jpeg_xl::kept_bytes(bytes, info.width * info.height);
            samples * JPEG_XL_SAMPLE + length * JPEG_XL_BYTE
        }
        Format::Bmp | Format::Pnm => {
            scratch += stored;
            (stored + length) * STORED_BYTE
        }
    };
    Effort { time: Duration::from_nanos(nanoseconds as u64), scratch: scratch as usize }
}

#[cfg(test)]
mod tests {
    use super::super::Orientation;
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
        for format in [Format::Png, Format::Gif, Format::Tiff, Format::WebP, Format::Avif, Format::JpegXl] {
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
