//! AVI: chunks to the first video stream, in Motion JPEG or MPEG-4 Part 2. This container has no times: frames are
//! shown one after the other, in the order in which they are stored or which MPEG-4 tells.

use super::mpeg4;
use super::track::{Codec, Track};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};
use crate::limits;

/// What writers call MPEG-4 Part 2.
const MPEG4: [&[u8; 4]; 5] = [b"mp4v", b"fmp4", b"xvid", b"divx", b"dx50"];

/// One chunk: its name and where its content is in the file.
#[derive(Debug, Clone, Copy)]
struct Chunk {
    name: [u8; 4],
    start: usize,
    end: usize,
}

/// Whether a file begins as these do.
pub(super) fn is_avi(file: &[u8]) -> bool {
    file.starts_with(b"RIFF") && file.get(8..12) == Some(b"AVI ")
}

/// The chunks between `at` and `end`.
fn chunks(file: &[u8], mut at: usize, end: usize) -> impl Iterator<Item = Chunk> {
    std::iter::from_fn(move || {
        let mut head = Bytes(file.get(at..end)?);
        let (name, size) = (head.name().ok()?, head.u32_le().ok()? as usize);
        let start = at + 8;
        let chunk = Chunk { name, start, end: start.saturating_add(size).min(end) };
        at = start.saturating_add(size).saturating_add(size & 1).min(end);
        Some(chunk)
    })
    .take(limits::MAX_VIDEO_BOXES)
}

/// Chunks and those in lists, one after the other, in the order of the file.
fn flat(file: &[u8]) -> Vec<Chunk> {
    let mut found = Vec::new();
    let mut open: Vec<Chunk> = chunks(file, 0, file.len()).collect();
    open.reverse();
    while let Some(chunk) = open.pop() {
        if found.len() + open.len() > limits::MAX_VIDEO_BOXES {
            break;
        }
        if matches!(&chunk.name, b"RIFF" | b"LIST") {
            let from = open.len();
            open.extend(chunks(file, chunk.start.saturating_add(4), chunk.end));
            open[from..].reverse();
        } else {
            found.push(chunk);
        }
    }
    found
}

/// Reads the first video stream of a file.
///
/// # Errors
/// A file without video, in another codec, with more frames than the limit.
pub(super) fn open(file: &[u8]) -> Result<Track> {
    let (mut streams, mut video) = (0_usize, None);
    let mut track = Track::new(Codec::Mjpeg);
    let mut packed = mpeg4::Packed::default();
    for chunk in flat(file) {
        let content = file.get(chunk.start..chunk.end).unwrap_or_default();
        match (&chunk.name, video) {
            (b"strh", _) => {
                if content.starts_with(b"vids") && video.is_none() {
                    video = Some(streams);
                    let mut rate = Bytes(content.get(20..).unwrap_or_default());
                    if let (Ok(unit), Ok(parts)) = (rate.u32_le(), rate.u32_le()) {
                        track.tick = [unit, parts];
                    }
                }
                streams += 1;
            }
            (b"strf", Some(number)) if number + 1 == streams => {
                let name = content.get(16..20).unwrap_or_default();
                let is_any = |known: &[&[u8; 4]]| known.iter().any(|known| name.eq_ignore_ascii_case(*known));
                if is_any(&MPEG4) {
                    track.codec = Codec::Mpeg4;
                } else if !is_any(&[b"mjpg"]) {
                    let name = String::from_utf8_lossy(name);
                    return Err(Error::unsupported(format!(
                        "video of type `{name}` in AVI, expected MJPG, or MPEG-4 Part 2 by one of its names"
                    )));
                }
            }
            ([a, b, b'd', b'c' | b'b'], Some(number)) if stream_of([*a, *b]) == Some(number) => {
                let frames = match track.codec {
                    Codec::Mpeg4 => packed.frames(content),
                    _ => std::iter::once(0..content.len()).collect(),
                };
                for frame in frames {
                    let time = track.packets.len() as i64;
                    track.push(file.len(), chunk.start + frame.start..chunk.start + frame.end, time, true)?;
                }
            }
            _ => {}
        }
    }
    if track.codec == Codec::Mpeg4 {
        mpeg4::set_times(file, &mut track.packets);
    }
    Ok(track)
}

/// The stream that two digits name.
fn stream_of(digits: [u8; 2]) -> Option<usize> {
    std::str::from_utf8(&digits).ok()?.parse().ok()
}
