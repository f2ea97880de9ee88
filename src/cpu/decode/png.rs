//! PNG: header, EXIF and pixels, by crate `image` where `strips` does not decode them. It must not know other formats.

mod filter;
#[cfg(target_arch = "x86_64")]
mod staggered;
mod strips;
mod unfilter;

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use image::codecs::png::PngDecoder;

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::frames::{Take, hand_on};
use super::orientation::{Orientation, exif_block, from_exif_block};
use super::profile::{MAX_BYTES, Profile, SRGB_POINTS, too_long};
use super::raster::{failed, read_pixels, scratch_limits};
use super::watched::Watched;
use super::{Header, Job};
use crate::deadline::Watch;
use crate::error::{Error, Result};

const SIGNATURE_BYTES: usize = 8;

/// Nanoseconds for each byte of samples: inflating and filters, by the library and by strips; and for each chunk.
const BYTE: f64 = 1.5;
const STRIPS_BYTE: f64 = 0.9;
const CHUNK: f64 = 250.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "PNG",
    parameter: "png",
    is_one: |bytes| matches!(bytes, [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    profile,
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: image.stored * if strips::usual(image.bytes).is_some() { STRIPS_BYTE } else { BYTE }
            + chunk_count(image.bytes) as f64 * CHUNK,
        scratch: 0.0,
    },
};

/// What the chunks say; `complete` when the last one is there.
struct Chunks {
    header: Header,
    complete: bool,
    count: usize,
    /// Pictures that an animation says it has, and those whose chunks are there.
    told: Option<usize>,
    frames: usize,
}

fn chunks(bytes: &[u8]) -> Result<Chunks> {
    let chunk = |at: usize| -> Option<([u8; 4], usize)> {
        let &[l3, l2, l1, l0, a, b, c, d] = bytes.get(at..at.checked_add(8)?)? else { return None };
        Some(([a, b, c, d], u32::from_be_bytes([l3, l2, l1, l0]) as usize))
    };
    let start = bytes.get(SIGNATURE_BYTES + 8..SIGNATURE_BYTES + 8 + 13);
    let (Some((kind, length)), Some(&[w3, w2, w1, w0, h3, h2, h1, h0, depth, color, ..])) =
        (chunk(SIGNATURE_BYTES), start)
    else {
        return Err(Error::invalid(format!("truncated header: the input has {} bytes", bytes.len())));
    };
    if &kind != b"IHDR" || length != 13 {
        return Err(Error::invalid("damaged header: the first chunk is not `IHDR` of 13 bytes"));
    }
    let channels = match color {
        0 => 1,
        2 | 3 => 3,
        4 => 2,
        6 => 4,
        other => {
            return Err(Error::invalid(format!(
                "damaged header: colour type {other}, expected 0, 2, 3, 4 or 6"
            )));
        }
    };
    let mut turn = Orientation::default();
    let (mut complete, mut count) = (false, 0);
    let (mut told, mut frames) = (None, 0);
    let mut at = SIGNATURE_BYTES;
    // Metadata may follow the pixels, so all chunks are looked at; their number is bounded by the input's length.
    while let Some((kind, length)) = chunk(at) {
        count += 1;
        let body = at + 8;
        let Some(end) = body.checked_add(length).and_then(|end| end.checked_add(4)) else { break };
        match &kind {
            b"IEND" => {
                complete = true;
                break;
            }
            // As in DALI, without the name that a JPEG has in front of it.
            b"eXIf" => {
                let block = bytes.get(body..body + length).filter(|block| exif_block(block).is_none());
                turn = block.map_or(turn, from_exif_block);
            }
            b"acTL" => {
                let number = bytes.get(body..).and_then(<[u8]>::first_chunk);
                told = number.map(|&number| u32::from_be_bytes(number) as usize);
            }
            b"fcTL" => frames += 1,
            _ => {}
        }
        at = end;
    }
    let header = Header {
        width: u32::from_be_bytes([w3, w2, w1, w0]) as usize,
        height: u32::from_be_bytes([h3, h2, h1, h0]) as usize,
        channels,
        bit_depth: usize::from(depth),
        orientation: turn,
        halves: false,
    };
    Ok(Chunks { header, complete, count, told, frames })
}

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    Ok(chunks(bytes)?.header)
}

