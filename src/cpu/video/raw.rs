//! Streams without a container that says when frames are shown: Annex B of H.264 and H.265; and IVF, which says little
//! more.

use std::ops::Range;

use super::nal::{self, Key, Kind};
use super::track::{Codec, Track};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// Which codec an Annex B stream has, by the parameters that it begins with.
pub(super) fn annex_b_codec(file: &[u8]) -> Option<Codec> {
    let start = file.get(..4)?;
    if !start.starts_with(&[0, 0, 1]) && start != [0, 0, 0, 1] {
        return None;
    }
    let first = nal::ranges(file.get(..file.len().min(4_096))?).find_map(|range| file.get(range))?;
    let head = *first.first()?;
    // H.265: two bytes of header, the second of which names layer 0 and a temporal layer; delimiter or video parameters
    // come first.
    match (head >> 1 & 0x3F, first.get(1)) {
        (32 | 33 | 35 | 39, Some(1)) if head & 0x81 == 0 => Some(Codec::H265),
        _ if head & 0x80 == 0 && matches!(head & 0x1F, 5..=9) => Some(Codec::H264),
        _ => None,
    }
}

/// Finds frames among the units of a stream, each with what stands ahead of it.
#[derive(Debug, Default)]
pub(super) struct Frames {
    /// Where the frame at hand begins and what its key is, once a slice was seen.
    frame: Option<(usize, Key)>,
    /// Where what is ahead of the next one begins.
    ahead: Option<usize>,
}

impl Frames {
    /// Takes the unit whose start code is at `begin`. Returns the frame before, if it is over: where it begins and
    /// ends, and its key.
    pub(super) fn unit(&mut self, codec: Codec, unit: &[u8], begin: usize) -> Option<(Range<usize>, Key)> {
        match nal::kind(codec, unit) {
            Kind::Slice { first, key } if first || self.frame.is_none() => {
                let end = self.ahead.unwrap_or(begin);
                let over = self.frame.replace((self.ahead.take().unwrap_or(begin), key));
                over.map(|(start, key)| (start..end, key))
            }
            // Parameters between the slices of a frame are ones of the next.
            Kind::Ahead => {
                self.ahead = self.ahead.or(Some(begin));
                None
            }
            _ => None,
        }
    }

    /// The last frame, of a stream that ends at `end`.
    pub(super) fn last(&mut self, end: usize) -> Option<(Range<usize>, Key)> {
        self.frame.take().map(|(start, key)| (start..end, key))
    }

    /// Counts places from `by` bytes further on, which no frame needs any more.
    pub(super) fn pass(&mut self, by: usize) {
        self.frame = self.frame.map(|(start, key)| (start.saturating_sub(by), key));
        self.ahead = self.ahead.map(|start| start.saturating_sub(by));
    }
}

/// Reads an Annex B stream.
///
/// # Errors
/// A stream without a frame, or with more than the limit.
pub(super) fn open_annex_b(file: &[u8], codec: Codec) -> Result<Track> {
    let mut track = Track { timed: false, ..Track::new(codec) };
    let (mut frames, mut end) = (Frames::default(), 0);
    for unit in nal::ranges(file) {
        let found = frames.unit(codec, file.get(unit.clone()).unwrap_or_default(), unit.start - 3);
        found.map_or(Ok(()), |frame| add(&mut track, file.len(), frame))?;
        end = unit.end;
    }
    frames.last(end).map_or(Ok(()), |frame| add(&mut track, file.len(), frame))?;
    Ok(track)
}

fn add(track: &mut Track, len: usize, (range, key): (Range<usize>, Key)) -> Result<()> {
    let place = track.packets.len() as i64;
    track.push(len, range, place, place == 0 || key == Key::Closed)
}

/// Whether a file begins as IVF does.
pub(super) fn is_ivf(file: &[u8]) -> bool {
    file.starts_with(b"DKIF")
}

/// Reads the header of an IVF file. Returns how many bytes it has, too.
///
/// # Errors
/// A codec that is not decoded, a header that is cut off.
pub(super) fn ivf_header(file: &[u8]) -> Result<(usize, Track)> {
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
    Ok((header, track))
}

/// What stands before a frame of IVF: how many bytes the frame has, and when it is shown. `None` where that is cut off.
pub(super) fn ivf_frame(bytes: &mut Bytes<'_>) -> Option<(usize, i64)> {
    let length = bytes.u32_le().ok()? as usize;
    let time = bytes.take(8).ok()?;
    Some((length, time.iter().rev().fold(0_u64, |time, byte| time << 8 | u64::from(*byte)).cast_signed()))
}

/// Reads an IVF file: a header, then each frame behind its length and time.
///
/// # Errors
/// Those of the header.
pub(super) fn open_ivf(file: &[u8]) -> Result<Track> {
    let (header, mut track) = ivf_header(file)?;
    let mut bytes = Bytes(file.get(header..).unwrap_or_default());
    while let Some((length, time)) = ivf_frame(&mut bytes) {
        let start = file.len() - bytes.0.len();
        if bytes.skip(length).is_err() {
            break;
        }
        let key = track.packets.is_empty();
        track.push(file.len(), start..start + length, time, key)?;
    }
    Ok(track)
}
