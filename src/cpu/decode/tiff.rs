//! TIFF by crate `tiff`: the first image of a file. It must not know other formats.

use std::io::{Cursor, Read, Seek};

use ::tiff::decoder::{Decoder, DecodingResult, Limits};
use ::tiff::tags::Tag;
use ::tiff::{ColorType, TiffError};

use super::color::{Luma, rgb_of_jpeg_ycbcr};
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::watched::Watched;
use super::{Header, Job};
use crate::error::{Error, Result};
use crate::limits;

fn open<R: Read + Seek>(file: R) -> Result<Decoder<R>> {
    Ok(Decoder::new(file).map_err(failed)?.with_limits(tiff_limits(0)))
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
    let mut decoder = open(Cursor::new(bytes))?;
    let (width, height) = decoder.dimensions().map_err(failed)?;
    let color = decoder.colortype().map_err(failed)?;
    let (channels, bit_depth) = match color {
        ColorType::Gray(bits) => (1, bits),
        ColorType::GrayA(bits) => (2, bits),
        ColorType::RGB(bits) | ColorType::YCbCr(bits) | ColorType::Palette(bits) => (3, bits),
        ColorType::RGBA(bits) | ColorType::CMYK(bits) => (4, bits),
        ColorType::Multiband { bit_depth, num_samples: samples @ 1..=4 } => (samples, bit_depth),
        other => return Err(Error::unsupported(format!("pixels of type {other:?}"))),
    };
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

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let (width, height) = job.info.stored_size();
    let channels = job.info.channels;
    let mut decoder = open(Watched::new(bytes, job.conditions.watch))?;
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
    match decoded {
        DecodingResult::U8(samples) if job.info.bit_depth < 8 => {
            let samples = unpack(&samples, width * channels, height, job.info.bit_depth);
            Picture { samples: Samples::U8(&samples), channels, luma }.write(job, out)
        }
        DecodingResult::U8(samples) => {
            let mut samples = interleave(samples, planes);
            match color {
                ColorType::YCbCr(_) => {
                    samples.as_chunks_mut().0.iter_mut().for_each(|p| *p = rgb_of_jpeg_ycbcr(*p));
                }
                ColorType::CMYK(_) => samples.as_chunks_mut().0.iter_mut().for_each(|p| *p = rgb_of_inks(*p)),
                _ => {}
            }
            Picture { samples: Samples::U8(&samples), channels, luma }.write(job, out)
        }
        DecodingResult::U16(_) if matches!(color, ColorType::CMYK(_)) => {
            Err(Error::unsupported("CMYK of 16 bits, expected 8"))
        }
        DecodingResult::U16(samples) => {
            let samples = interleave(samples, planes);
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

/// Samples of fewer than 8 bits, rows padded to whole bytes, scaled to 8 bits.
fn unpack(packed: &[u8], row: usize, height: usize, bits: usize) -> Vec<u8> {
    let full = (1_u32 << bits) - 1;
    let stride = (row * bits).div_ceil(8);
    let sample = |line: &[u8], i: usize| {
        let bit = i * bits;
        let pair =
            [line.get(bit / 8), line.get(bit / 8 + 1)].map(|byte| u32::from(byte.copied().unwrap_or(0)));
        let value = ((pair[0] << 8 | pair[1]) >> (16 - bits - bit % 8)) & full;
        (value * 255 / full) as u8
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
        assert_eq!(unpack(&[0b1010_0000, 0b0100_0000], 3, 2, 1), [255, 0, 255, 0, 255, 0]);
        assert_eq!(unpack(&[0xF0, 0x30], 3, 1, 4), [255, 0, 51]);
    }

    #[test]
    fn planes_become_pixels() {
        assert_eq!(interleave(vec![1, 2, 3, 4, 5, 6], 3), [1, 3, 5, 2, 4, 6]);
    }
}
