//! JPEG 2000 by crate `hayro-jpeg2000`: files with boxes, and bare codestreams. What it takes is told before the crate sees
//! the file (`price`): the crate cannot be interrupted. It must not know other formats.

mod codestream;
mod price;
mod tile;

use hayro_jpeg2000::{ColorSpace, DecodeError, DecodeSettings, DecoderContext, Image};

use super::color::Luma;
use super::orientation::Orientation;
use super::picture::{Picture, Samples};
use super::{Header, Job};
use crate::error::{Error, Result};
use crate::limits;

use codestream::Codestream;

/// Most channels of an image, alpha included.
const MAX_CHANNELS: usize = codestream::MAX_COMPONENTS;

/// Most bits of a sample.
const MAX_BITS: u8 = 16;

fn failed(error: DecodeError) -> Error {
    Error::invalid(format!("damaged: {error}"))
}

/// What is damaged is an error, not shown as far as it goes.
fn open(bytes: &[u8]) -> Result<Image<'_>> {
    Image::new(bytes, &DecodeSettings { strict: true, ..DecodeSettings::default() }).map_err(failed)
}

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    Codestream::open(bytes)?;
    let image = open(bytes)?;
    let bits = image.original_bit_depth();
    if let ColorSpace::CMYK = image.color_space() {
        return Err(Error::unsupported("an image of inks, expected gray or red, green and blue"));
    }
    if !(1..=MAX_BITS).contains(&bits) {
        return Err(Error::unsupported(format!("samples of {bits} bits, expected 1 to {MAX_BITS}")));
    }
    let channels = usize::from(image.color_space().num_channels()) + usize::from(image.has_alpha());
    if !(1..=MAX_CHANNELS).contains(&channels) {
        return Err(Error::unsupported(format!("{channels} channels, expected 1 to {MAX_CHANNELS}")));
    }
    let (width, height) = (image.width() as usize, image.height() as usize);
    if width.saturating_mul(height).saturating_mul(channels) > limits::MAX_JPEG_2000_SAMPLES {
        return Err(Error::invalid(format!(
            "{width} x {height} pixels of {channels} channels are more than the limit of {} samples",
            limits::MAX_JPEG_2000_SAMPLES
        )));
    }
    Ok(Header {
        width,
        height,
        channels,
        bit_depth: usize::from(bits),
        orientation: Orientation::default(),
        halves: false,
    })
}

/// What decoding takes: bytes beside the samples that are made of what the crate gives, and nanoseconds. Nothing where it will be refused.
pub(super) fn price(bytes: &[u8]) -> (f64, f64) {
    price::price(bytes).map_or((0.0, 0.0), |price| (price.bytes as f64, price.nanoseconds))
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    price::price(bytes)?;
    job.must_end_in_time()?;
    let image = open(bytes)?;
    let mut context = DecoderContext::default();
    let decoded = image.decode(&mut context).map_err(failed)?;
    let (channels, pixels) = (job.info.channels, job.info.width * job.info.height);
    let planes: Vec<(&[f32], u8)> =
        decoded.components().iter().map(|plane| (plane.samples(), plane.bit_depth())).collect();
    if planes.len() != channels || planes.iter().any(|(samples, _)| samples.len() != pixels) {
        return Err(Error::unsupported(format!(
            "{} planes of samples, expected {channels} as large as the image",
            planes.len()
        )));
    }
    if job.info.bit_depth <= 8 {
        let samples = interleaved(&planes, 255.0, |value| value as u8);
        Picture { samples: Samples::U8(&samples), channels, luma: Luma::Bits15 }.write(job, out)
    } else {
        let samples = interleaved(&planes, 65535.0, |value| value as u16);
        Picture { samples: Samples::U16(&samples), channels, luma: Luma::Bits15 }.write(job, out)
    }
}

/// The samples pixel by pixel, as integers of which `full` is the largest.
fn interleaved<T: Copy + Default>(planes: &[(&[f32], u8)], full: f32, to: impl Fn(f32) -> T) -> Vec<T> {
    let pixels = planes.first().map_or(0, |(samples, _)| samples.len());
    let mut all = vec![T::default(); pixels * planes.len()];
    for (channel, &(samples, bits)) in planes.iter().enumerate() {
        let scale = full / ((1u32 << bits.clamp(1, 31)) - 1) as f32;
        for (sample, pixel) in samples.iter().zip(all.chunks_exact_mut(planes.len())) {
            pixel[channel] = to((sample * scale).round_ties_even());
        }
    }
    all
}
