//! WebP by libwebp; as a picture the first frame of an animation. It must not know other formats.

mod animation;

use std::borrow::Cow;

use webp::{BitstreamFeatures, Decoder, WebPImage};

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::orientation::{Orientation, from_exif_block};
use super::picture::{Picture, Samples};
use super::profile::Profile;
use super::{ColorSpace, Header, Job};
use crate::error::{Error, Result};
pub(super) use animation::{animation, frame_count};

/// Where the first chunk is.
const CHUNKS_AT: usize = 12;

/// Bytes of a chunk's name and length.
const CHUNK_HEADER: usize = 8;

/// Nanoseconds for each pixel of a lossy one, which takes longer than others.
const PIXEL: f64 = 17.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "WebP",
    parameter: "webp",
    is_one: |bytes| matches!(bytes, [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile,
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: image.pixels * PIXEL,
        // Of a lossless one what was decoded, and its pixels.
        scratch: 8.0 * image.pixels,
    },
};

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    let features = features(bytes)?;
    Ok(Header {
        width: features.width() as usize,
        height: features.height() as usize,
        channels: channels(&features),
        bit_depth: 8,
        orientation: chunk(bytes, b"EXIF").map_or(Orientation::default(), from_exif_block),
        halves: false,
    })
}

/// The file's profile.
fn profile(bytes: &[u8]) -> Result<Option<Profile<'_>>> {
    Ok(chunk(bytes, b"ICCP").map(|profile| Profile::Icc(Cow::Borrowed(profile))))
}

fn features(bytes: &[u8]) -> Result<BitstreamFeatures> {
    BitstreamFeatures::new(bytes).ok_or_else(|| Error::invalid("truncated or damaged header"))
}

fn channels(features: &BitstreamFeatures) -> usize {
    if features.has_alpha() { 4 } else { 3 }
}

/// Names and contents of the chunks that are whole.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut rest = bytes.get(CHUNKS_AT..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (name, behind) = rest.split_first_chunk::<4>()?;
        let (size, behind) = behind.split_first_chunk::<4>()?;
        let size = u32::from_le_bytes(*size) as usize;
        let body = behind.get(..size)?;
        // Chunks are padded to an even size.
        rest = behind.get(size.next_multiple_of(2)..).unwrap_or_default();
        Some((name, body))
    })
}

/// The contents of the first chunk of this name, if all of them are there.
fn chunk<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    chunks(bytes).find(|(found, _)| *found == name).map(|(_, body)| body)
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    job.must_end_in_time()?;
    let features = features(bytes)?;
    let channels = channels(&features);
    if features.has_animation() {
        let canvas = animation::first_frame(bytes, job.info.stored_size(), channels)?;
        return write(&canvas, channels, job, out);
    }
    let image = pixels(bytes, bytes)?;
    write(&image, channels, job, out)
}

/// Decodes `image`, which is the file `bytes` or a frame of it.
fn pixels(image: &[u8], bytes: &[u8]) -> Result<WebPImage> {
    Decoder::new(image).decode().ok_or_else(|| match bytes {
        &[_, _, _, _, s0, s1, s2, s3, ..]
            if u32::from_le_bytes([s0, s1, s2, s3]) as usize + CHUNK_HEADER > bytes.len() =>
        {
            Error::invalid(format!(
                "truncated: the input of {} bytes ends before the image does",
                bytes.len()
            ))
        }
        _ => Error::invalid("damaged: libwebp cannot decode it"),
    })
}

/// Writes what `job` asks for of a picture of so many `channels`.
fn write(samples: &[u8], channels: usize, job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let as_asked = match job.options.color {
        ColorSpace::Rgb => channels == 3,
        ColorSpace::Any => channels == job.info.channels,
        ColorSpace::Bgr | ColorSpace::Gray | ColorSpace::YCbCr => false,
    };
    if job.is_plain() && as_asked && samples.len() == out.len() {
        out.copy_from_slice(samples);
        return Ok(());
    }
    Picture { samples: Samples::U8(samples), channels, luma: Luma::Bits15 }.write(job, out)
}
