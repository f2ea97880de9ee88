//! Images to files: JPEG by libjpeg-turbo, PNG by crate `image`, WebP by libwebp. It must not know why.

use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use turbojpeg::{Compressor, PixelFormat, Subsamp};
use webp::{Encoder, PixelLayout, WebPConfig};

use crate::error::{Error, Result};

/// The longest side of a JPEG, and of a WebP.
const MAX_JPEG_SIDE: usize = 65_500;
const MAX_WEBP_SIDE: usize = 16_383;

/// Pixels of rows one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// All samples, interleaved; of two bytes in the processor's order.
    pub bytes: &'a [u8],
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Samples of a pixel.
    pub channels: usize,
    /// Bytes of a sample, 1 or 2.
    pub width_of_sample: usize,
}

impl Image<'_> {
    /// # Errors
    /// When it has no pixels, longer sides, other numbers of channels, or bytes that are not those of its pixels.
    fn check(&self, name: &str, longest: usize, channels: &[usize]) -> Result<()> {
        self.check_sides(name, longest, channels)?;
        let expected = self.height * self.width * self.channels * self.width_of_sample;
        if self.bytes.len() != expected {
            return Err(Error::internal(format!(
                "an image of {} bytes, expected {expected}",
                self.bytes.len()
            )));
        }
        Ok(())
    }

    fn check_sides(&self, name: &str, longest: usize, channels: &[usize]) -> Result<()> {
        let &Self { height, width, channels: found, .. } = self;
        if height == 0 || width == 0 || height.max(width) > longest {
            return Err(Error::invalid(format!(
                "an image of {height} x {width} pixels cannot be a {name}, expected sides of 1 to {longest}"
            )));
        }
        if !channels.contains(&found) {
            return Err(Error::invalid(format!(
                "an image of {found} channels cannot be a {name}, expected one of {channels:?}"
            )));
        }
        Ok(())
    }

    /// # Errors
    /// Invalid, when it has sides or channels that no JPEG has, wherever its bytes are.
    pub fn check_for_jpeg(&self) -> Result<()> {
        self.check_sides("JPEG", MAX_JPEG_SIDE, &[1, 3])
    }
}

/// How chroma of a JPEG is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subsampling {
    /// As often as luma.
    S444,
    /// Half as often along rows.
    S422,
    /// Half as often along both sides.
    S420,
}

/// How a JPEG is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jpeg {
    /// 1 to 100.
    pub quality: i32,
    /// Of its chroma.
    pub subsampling: Subsampling,
    /// Whether codes are made for the image: a smaller file, and more work.
    pub optimize: bool,
    /// Whether it comes in scans, each of which shows more.
    pub progressive: bool,
}

/// `image`, of gray or of red, green and blue, as a JPEG.
///
/// # Errors
/// Invalid, for an image that no JPEG is; what libjpeg-turbo refuses.
pub fn jpeg(image: &Image<'_>, how: &Jpeg) -> Result<Vec<u8>> {
    image.check("JPEG", MAX_JPEG_SIDE, &[1, 3])?;
    let &Image { bytes: pixels, height, width, channels, .. } = image;
    let (format, subsampling) = match (channels, how.subsampling) {
        (1, _) => (PixelFormat::GRAY, Subsamp::Gray),
        (_, Subsampling::S444) => (PixelFormat::RGB, Subsamp::None),
        (_, Subsampling::S422) => (PixelFormat::RGB, Subsamp::Sub2x1),
        (_, Subsampling::S420) => (PixelFormat::RGB, Subsamp::Sub2x2),
    };
    let compress = || {
        let mut compressor = Compressor::new()?;
        compressor.set_quality(how.quality)?;
        compressor.set_subsamp(subsampling)?;
        compressor.set_optimize(how.optimize)?;
        compressor.set_progressive(how.progressive)?;
        compressor.compress_to_vec(turbojpeg::Image {
            pixels,
            width,
            pitch: width * channels,
            height,
            format,
        })
    };
    compress()
        .map_err(|error: turbojpeg::Error| Error::invalid(format!("the image cannot be a JPEG: {error}")))
}

