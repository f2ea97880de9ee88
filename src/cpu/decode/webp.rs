//! WebP by libwebp; of an animation the first frame. It must not know other formats.

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
use crate::memory::zeroed;

/// Where the first chunk is.
const CHUNKS_AT: usize = 12;

/// Bytes of a chunk's name and length, and of a frame's place, size and flags before its own chunks.
const CHUNK_HEADER: usize = 8;
const FRAME_HEADER: usize = 16;

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

/// The contents of the first chunk of this name, if all of them are there.
fn chunk<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let mut at = CHUNKS_AT;
    loop {
        let &[a, b, c, d, s0, s1, s2, s3] = bytes.get(at..at.checked_add(CHUNK_HEADER)?)? else {
            return None;
        };
        let size = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        let body = at + CHUNK_HEADER;
        if &[a, b, c, d] == name {
            return bytes.get(body..body + size);
        }
        // Chunks are padded to an even size.
        at = body + size.next_multiple_of(2);
    }
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    job.must_end_in_time()?;
    let features = features(bytes)?;
    let channels = channels(&features);
    if features.has_animation() {
        let canvas = first_frame(bytes, job, channels)?;
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

/// The first frame of an animation where it lies in the picture, which is 0 and transparent around it.
fn first_frame(bytes: &[u8], job: &Job<'_>, channels: usize) -> Result<Vec<u8>> {
    let frame = chunk(bytes, b"ANMF").and_then(|frame| frame.split_at_checked(FRAME_HEADER));
    let (place, image) = frame.ok_or_else(|| Error::invalid("truncated: the first frame is not complete"))?;
    let number = |at: usize| u32::from_le_bytes([place[at], place[at + 1], place[at + 2], 0]) as usize;
    let (x, y) = (2 * number(0), 2 * number(3));
    let frame = features(image)?;
    let [frame_width, frame_height] = [frame.width() as usize, frame.height() as usize];
    let (width, height) = job.info.stored_size();
    if (frame_width, frame_height) != (number(6) + 1, number(9) + 1)
        || x + frame_width > width
        || y + frame_height > height
    {
        return Err(Error::invalid(format!(
            "damaged: a frame of {frame_width} x {frame_height} pixels at ({x}, {y}) in a picture of {width} x {height}"
        )));
    }
    let decoded = pixels(image, bytes)?;
    let stored = if decoded.is_alpha() { 4 } else { 3 };
    let mut canvas = zeroed(width * height * channels)?;
    let rows = canvas.chunks_exact_mut(width * channels).skip(y);
    for (row, from) in rows.zip(decoded.chunks_exact(frame_width * stored)) {
        let pixels = row[x * channels..].chunks_exact_mut(channels);
        for (to, from) in pixels.zip(from.chunks_exact(stored)) {
            let [r, g, b, ..] = *from else { continue };
            let alpha = from.get(3).copied().unwrap_or(u8::MAX);
            to.copy_from_slice(&[r, g, b, alpha][..channels]);
        }
    }
    Ok(canvas)
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
