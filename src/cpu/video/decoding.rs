//! A decoder at work: packets of a video from one key frame on, and the pictures that come of them. It must not know
//! which are wanted.

use super::decoder::{Picture, VideoDecoder};
use super::{Budget, Video, codec};
use crate::error::{Context, Result};
use crate::faults;

/// Of a packet that is left out.
const LOOKED_AT: usize = 64;

/// Packets that are decoded one after the other.
pub(super) struct Decoding {
    decoder: Box<dyn VideoDecoder>,
    /// The packet that it began with.
    key: usize,
    /// The packet that is decoded next.
    next: usize,
    /// The packet behind the last one.
    end: usize,
    /// Packets whose pictures are wanted, ascending, where others may be passed over.
    wanted: Option<Vec<usize>>,
    has_passed: bool,
    /// How many pictures there were.
    pictures: usize,
    has_ended: bool,
}

/// A decoded picture with the number of its packet.
pub(super) type Placed = (usize, Box<dyn Picture>);

impl Decoding {
    /// Decoding from packet `key` on, up to packet `last`, or further where only the decoder knows which picture comes
    /// when.
    ///
    /// # Errors
    /// When the container's configuration makes no sense; when nobody waits any more.
    pub(super) fn begin(video: &Video<'_>, key: usize, last: usize, budget: &Budget<'_>) -> Result<Self> {
        let decoder = codec::decoder(&video.track, video.packet(0).unwrap_or_default(), budget)?;
        let end = video.end_of(key, last);
        let (wanted, has_passed) = (None, false);
        Ok(Self { decoder, key, next: key, end, wanted, has_passed, pictures: 0, has_ended: false })
    }

    /// The same without what no other picture is made of, but for the packets `wanted`, which ascend.
    pub(super) fn passing_over(self, wanted: Vec<usize>) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    /// Whether a packet was passed over.
    pub(super) fn has_passed(&self) -> bool {
        self.has_passed
    }

    /// The next picture, in the order in which they are shown; `None` when there are no more.
    ///
    /// # Errors
    /// A packet that is damaged; more of them than is left of `budget`.
    pub(super) fn next(&mut self, video: &Video<'_>, budget: &Budget<'_>) -> Result<Option<Placed>> {
        loop {
            if let Some(picture) = self.decoder.next() {
                let place = if video.track.timed { picture.place() } else { self.key + self.pictures };
                self.pictures += 1;
                return Ok(Some((place, picture)));
            }
            if self.has_ended {
                return Ok(None);
            }
            self.send(video, budget)?;
        }
    }

    /// Gives the decoder the next packet, or says that there are no more.
    fn send(&mut self, video: &Video<'_>, budget: &Budget<'_>) -> Result<()> {
        let (packets, place) = (&video.track.packets, self.next);
        let Some(packet) = packets.get(place).filter(|_| place < self.end) else {
            self.has_ended = true;
            return self.decoder.finish();
        };
        self.next += 1;
        if video.is_left_out(self.key, packet) {
            return budget.look(LOOKED_AT);
        }
        let bytes = packet.of(&video.file);
        let is_spare = video.track.timed
            && place > self.key
            && self.wanted.as_ref().is_some_and(|wanted| wanted.binary_search(&place).is_err());
        if is_spare && self.decoder.passes_over(bytes) {
            self.has_passed = true;
            return budget.look(bytes.len() + LOOKED_AT);
        }
        faults::reach(codec::format(video.track.codec).name());
        self.decoder.send(bytes, place, budget).context(|| format!("packet {place} of the video"))
    }

    /// Bytes of memory that the decoder takes.
    pub(super) fn held(&self) -> usize {
        self.decoder.held()
    }
}