/// What a JPEG begins with, and what that says of what follows.
#[derive(Debug, Clone)]
pub struct JpegHead {
    /// Everything before the coded blocks, of an image of one pixel.
    pub bytes: Vec<u8>,
    /// Where among them the height and the width are, of two bytes each.
    pub sides_at: usize,
    /// Divisors of coefficients, in their order in the file: of luma and, in a file of colours, of chroma.
    pub steps: Vec<[u8; 64]>,
    /// Codes of luma and chroma, as [`JpegCodes`] has them.
    pub codes: Vec<JpegCodes>,
}

/// The codes of a component: for the sizes of means, and for coefficients, by 16 times the zeros before one and its
/// size. Each is its bits and how many these are; 0 of what has none.
#[derive(Debug, Clone)]
pub struct JpegCodes {
    /// Of means.
    pub means: [(u16, u8); 16],
    /// Of coefficients.
    pub coefficients: [(u16, u8); 256],
}

/// The codes that a segment's table stands for: how many there are of each length, then what they are of.
fn codes<const N: usize>(table: &[u8]) -> Option<[(u16, u8); N]> {
    let (counts, mut symbols) = (table.get(..16)?, table.get(16..)?.iter());
    let (mut found, mut next) = ([(0, 0); N], 0_u16);
    for (length, &count) in (1..).zip(counts) {
        for _ in 0..count {
            *found.get_mut(usize::from(*symbols.next()?))? = (next, length);
            next = next.wrapping_add(1);
        }
        next = next.wrapping_shl(1);
    }
    Some(found)
}

impl JpegHead {
    /// The head of files of so many channels.
    ///
    /// # Errors
    /// Those of [`jpeg`]; internal, for a head that is not of such a file.
    pub fn new(channels: usize, how: &Jpeg) -> Result<Self> {
        let image =
            Image { bytes: &[0; 3][..channels.min(3)], height: 1, width: 1, channels, width_of_sample: 1 };
        let file = jpeg(&image, how)?;
        Self::of(&file).ok_or_else(|| Error::internal("the head of a JPEG is another than expected"))
    }

    fn of(file: &[u8]) -> Option<Self> {
        const TABLES: u8 = 0xDB;
        const FRAME: u8 = 0xC0;
        const CODES: u8 = 0xC4;
        const SCAN: u8 = 0xDA;
        let (mut at, mut sides_at, mut steps) = (2, None, Vec::new());
        let (mut means, mut coefficients) = (Vec::new(), Vec::new());
        loop {
            let &[0xFF, marker, high, low] = file.get(at..at + 4)? else { return None };
            let end = at + 2 + usize::from(u16::from_be_bytes([high, low]));
            let body = file.get(at + 4..end)?;
            match (marker, body) {
                // A byte says which table this is: they come in their order.
                (TABLES, [_, table @ ..]) => steps.push(table.try_into().ok()?),
                // Of codes it says, in addition, of what.
                (CODES, [kind, table @ ..]) if kind >> 4 == 0 => means.push(codes(table)?),
                (CODES, [_, table @ ..]) => coefficients.push(codes(table)?),
                (FRAME, [8, ..]) => sides_at = Some(at + 5),
                _ => {}
            }
            at = end;
            if marker == SCAN {
                break;
            }
        }
        let pairs = means.into_iter().zip(coefficients);
        let codes = pairs.map(|(means, coefficients)| JpegCodes { means, coefficients }).collect();
        Some(Self { bytes: file.get(..at)?.to_vec(), sides_at: sides_at?, steps, codes })
    }
}

