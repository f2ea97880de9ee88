//! Strips and tiles that are files of other formats: JPEGs, of which the TIFF may hold the tables apart, JPEG 2000,
//! JPEG XL, WebP and PNG. Our own decoders decode them, so that a JPEG is as libjpeg-turbo's, which libtiff uses.

use std::borrow::Cow;

use super::super::{ColorSpace, Conditions, DecodeOptions, Format, Job, Window};
use super::super::{jpeg, jpeg_xl, jpeg2000, png, webp};
use super::colors::Pixels;
use super::layout::{Colors, Layout, compression as by, tag};
use super::pixels::{Part, memory, parts};
use crate::error::{Context, Error, Result};
use crate::memory::grow;
use crate::tensor::DType;

const START: [u8; 2] = [0xFF, 0xD8];
const END: [u8; 2] = [0xFF, 0xD9];
const FIRST_SCAN: u8 = 0xDA;
/// Segments that say what colours are, which the TIFF says.
const ABOUT_COLORS: [u8; 2] = [0xE0, 0xEE];

/// The format that strips and tiles of this compression have.
pub(super) fn format(compression: u16) -> Option<Format> {
    match compression {
        by::JPEG => Some(Format::Jpeg),
        by::JPEG_2000 | by::APERIO_JPEG_2000 => Some(Format::Jpeg2000),
        by::JPEG_XL | by::DNG_JPEG_XL => Some(Format::JpegXl),
        by::WEBP => Some(Format::WebP),
        by::PNG => Some(Format::Png),
        _ => None,
    }
}

/// The samples that are kept, and whether they are gray or RGB already.
///
/// # Errors
/// Files that are damaged, or not what the tags say; when nobody waits any more.
pub(super) fn read(
    layout: &Layout<'_>,
    format: Format,
    jpegs: &jpeg::Decoder,
    conditions: Conditions<'_>,
) -> Result<(Pixels, bool)> {
    let files = Files { layout, format, jpegs, conditions };
    if format == Format::Jpeg {
        let has_samples = matches!(layout.colors, Colors::WhiteIsZero | Colors::Gray | Colors::Rgb);
        if let bits @ 9..=16 = layout.bits
            && has_samples
        {
            let mut samples = files.samples(DType::U16)?;
            as_stored(&mut samples, bits);
            return Ok((Pixels::U16(samples), false));
        }
        if layout.bits != 8 {
            return Err(Error::unsupported(format!(
                "JPEGs with samples of {} bits for colours of {:?}, expected 8, or 9 to 16 for gray and RGB",
                layout.bits, layout.colors
            )));
        }
        let is_done = matches!(layout.colors, Colors::YCbCr | Colors::Inks);
        return Ok((Pixels::U8(files.samples(DType::U8)?), is_done));
    }
    if !matches!(layout.colors, Colors::WhiteIsZero | Colors::Gray | Colors::Rgb) {
        return Err(Error::unsupported(format!(
            "colours of {:?} in strips or tiles of {format}",
            layout.colors
        )));
    }
    match layout.bits {
        8 => Ok((Pixels::U8(files.samples(DType::U8)?), false)),
        16 => Ok((Pixels::U16(files.samples(DType::U16)?), false)),
        bits => Err(Error::unsupported(format!("{format} with samples of {bits} bits, expected 8 or 16"))),
    }
}

struct Files<'a> {
    layout: &'a Layout<'a>,
    format: Format,
    jpegs: &'a jpeg::Decoder,
    conditions: Conditions<'a>,
}

impl Files<'_> {
    fn samples<T: bytemuck::Pod + Default>(&self, dtype: DType) -> Result<Vec<T>> {
        let layout = self.layout;
        let chunks = layout.chunks()?;
        chunks.check_size(layout, size_of::<T>())?;
        let tables = layout.directory.raw(tag::JPEG_TABLES)?;
        let kept = layout.kept();
        let mut samples = memory::<T>(layout)?;
        let mut decoded = Vec::new();
        let most =
            [chunks.width, if chunks.is_tiled { chunks.height } else { chunks.height.next_multiple_of(16) }];
        for part in parts(layout, &chunks) {
            let data = chunks.bytes(part.index, None)?;
            let file = match self.format {
                Format::Jpeg => Cow::from(whole_jpeg(data, tables, self.transform())?),
                _ => Cow::from(data),
            };
            let of_file = self.decode(&file, part, most, dtype, &mut decoded)?;
            for (y, row) in decoded.chunks_exact(part.width * of_file).enumerate() {
                let start = ((part.top + y) * layout.width + part.left) * kept;
                let to = samples[start..start + part.width * kept].chunks_exact_mut(kept);
                for (to, from) in to.zip(row.chunks_exact(of_file)) {
                    if layout.planar {
                        to[part.plane] = from[0];
                        continue;
                    }
                    let (known, rest) = to.split_at_mut(of_file.min(kept));
                    known.copy_from_slice(&from[..known.len()]);
                    // Inks have become red, green and blue, which are opaque.
                    rest.fill(full(dtype));
                }
            }
        }
        Ok(samples)
    }

    /// What Adobe's segment would say of the colours.
    fn transform(&self) -> Option<u8> {
        match self.layout.colors {
            _ if self.layout.planar => None,
            Colors::YCbCr => Some(1),
            Colors::Inks => None,
            _ if self.layout.samples == 3 => Some(0),
            _ => None,
        }
    }

    /// Decodes what is shown of a part. Returns the samples of a pixel.
    fn decode<T: bytemuck::Pod>(
        &self,
        file: &[u8],
        part: Part,
        most: [usize; 2],
        dtype: DType,
        decoded: &mut Vec<T>,
    ) -> Result<usize> {
        let header = match self.format {
            Format::Jpeg => jpeg::header(file),
            Format::Jpeg2000 => jpeg2000::header(file),
            Format::JpegXl => jpeg_xl::header(file),
            Format::WebP => webp::header(file),
            _ => png::header(file),
        }
        .context(|| format!("a strip or tile of {}", self.format))?;
        let samples = if self.layout.planar { 1 } else { self.layout.samples };
        let fits = |length: usize, shown: usize, most: usize| (shown..=most).contains(&length);
        if !fits(header.width, part.width, most[0])
            || !fits(header.height, part.height, most[1])
            || header.channels != samples
        {
            return Err(Error::invalid(format!(
                "damaged: a {} of {} x {} pixels of {} samples in place of {} x {} of {samples}",
                self.format, header.width, header.height, header.channels, part.width, part.height
            )));
        }
        if self.format == Format::Jpeg && header.bit_depth != self.layout.bits {
            return Err(Error::invalid(format!(
                "damaged: a JPEG with samples of {} bits, expected {}",
                header.bit_depth, self.layout.bits
            )));
        }
        let color = match (self.format, samples) {
            (Format::Jpeg, 3 | 4) => ColorSpace::Rgb,
            _ => ColorSpace::Any,
        };
        let of_file = if color == ColorSpace::Rgb { 3 } else { samples };
        let info = header.as_stored(self.format);
        let window = Some(Window { x: 0, y: 0, width: part.width, height: part.height });
        let options = DecodeOptions { color, dtype, window, ..DecodeOptions::default() };
        let job = Job::new(file, &info, &options, self.conditions)?;
        decoded.clear();
        grow(decoded, part.width * part.height * of_file, T::zeroed())?;
        let out = bytemuck::cast_slice_mut(decoded);
        match self.format {
            Format::Jpeg => self.jpegs.decode(file, &job, out),
            Format::Jpeg2000 => jpeg2000::decode(file, &job, out),
            Format::JpegXl => jpeg_xl::decode(file, &job, out),
            Format::WebP => webp::decode(file, &job, out),
            _ => png::decode(file, &job, out),
        }
        .context(|| format!("a strip or tile of {}", self.format))?;
        Ok(of_file)
    }
}

