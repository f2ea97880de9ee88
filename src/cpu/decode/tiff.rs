//! TIFF by crate `tiff`: the first image of a file. What that crate lacks is in `palette` and `packed`, and in `strips`
//! what is to be as libtiff has it.

mod edit;
mod extent;
mod packed;
mod palette;
mod strips;

use std::io::{Cursor, Read, Seek};

use ::tiff::decoder::{Decoder, DecodingResult, Limits};
use ::tiff::tags::Tag;
use ::tiff::{ColorType, TiffError};

use super::color::{Luma, rgb_of_tiff_ycbcr};
use super::jpeg;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::watched::Watched;
use super::{Header, Job};
use crate::error::{Error, Result};
use crate::limits;

/// Bytes of numbers that a tag may have, such as those of a palette.
const TAG_BYTES: usize = 16 << 20;

fn open<R: Read + Seek>(file: R) -> Result<Decoder<R>> {
    Ok(Decoder::new(file).map_err(failed)?.with_limits(tiff_limits(TAG_BYTES)))
}

fn tiff_limits(pixel_bytes: usize) -> Limits {
    let mut allowed = Limits::default();
    allowed.decoding_buffer_size = pixel_bytes;
    allowed.intermediate_buffer_size = limits::MAX_DECODER_SCRATCH_BYTES;
    allowed
}

fn failed(error: TiffError) -> Error {
    match error {
        TiffError::UnsupportedError(error) => Error::unsupported(error.to_string()),
        TiffError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            Error::invalid("truncated: the input ends before the image does")
        }
        TiffError::LimitsExceeded => Error::invalid(format!(
            "damaged: decoding takes more memory than the limit of {} bytes beside the pixels",
            limits::MAX_DECODER_SCRATCH_BYTES
        )),
        error => Error::invalid(format!("damaged: {error}")),
    }
}

/// Reads the header of the first image.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    extent::check(bytes)?;
    let mut decoder = open(Cursor::new(bytes))?;
    let (width, height) = decoder.dimensions().map_err(failed)?;
    let palette = palette::bits(&mut decoder)?;
    let color =
        palette.map_or_else(|| decoder.colortype().map_err(failed), |bits| Ok(ColorType::Palette(bits)))?;
    let (channels, bit_depth) = match color {
        ColorType::Gray(bits) => (1, bits),
        ColorType::GrayA(bits) => (2, bits),
        ColorType::RGB(bits) | ColorType::YCbCr(bits) | ColorType::Palette(bits) => (3, bits),
        ColorType::RGBA(bits) | ColorType::CMYK(bits) => (4, bits),
        ColorType::Multiband { bit_depth, num_samples: samples @ 1..=4 } => (samples, bit_depth),
        other => return Err(Error::unsupported(format!("pixels of type {other:?}"))),
    };
    if matches!(bit_depth, 17..=31) {
        let text = format!("samples of {bit_depth} bits, expected 1 to 16, or 32");
        return Err(Error::unsupported(text));
    }
    let turn = decoder.find_tag(Tag::Orientation).ok().flatten().and_then(|value| value.into_u32().ok());
    Ok(Header {
        width: width as usize,
        height: height as usize,
        channels: usize::from(channels),
        bit_depth: usize::from(bit_depth),
        orientation: Orientation::from_exif(turn.unwrap_or(1)),
        halves: false,
    })
}

/// Bytes of codes that are read, where the same ones may be read again and again.
pub(super) fn coded_bytes(bytes: &[u8]) -> u64 {
    extent::coded_bytes(bytes)
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], jpegs: &jpeg::Decoder, job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let samples = job.info.width * job.info.height * job.info.channels;
    extent::check_coded_bytes(bytes, samples * job.info.bit_depth.div_ceil(8))?;
    let mut decoder = open(Watched::new(bytes, job.conditions.watch))?;
    if let Some(bits) = palette::bits(&mut decoder)? {
        let colors = palette::colors(&mut decoder, bits)?;
        let gray = palette::as_gray(bytes, &mut decoder)?;
        return decode_samples(open(Watched::new(&gray, job.conditions.watch))?, Some(&colors), job, out);
    }
    if let Some(samples) = strips::decode(bytes, &mut decoder, jpegs, job)? {
        let channels = job.info.channels;
        return Picture { samples: Samples::U8(&samples), channels, luma: Luma::Float }.write(job, out);
    }
    if let Some(samples) = packed::decode(bytes, &mut decoder, job)? {
        let (channels, luma) = (job.info.channels, packed::luma(job.info.bit_depth));
        return Picture { samples: Samples::U16(&samples), channels, luma }.write(job, out);
    }
    decode_samples(decoder, None, job, out)
}