/// `image`, of gray or colours, with alpha or without, as a PNG; `level` is 0, stored, to 9, smallest.
///
/// # Errors
/// Invalid, for an image that no PNG is.
pub fn png(image: &Image<'_>, level: u8) -> Result<Vec<u8>> {
    image.check("PNG", i32::MAX as usize, &[1, 2, 3, 4])?;
    let color = match (image.channels, image.width_of_sample) {
        (1, 1) => ExtendedColorType::L8,
        (2, 1) => ExtendedColorType::La8,
        (3, 1) => ExtendedColorType::Rgb8,
        (4, 1) => ExtendedColorType::Rgba8,
        (1, _) => ExtendedColorType::L16,
        (2, _) => ExtendedColorType::La16,
        (3, _) => ExtendedColorType::Rgb16,
        _ => ExtendedColorType::Rgba16,
    };
    let compression = if level == 0 { CompressionType::Uncompressed } else { CompressionType::Level(level) };
    let mut file = Vec::new();
    PngEncoder::new_with_quality(&mut file, compression, FilterType::Adaptive)
        .write_image(image.bytes, image.width as u32, image.height as u32, color)
        .map_err(|error| Error::invalid(format!("the image cannot be a PNG: {error}")))?;
    Ok(file)
}

/// How a WebP is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WebP {
    /// 0 to 100; of a lossless one how much is tried.
    pub quality: f32,
    /// Whether pixels stay what they are.
    pub lossless: bool,
    /// 0, fastest, to 6, smallest.
    pub method: i32,
}

/// `image`, of red, green and blue, with alpha or without, as a WebP.
///
/// # Errors
/// Invalid, for an image that no WebP is; what libwebp refuses.
pub fn webp(image: &Image<'_>, how: &WebP) -> Result<Vec<u8>> {
    image.check("WebP", MAX_WEBP_SIDE, &[3, 4])?;
    let mut config = WebPConfig::new().map_err(|()| Error::internal("no configuration of libwebp"))?;
    (config.quality, config.lossless, config.method) = (how.quality, i32::from(how.lossless), how.method);
    // Colours where nothing is seen stay, too.
    config.exact = i32::from(how.lossless);
    let layout = if image.channels == 4 { PixelLayout::Rgba } else { PixelLayout::Rgb };
    Encoder::new(image.bytes, layout, image.width as u32, image.height as u32)
        .encode_advanced(&config)
        .map(|file| file.to_vec())
        .map_err(|error| Error::invalid(format!("the image cannot be a WebP: {error:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(quality: i32) -> Jpeg {
        Jpeg { quality, subsampling: Subsampling::S420, optimize: false, progressive: false }
    }

    #[test]
    fn a_head_says_what_follows() {
        let image = Image { bytes: &[90; 7 * 9 * 3], height: 7, width: 9, channels: 3, width_of_sample: 1 };
        let file = jpeg(&image, &how(90)).unwrap();
        let mut head = JpegHead::new(3, &how(90)).unwrap();
        head.bytes[head.sides_at..head.sides_at + 4].copy_from_slice(&[0, 7, 0, 9]);
        assert_eq!(head.bytes, file[..head.bytes.len()]);
        // Of the tables that T.81 recommends, at a fifth of their size.
        assert_eq!((head.steps[0][0], head.steps[1][63]), (3, 20));
        let [luma, chroma] = &head.codes[..] else { panic!("{} codes", head.codes.len()) };
        assert_eq!((luma.means[0], chroma.means[11]), ((0, 2), (0x7FE, 11)));
        assert_eq!((luma.coefficients[0], chroma.coefficients[0xF0]), ((0xA, 4), (0x3FA, 10)));
        assert_eq!((luma.means[12], chroma.coefficients[0xFB]), ((0, 0), (0, 0)));
        let gray = JpegHead::new(1, &how(1)).unwrap();
        assert_eq!((gray.steps.len(), gray.codes.len(), gray.steps[0][63]), (1, 1, 255));
    }

    #[test]
    fn what_ends_early_has_no_head() {
        let head = JpegHead::new(3, &how(50)).unwrap().bytes;
        assert!(JpegHead::of(&head).is_some());
        assert!((0..head.len()).all(|end| JpegHead::of(&head[..end]).is_none()));
    }
}