/// Makes samples that fill the whole range those of so many bits again, at the top of 16 as [`super::pixels`] has them.
fn as_stored(samples: &mut [u16], bits: usize) {
    let (most, full) = ((1_u32 << bits) - 1, u32::from(u16::MAX));
    for sample in samples {
        *sample = (((u32::from(*sample) * most + full / 2) / full) << (16 - bits)) as u16;
    }
}

/// Full intensity.
fn full<T: bytemuck::Pod>(dtype: DType) -> T {
    let ones = if dtype == DType::U8 { 0xFF_u16 } else { 0xFFFF };
    bytemuck::pod_read_unaligned(&ones.to_ne_bytes()[..size_of::<T>()])
}

/// A file of its own: the tables, and what says whether colours are transformed, which TIFF says elsewhere.
pub(super) fn whole_jpeg(data: &[u8], tables: &[u8], transform: Option<u8>) -> Result<Vec<u8>> {
    let data =
        data.strip_prefix(&START).ok_or_else(|| Error::invalid("damaged: no JPEG in a strip or tile"))?;
    let tables = tables.strip_prefix(&START).unwrap_or_default();
    let tables = tables.strip_suffix(&END).unwrap_or(tables);
    let mut file = START.to_vec();
    if let Some(transform) = transform {
        file.extend(b"\xFF\xEE\x00\x0EAdobe\x00\x64\x00\x00\x00\x00");
        file.push(transform);
    }
    without_colors(tables, &mut file);
    without_colors(data, &mut file);
    Ok(file)
}

/// Adds segments to a file, but for those about colours. What is odd is left to who decodes it.
fn without_colors(segments: &[u8], file: &mut Vec<u8>) {
    let mut rest = segments;
    while let &[0xFF, marker, high, low, ..] = rest {
        let length = 2 + usize::from(u16::from_be_bytes([high, low]));
        if matches!(marker, FIRST_SCAN | 0xFF) || length > rest.len() {
            break;
        }
        let (segment, behind) = rest.split_at(length);
        if !ABOUT_COLORS.contains(&marker) {
            file.extend(segment);
        }
        rest = behind;
    }
    file.extend(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_fewer_bits_are_at_the_top() {
        for bits in [9, 12, 15, 16] {
            let most = (1_u64 << bits) - 1;
            let levels: Vec<u16> = (0..=most as u16).collect();
            let mut found: Vec<u16> =
                levels.iter().map(|&level| ((u64::from(level) * 65_535 + most / 2) / most) as u16).collect();
            as_stored(&mut found, bits);
            assert!(found.iter().zip(&levels).all(|(found, level)| *found == level << (16 - bits)), "{bits}");
        }
    }

    #[test]
    fn what_a_jpeg_says_of_its_colours_is_left_out() {
        let tables = b"\xFF\xD8\xFF\xDB\0\x03\x07\xFF\xD9";
        let data = b"\xFF\xD8\xFF\xE0\0\x04JF\xFF\xC4\0\x02\xFF\xEE\0\x02\xFF\xDA\0\x02\xFF\xE0";
        let file = whole_jpeg(data, tables, None).expect("a JPEG");
        assert_eq!(file, b"\xFF\xD8\xFF\xDB\0\x03\x07\xFF\xC4\0\x02\xFF\xDA\0\x02\xFF\xE0");
        assert!(whole_jpeg(&file, &[], Some(1)).expect("a JPEG").starts_with(b"\xFF\xD8\xFF\xEE"));
        assert!(whole_jpeg(b"no", tables, None).is_err());
    }
}
