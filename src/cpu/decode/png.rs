//! PNG: header, EXIF and pixels by crate `image`. It must not know other formats.

use image::codecs::png::PngDecoder;

use super::color::Luma;
use super::effort::{Cost, Measures};
use super::format::ImageFormat;
use super::orientation::{Orientation, exif_block, from_exif_block};
use super::raster::{failed, read_pixels, scratch_limits};
use super::watched::Watched;
use super::{Header, Job};
use crate::error::{Error, Result};

const SIGNATURE_BYTES: usize = 8;

/// Nanoseconds for each byte of samples: inflating and filters; and for each chunk.
const BYTE: f64 = 1.5;
const CHUNK: f64 = 250.0;

/// The format's row in [`super::Format`].
pub(super) const FORMAT: ImageFormat = ImageFormat {
    name: "PNG",
    parameter: "png",
    is_one: |bytes| matches!(bytes, [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1A, b'\n', ..]),
    header,
    decode: |_, bytes, job, out| decode(bytes, job, out),
    effort: |image: &Measures<'_>| Cost {
        nanoseconds: image.stored * BYTE + chunk_count(image.bytes) as f64 * CHUNK,
        scratch: 0.0,
    },
};

/// What the chunks say; `complete` when the last one is there.
struct Chunks {
    header: Header,
    complete: bool,
    count: usize,
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
    Ok(Chunks { header, complete, count })
}

/// Reads a header.
pub(super) fn header(bytes: &[u8]) -> Result<Header> {
    Ok(chunks(bytes)?.header)
}

/// How many chunks there are, of which each takes its time.
pub(super) fn chunk_count(bytes: &[u8]) -> usize {
    chunks(bytes).map_or(0, |chunks| chunks.count)
}

/// Decodes what `job` asks for to `out`, whose size was checked.
pub(super) fn decode(bytes: &[u8], job: &Job<'_>, out: &mut [u8]) -> Result<()> {
    if !chunks(bytes)?.complete {
        return Err(Error::invalid(format!(
            "truncated: the input of {} bytes ends before chunk `IEND`",
            bytes.len()
        )));
    }
    let decoder = PngDecoder::with_limits(Watched::new(bytes, job.conditions.watch), scratch_limits())
        .map_err(failed)?;
    read_pixels(decoder, Luma::Png, job, out)
}
