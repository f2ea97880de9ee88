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
        Ok(Self { decoder, key, next: key, end: video.end_of(key, last), pictures: 0, has_ended: false })
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
        faults::reach(codec::format(video.track.codec).name());
        self.decoder
            .send(packet.of(&video.file), place, budget)
            .context(|| format!("packet {place} of the video"))
    }

    /// Bytes of memory that the decoder takes.
    pub(super) fn held(&self) -> usize {
        self.decoder.held()
    }
}
