//! MP4 as it comes in pieces: in fragments, or with its index in front.

use super::container::{Container, Found};
use super::mp4;
use super::mp4_samples::Fragments;
use super::track::{Packet, Track};
use crate::cpu::atoms::{self, Atom};
use crate::error::{Error, Result};
use crate::limits;

/// Boxes one after the other; frames where an index has said that they are.
#[derive(Default)]
pub(super) struct Pieces {
    /// With the frames that were told of, at places from the beginning of the file.
    found: Option<(Track, Option<Fragments>)>,
    /// How many of those came.
    come: usize,
    /// Where the box of frames at hand ends.
    end: u64,
}

impl Container for Pieces {
    fn track(&self) -> Option<&Track> {
        self.found.as_ref().map(|(track, _)| track)
    }

    fn look(&mut self, bytes: &[u8], at: u64, _is_last: bool) -> Result<Found> {
        // Places are of all that a 64-bit host can address.
        let at = usize::try_from(at).map_err(|_| Error::invalid("a file of too many bytes"))?;
        let inside = usize::try_from(self.end.saturating_sub(at as u64)).unwrap_or(usize::MAX);
        if inside == 0 {
            return self.atom(bytes, at);
        }
        let next = self.track().and_then(|track| track.packets.get(self.come));
        let Some(packet) = next else { return Ok(Found::Nothing(inside)) };
        let range = packet.range();
        let Some(before) = range.start.checked_sub(at) else {
            return Err(Error::unsupported(
                "an MP4 whose frames do not stand in the order in which they are decoded does not come in pieces: send the whole file in \
                 one request",
            ));
        };
        if before > 0 {
            return Ok(Found::Nothing(before.min(inside)));
        }
        if bytes.len() < range.len() {
            return Ok(Found::Cut);
        }
        let packet = Packet::new(0, range.len(), packet.time, packet.key);
        self.come += 1;
        Ok(Found::Packets(vec![packet], range.len()))
    }
}

impl Pieces {
    fn atom(&mut self, bytes: &[u8], at: usize) -> Result<Found> {
        let Some(head) = atoms::head(bytes) else { return Ok(Found::Cut) };
        let size = head.size.unwrap_or(usize::MAX);
        if size < head.length {
            return Err(Error::invalid(format!(
                "a box of {size} bytes at byte {at}, expected at least {}",
                head.length
            )));
        }
        match (&head.name, &mut self.found) {
            (b"mdat", None) => Err(Error::unsupported(
                "an MP4 whose index (`moov`) stands behind its frames does not come in pieces: write it in front (ffmpeg's \
                 `-movflags +faststart`) or in fragments (`-movflags +frag_keyframe+empty_moov`), or send the whole file in one request",
            )),
            (b"mdat", Some(_)) => {
                self.end = (at as u64).saturating_add(size as u64);
                Ok(Found::Nothing(head.length))
            }
            (b"moov" | b"moof", _) => {
                let Some(body) = bytes.get(head.length..size) else { return Ok(Found::Cut) };
                self.read(Atom { name: head.name, body, at })?;
                Ok(Found::Nothing(size))
            }
            _ => Ok(Found::Nothing(size)),
        }
    }

    /// Reads an index. It may tell of frames without end, of which none may come.
    fn read(&mut self, index: Atom<'_>) -> Result<()> {
        match &mut self.found {
            None if index.name == *b"moov" => {
                let (track, fragments) = mp4::movie(index.body, usize::MAX, limits::MAX_VIDEO_FRAMES_AHEAD)?;
                if !track.edits.is_sorted_by(|before, after| before.end <= after.start) {
                    return Err(Error::unsupported(
                        "an MP4 whose edits are not in order does not come in pieces: send the whole file in one request",
                    ));
                }
                self.found = Some((track, fragments));
            }
            Some((track, Some(fragments))) if index.name == *b"moof" => {
                // Not more are moved than are let go of.
                if self.come > track.packets.len() / 2 {
                    track.packets.drain(..self.come);
                    self.come = 0;
                }
                fragments.read(usize::MAX, index, track)?;
            }
            _ => {}
        }
        Ok(())
    }
}
