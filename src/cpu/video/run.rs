//! Frames of a video that are decoded from the same key frame on. Those on the way that no other is made of are passed
//! over, as far as headers say so. It must not know codecs.

use std::collections::BTreeMap;

use super::decoder::Picture;
use super::decoding::Decoding;
use super::{Budget, TakeRow, Video};
use crate::deadline::Watch;
use crate::error::{Error, ErrorKind, Result};

/// Takes the number of a frame that was asked for, and the frame.
pub type TakeFrame<'f> = dyn FnMut(usize, &Frame<'_>) -> Result<()> + 'f;

/// A decoded frame.
pub struct Frame<'p> {
    picture: &'p dyn Picture,
    /// The size of the video's frames.
    size: [usize; 2],
    watch: &'p Watch<'p>,
}

/// Frames that are wanted, by their packets. An edit list may show a packet more than once.
pub(super) type Wanted = BTreeMap<usize, Vec<usize>>;

/// Why a run ended before its end.
enum Ended {
    /// Its frames cannot be decoded.
    Damaged(Error),
    /// Nobody waits any more, there is no room, or a frame was not taken.
    Stopped(Error),
}

impl<'p> Frame<'p> {
    /// One of a video whose frames are of this size.
    pub(super) fn new(picture: &'p dyn Picture, size: [usize; 2], watch: &'p Watch<'p>) -> Self {
        Self { picture, size, watch }
    }

    /// Writes it as RGB, in rows without gaps: [`Video::height`] times [`Video::width`] times 3 bytes.
    ///
    /// # Errors
    /// A frame that is damaged, or of another size than its video.
    pub fn write(&self, out: &mut [u8]) -> Result<()> {
        let [width, height] = self.checked_size()?;
        if out.len() != width * height * 3 {
            return Err(Error::internal(format!("a frame is written to {} bytes", out.len())));
        }
        self.picture.write_rgb(out, self.watch)
    }

    /// Hands its rows to `take`, in RGB; false, and none of them, where they do not come one by one.
    ///
    /// # Errors
    /// Those of [`Frame::write`].
    pub fn write_rows(&self, take: &mut TakeRow<'_>) -> Result<bool> {
        self.checked_size()?;
        self.picture.write_rows(take)
    }

    fn checked_size(&self) -> Result<[usize; 2]> {
        let ([width, height], [found_width, found_height]) = (self.size, self.picture.size());
        if self.picture.size() == self.size {
            return Ok(self.size);
        }
        Err(Error::unsupported(format!(
            "a frame of {found_width} x {found_height} pixels in a video of {width} x {height}"
        )))
    }
}

impl Video<'_> {
    /// Decodes one of the [`Video::runs`] and hands each frame to `take`.
    ///
    /// # Errors
    /// A frame that is damaged, or of another size; those of `take`. More on the way than is left of `budget`.
    pub fn decode(&self, run: &[usize], budget: &Budget<'_>, take: &mut TakeFrame<'_>) -> Result<()> {
        let Some(&first) = run.first() else { return Ok(()) };
        let (key, mut left) = (self.key_of(first)?, Wanted::new());
        for &frame in run {
            let packet = self.shown.get(frame).map_or(usize::MAX, |shown| shown.packet);
            left.entry(packet).or_default().push(frame);
        }
        let packets: Vec<usize> = left.keys().copied().collect();
        let last = packets.last().copied().unwrap_or(key);
        let mut decoding = Decoding::begin(self, key, last, budget)?.passing_over(packets);
        let ended = self.take_wanted(&mut decoding, &mut left, budget, take);
        let ended = match ended {
            // Headers may have said of a picture that no other is made of it where one is.
            Ok(()) | Err(Ended::Damaged(_)) if decoding.has_passed() && !left.is_empty() => {
                let mut decoding = Decoding::begin(self, key, last, budget)?;
                self.take_wanted(&mut decoding, &mut left, budget, take)
            }
            ended => ended,
        };
        match (ended, left.values().flatten().next()) {
            (Err(Ended::Damaged(error) | Ended::Stopped(error)), _) => Err(error),
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(frame)) => {
                Err(Error::invalid(format!("frame {frame} of the video cannot be decoded")))
            }
        }
    }

    fn take_wanted(
        &self,
        decoding: &mut Decoding,
        left: &mut Wanted,
        budget: &Budget<'_>,
        take: &mut TakeFrame<'_>,
    ) -> std::result::Result<(), Ended> {
        let ended = |error: Error| match error.kind() {
            ErrorKind::Cancelled | ErrorKind::Unavailable => Ended::Stopped(error),
            _ => Ended::Damaged(error),
        };
        while let Some((place, picture)) = decoding.next(self, budget).map_err(ended)? {
            let picture = Frame::new(picture.as_ref(), self.size, budget.watch());
            for frame in left.remove(&place).unwrap_or_default() {
                take(frame, &picture).map_err(Ended::Stopped)?;
            }
        }
        Ok(())
    }
}
