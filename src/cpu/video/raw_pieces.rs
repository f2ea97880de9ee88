//! Streams without a container, and IVF, as they come in pieces.

use memchr::memmem;

use super::container::{Container, Found};
use super::nal::Key;
use super::raw::{self, Frames};
use super::track::{Codec, Packet, Track};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// A start code, and what tells of which kind its unit is.
const CODE: [u8; 3] = [0, 0, 1];
const KIND: usize = 3;

/// An Annex B stream. A frame is over when the next one begins.
pub(super) struct AnnexB {
    track: Track,
    frames: Frames,
    /// Bytes that were looked at, from the front of those that wait.
    seen: usize,
    count: i64,
}

impl AnnexB {
    pub(super) fn new(codec: Codec) -> Self {
        let track = Track { timed: false, ..Track::new(codec) };
        Self { track, frames: Frames::default(), seen: 0, count: 0 }
    }
}

impl Container for AnnexB {
    fn track(&self) -> Option<&Track> {
        Some(&self.track)
    }

    fn look(&mut self, bytes: &[u8], _at: u64, is_last: bool) -> Result<Found> {
        let mut found = None;
        while found.is_none() {
            let unseen = bytes.get(self.seen..).unwrap_or_default();
            let code = memmem::find(unseen, &CODE).map(|code| self.seen + code);
            let Some(begin) = code.filter(|begin| is_last || begin + CODE.len() + KIND <= bytes.len()) else {
                // The last bytes may be the beginning of a code.
                self.seen = code.unwrap_or(bytes.len().saturating_sub(CODE.len() - 1)).max(self.seen);
                break;
            };
            self.seen = begin + CODE.len();
            let unit = bytes.get(self.seen..).unwrap_or_default();
            let unit = unit.get(..KIND).unwrap_or(unit);
            // Zeros behind a code belong to the next one.
            let unit = if unit.iter().all(|&byte| byte == 0) { &[][..] } else { unit };
            found = self.frames.unit(self.track.codec, unit, begin);
        }
        if found.is_none() && is_last {
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            found = self.frames.last(end);
        }
        let Some((range, key)) = found else { return Ok(Found::Cut) };
        self.frames.pass(range.end);
        self.seen = self.seen.saturating_sub(range.end);
        let is_key = self.count == 0 || key == Key::Closed;
        let packet = Packet::new(range.start, range.len(), self.count, is_key);
        self.count += 1;
        Ok(Found::Packets(vec![packet], range.end))
    }
}

/// An IVF file.
#[derive(Default)]
pub(super) struct Ivf {
    track: Option<Track>,
}

impl Container for Ivf {
    fn track(&self) -> Option<&Track> {
        self.track.as_ref()
    }

    fn look(&mut self, bytes: &[u8], _at: u64, _is_last: bool) -> Result<Found> {
        if self.track.is_none() {
            let (header, track) = raw::ivf_header(bytes)?;
            self.track = Some(track);
            return if header > 0 {
                Ok(Found::Nothing(header))
            } else {
                Err(Error::invalid("IVF without a header"))
            };
        }
        let mut rest = Bytes(bytes);
        let Some((length, time)) = raw::ivf_frame(&mut rest) else { return Ok(Found::Cut) };
        let start = bytes.len() - rest.0.len();
        if rest.skip(length).is_err() {
            return Ok(Found::Cut);
        }
        let packets = if length == 0 { Vec::new() } else { vec![Packet::new(start, length, time, false)] };
        Ok(Found::Packets(packets, start + length))
    }
}
