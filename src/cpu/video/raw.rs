//! Streams without a container that says when frames are shown: Annex B of H.264 and H.265; and IVF, which says little more.

use super::bytes::Bytes;
use super::nal::{self, Key, Kind};
use super::track::{Codec, Track};
use crate::error::{Error, Result};

/// Which codec an Annex B stream has, by the parameters that it begins with.
pub(super) fn annex_b_codec(file: &[u8]) -> Option<Codec> {
    let start = file.get(..4)?;
    if !start.starts_with(&[0, 0, 1]) && start != [0, 0, 0, 1] {
        return None;
    }
    let first =
        nal::ranges(file.get(..file.len().min(4_096))?).into_iter().find_map(|range| file.get(range))?;
    let head = *first.first()?;
    // H.265: two bytes of header, the second of which names layer 0 and a temporal layer; delimiter or video parameters come first.
    match (head >> 1 & 0x3F, first.get(1)) {
        (32 | 33 | 35 | 39, Some(1)) if head & 0x81 == 0 => Some(Codec::H265),
        _ if head & 0x80 == 0 && matches!(head & 0x1F, 5..=9) => Some(Codec::H264),
        _ => None,
    }
}

/// Reads an Annex B stream: every frame with what stands ahead of it.
///
/// # Errors
/// A stream without a frame, or with more than the limit.
pub(super) fn open_annex_b(file: &[u8], codec: Codec) -> Result<Track> {
    let mut track = Track { timed: false, ..Track::new(codec) };
    // Where the frame at hand begins, what its key is, once a slice was seen; and where what is ahead of the next one begins.
    let (mut frame, mut ahead): (Option<(usize, Key)>, Option<usize>) = (None, None);
    let mut end = 0;
    for unit in nal::ranges(file) {
        let begin = unit.start - 3;
        match nal::kind(codec, file.get(unit.clone()).unwrap_or_default()) {
            Kind::Slice { first, key } if first || frame.is_none() => {
                if let Some((start, key)) = frame.take() {
                    add(&mut track, file, start..ahead.unwrap_or(begin), key)?;
                }
                frame = Some((ahead.take().unwrap_or(begin), key));
            }
            // Parameters between the slices of a frame are ones of the next.
            Kind::Ahead => ahead = ahead.or(Some(begin)),
            _ => {}
        }
        end = unit.end;
    }
    if let Some((start, key)) = frame {
        add(&mut track, file, start..end, key)?;
    }
    Ok(track)
}

fn add(track: &mut Track, file: &[u8], range: std::ops::Range<usize>, key: Key) -> Result<()> {
    let place = track.packets.len() as i64;
    track.push(file, range, place, place == 0 || key == Key::Closed)
}

/// Whether a file begins as IVF does.
pub(super) fn is_ivf(file: &[u8]) -> bool {
    file.starts_with(b"DKIF")
}

/// Reads an IVF file: a header, then each frame behind its length and time.
///
/// # Errors
/// A codec that is not decoded, a header that is cut off.
pub(super) fn open_ivf(file: &[u8]) -> Result<Track> {
    let mut bytes = Bytes(file);
    bytes.skip(6)?;
    let header = usize::from(bytes.u16_le()?);
    let name = bytes.name()?;
    let codec = match &name {
        b"VP80" => Codec::Vp8,
        b"VP90" => Codec::Vp9,
        b"AV01" => Codec::Av1,
        name => {
            let name = String::from_utf8_lossy(name);
            return Err(Error::unsupported(format!(
                "video of type `{name}` in IVF, expected VP80, VP90 or AV01"
            )));
        }
    };
    let mut track = Track::new(codec);
    track.size = [usize::from(bytes.u16_le()?), usize::from(bytes.u16_le()?)];
    let (parts, unit) = (bytes.u32_le()?, bytes.u32_le()?);
    track.tick = [unit, parts];
    let mut bytes = Bytes(file.get(header..).unwrap_or_default());
    while let Ok(length) = bytes.u32_le() {
        let Ok(time) = bytes.take(8) else { break };
        let time = time.iter().rev().fold(0_u64, |time, byte| time << 8 | u64::from(*byte)).cast_signed();
        let start = file.len() - bytes.0.len();
        if bytes.skip(length as usize).is_err() {
            break;
        }
        let key = track.packets.is_empty();
        track.push(file, start..start + length as usize, time, key)?;
    }
    Ok(track)
}