/// Decodes by crate `tiff`; samples are places among `colors` if there are any.
fn decode_samples<R: Read + Seek>(
    mut decoder: Decoder<R>,
    colors: Option<&[[u16; 3]]>,
    job: &Job<'_>,
    out: &mut [u8],
) -> Result<()> {
    let (width, height) = job.info.stored_size();
    let channels = job.info.channels;
    let color = decoder.colortype().map_err(failed)?;
    let layout = decoder.image_buffer_layout().map_err(failed)?;
    // A row may be padded to whole bytes, but nothing makes a sample larger than its bits say.
    let allowed = (width * channels * job.info.bit_depth).div_ceil(8).saturating_mul(height);
    if layout.complete_len > allowed.min(limits::MAX_SAMPLE_BYTES) {
        return Err(Error::invalid(format!(
            "the pixels take {} bytes, more than {} or than the limit of {}",
            layout.complete_len,
            allowed,
            limits::MAX_SAMPLE_BYTES
        )));
    }
    let mut decoder = decoder.with_limits(tiff_limits(layout.complete_len));
    let mut decoded = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut decoded).map_err(failed)?;
    let planes = layout.planes;
    let luma = Luma::Float;
    if let Some(colors) = colors {
        let color = |place: u16| colors[usize::from(place)];
        let bits = job.info.bit_depth;
        let samples: Vec<u16> = match decoded {
            DecodingResult::U8(places) if bits < 8 => {
                let places = unpack(&places, width, height, bits, (1 << bits) - 1);
                places.iter().flat_map(|&place| color(place.into())).collect()
            }
            DecodingResult::U8(places) => places.iter().flat_map(|&place| color(place.into())).collect(),
            DecodingResult::U16(places) => places.iter().flat_map(|&place| color(place)).collect(),
            _ => return Err(Error::unsupported("places in a palette that are not unsigned")),
        };
        return Picture { samples: Samples::U16(&samples), channels, luma }.write(job, out);
    }
    match decoded {
        DecodingResult::U8(samples) if job.info.bit_depth < 8 => {
            let bits = job.info.bit_depth;
            let samples = unpack(&samples, width * channels, height, bits, 255);
            Picture { samples: Samples::U8(&samples), channels, luma }.write(job, out)
        }
        DecodingResult::U8(samples) => {
            let mut samples = interleave(samples, planes);
            match color {
                ColorType::YCbCr(_) => {
                    samples.as_chunks_mut().0.iter_mut().for_each(|p| *p = rgb_of_tiff_ycbcr(*p));
                }
                ColorType::CMYK(_) => samples.as_chunks_mut().0.iter_mut().for_each(|p| *p = rgb_of_inks(*p)),
                _ => {}
            }
            Picture { samples: Samples::U8(&samples), channels, luma }.write(job, out)
        }
        DecodingResult::U16(samples) => {
            let mut samples = interleave(samples, planes);
            if let ColorType::CMYK(_) = color {
                samples.as_chunks_mut().0.iter_mut().for_each(|p| *p = rgb_of_wide_inks(*p));
            }
            Picture { samples: Samples::U16(&samples), channels, luma }.write(job, out)
        }
        DecodingResult::F32(samples) => {
            let samples = interleave(samples, planes);
            Picture { samples: Samples::F32(&samples), channels, luma }.write(job, out)
        }
        _ => Err(Error::unsupported(format!(
            "samples of {} bits in this format, expected unsigned 8 or 16 bits or floating point of 32",
            job.info.bit_depth
        ))),
    }
}

/// RGB and full alpha of inks where 255 is all of it.
fn rgb_of_inks([c, m, y, k]: [u8; 4]) -> [u8; 4] {
    let light = |ink: u8| (u16::from(255 - ink) * u16::from(255 - k) / 255) as u8;
    [light(c), light(m), light(y), 255]
}

/// As [`rgb_of_inks`] where 65,535 is all of it.
fn rgb_of_wide_inks([c, m, y, k]: [u16; 4]) -> [u16; 4] {
    let light = |ink: u16| (u32::from(u16::MAX - ink) * u32::from(u16::MAX - k) / u32::from(u16::MAX)) as u16;
    [light(c), light(m), light(y), u16::MAX]
}

/// Samples of fewer than 8 bits, rows padded to whole bytes, scaled to 0 to `top`, at most 255.
fn unpack(packed: &[u8], row: usize, height: usize, bits: usize, top: u32) -> Vec<u8> {
    let full = (1_u32 << bits) - 1;
    let stride = (row * bits).div_ceil(8);
    let sample = |line: &[u8], i: usize| {
        let bit = i * bits;
        let pair =
            [line.get(bit / 8), line.get(bit / 8 + 1)].map(|byte| u32::from(byte.copied().unwrap_or(0)));
        let value = ((pair[0] << 8 | pair[1]) >> (16 - bits - bit % 8)) & full;
        (value * top / full) as u8
    };
    packed
        .chunks(stride.max(1))
        .take(height)
        .flat_map(|line| (0..row).map(move |i| sample(line, i)))
        .collect()
}

/// Pixels of planes that follow each other.
fn interleave<T: Copy + Default>(samples: Vec<T>, planes: usize) -> Vec<T> {
    if planes <= 1 {
        return samples;
    }
    let mut pixels = vec![T::default(); samples.len()];
    let plane = samples.len() / planes;
    for (c, from) in samples.chunks_exact(plane.max(1)).take(planes).enumerate() {
        for (pixel, &value) in pixels.chunks_exact_mut(planes).zip(from) {
            pixel[c] = value;
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_become_levels() {
        assert_eq!(unpack(&[0b1010_0000, 0b0100_0000], 3, 2, 1, 255), [255, 0, 255, 0, 255, 0]);
        assert_eq!(unpack(&[0b1101_1000], 3, 1, 2, 3), [3, 1, 2]);
        assert_eq!(unpack(&[0xF0, 0x30], 3, 1, 4, 255), [255, 0, 51]);
    }

    #[test]
    fn inks_take_light_away() {
        assert_eq!(rgb_of_inks([0, 255, 51, 0]), [255, 0, 204, 255]);
        assert_eq!(rgb_of_wide_inks([0, 65_535, 13_107, 0]), [65_535, 0, 52_428, 65_535]);
        assert_eq!(rgb_of_wide_inks([0, 0, 0, 65_535]), [0, 0, 0, 65_535]);
    }

    #[test]
    fn planes_become_pixels() {
        assert_eq!(interleave(vec![1, 2, 3, 4, 5, 6], 3), [1, 3, 5, 2, 4, 6]);
    }
}