/// The contents of the first chunk of this name in front of the pixels, if all of them are there.
fn chunk<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let mut rest = bytes.get(SIGNATURE_BYTES..)?;
    loop {
        let (&[l3, l2, l1, l0, kind @ ..], behind) = rest.split_first_chunk::<8>()?;
        let (body, behind) = behind.split_at_checked(u32::from_be_bytes([l3, l2, l1, l0]) as usize)?;
        if &kind == name {
            return Some(body);
        }
        if &kind == b"IDAT" {
            return None;
        }
        // Behind it is its sum.
        rest = behind.get(4..)?;
    }
}

/// What the file says of its colours: of several chunks the one that PNG's third edition says.
///
/// # Errors
/// Chunks that are damaged.
fn profile(bytes: &[u8]) -> Result<Option<Profile<'_>>> {
    let damaged = |name: &str| Error::invalid(format!("damaged: chunk `{name}`"));
    if let Some(codes) = chunk(bytes, b"cICP") {
        let &[primaries, transfer, 0, 1] = codes else {
            return Err(Error::unsupported(
                "chunk `cICP` of colours that are not red, green and blue of full range",
            ));
        };
        return Ok(Some(Profile::Codes([primaries, transfer])));
    }
    if let Some(body) = chunk(bytes, b"iCCP") {
        // Behind a name and its end is the number of the way in which it is compressed.
        let packed =
            memchr::memchr(0, body).and_then(|end| body.get(end + 2..)).ok_or_else(|| damaged("iCCP"))?;
        let mut profile = Vec::new();
        let read = ZlibDecoder::new(packed).take(MAX_BYTES as u64 + 1).read_to_end(&mut profile);
        read.map_err(|_| damaged("iCCP"))?;
        return if profile.len() > MAX_BYTES {
            Err(too_long())
        } else {
            Ok(Some(Profile::Icc(Cow::Owned(profile))))
        };
    }
    if chunk(bytes, b"sRGB").is_some() {
        return Ok(None);
    }
    let numbers = |body: &[u8]| -> Vec<f32> {
        body.as_chunks::<4>().0.iter().map(|&bytes| u32::from_be_bytes(bytes) as f32 / 100_000.0).collect()
    };
    let gamma = match chunk(bytes, b"gAMA").map(numbers).as_deref() {
        None => None,
        Some(&[gamma]) if gamma > 0.0 => Some(1.0 / gamma),
        Some(_) => return Err(damaged("gAMA")),
    };
    let points = match chunk(bytes, b"cHRM").map(numbers).as_deref() {
        None => SRGB_POINTS,
        Some(&[a, b, c, d, e, f, g, h]) if b > 0.0 && d > 0.0 && f > 0.0 && h > 0.0 => {
            [[a, b], [c, d], [e, f], [g, h]]
        }
        Some(_) => return Err(damaged("cHRM")),
    };
    Ok((gamma.is_some() || points != SRGB_POINTS).then_some(Profile::Measured(gamma, points)))
}

/// How many chunks there are, of which each takes its time.
pub(super) fn chunk_count(bytes: &[u8]) -> usize {
    chunks(bytes).map_or(0, |chunks| chunks.count)
}

/// How many pictures an animation has; `None` of a file that is none.
///
/// # Errors
/// A number that is not that of the pictures.
pub(super) fn frame_count(bytes: &[u8]) -> Result<Option<usize>> {
    match chunks(bytes)? {
        Chunks { told: Some(told), frames, .. } if told != frames => Err(Error::invalid(format!(
            "damaged: an animation of {told} pictures, of which {frames} are there"
        ))),
        Chunks { told, .. } => Ok(told),
    }
}

/// All pictures of an animation, one after the other.
pub(super) fn animation(bytes: &[u8], watch: &Watch<'_>, take: &mut Take<'_>) -> Result<()> {
    let decoder = PngDecoder::with_limits(Watched::new(bytes, watch), scratch_limits()).map_err(failed)?;
    hand_on(decoder.apng().map_err(failed)?, take)
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    let found = chunks(bytes)?;
    if !found.complete {
        return Err(Error::invalid(format!(
            "truncated: the input of {} bytes ends before chunk `IEND`",
            bytes.len()
        )));
    }
    let watch = job.conditions.watch;
    let library = PngDecoder::with_limits(Watched::new(bytes, watch), scratch_limits()).map_err(failed)?;
    if found.told.is_some() || found.frames > 0 {
        return read_pixels(library, Luma::Png, job, out);
    }
    let scratch = strips::Scratch::new(bytes)?;
    read_pixels(strips::Decoder { library, bytes, watch, scratch }, Luma::Png, job, out)
}
