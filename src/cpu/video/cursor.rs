//! A video from its first frame to its last: each frame is decoded when it is asked for, and no more is kept than the
//! decoder does. It must not know codecs.

use std::sync::Arc;

use super::decoding::Decoding;
use super::{Budget, Frame, Video};
use crate::error::{Error, Result};

/// How the frames of a video become sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sequences {
    /// Frames of each; at least 1.
    pub length: usize,
    /// Whether the last one is filled up with black frames; else it may be shorter.
    pub pads: bool,
}

/// A place in a video.
pub struct Cursor {
    video: Arc<Video<'static>>,
    /// The frame that comes next.
    next: usize,
    run: Option<Run>,
}

/// Frames that one decoder makes in their order.
struct Run {
    decoding: Decoding,
    /// The frame behind the last one.
    end: usize,
}

impl Cursor {
    /// At the first frame.
    pub fn new(video: impl Into<Arc<Video<'static>>>) -> Self {
        Self::at(video, 0)
    }

    /// At frame `frame`.
    pub fn at(video: impl Into<Arc<Video<'static>>>, frame: usize) -> Self {
        Self { video: video.into(), next: frame, run: None }
    }

    /// The video.
    pub fn video(&self) -> &Video<'static> {
        &self.video
    }

    /// The number of the frame that comes next.
    pub fn next(&self) -> usize {
        self.next
    }

    /// Frames that are left.
    pub fn left(&self) -> usize {
        self.video.frames().saturating_sub(self.next)
    }

    /// Bytes of memory that its decoder takes.
    pub fn held(&self) -> usize {
        self.run.as_ref().map_or(0, |run| run.decoding.held())
    }

    /// Writes the next frame as [`Video::decode`] does.
    ///
    /// # Errors
    /// As there; also when there is no frame left. What comes behind a damaged frame cannot be had.
    pub fn read(&mut self, budget: &Budget<'_>, out: &mut [u8]) -> Result<()> {
        if self.run.as_ref().is_none_or(|run| run.end <= self.next) {
            self.run = Some(self.begin(budget)?);
        }
        let wanted = self.video.shown.get(self.next).map_or(usize::MAX, |shown| shown.packet);
        while let Some(run) = &mut self.run {
            let Some((place, picture)) = run.decoding.next(&self.video, budget)? else { break };
            if place == wanted {
                Frame::new(picture.as_ref(), self.video.size, budget.watch()).write(out)?;
                self.next += 1;
                return Ok(());
            }
            // Those before it in the group are not shown, or were; one behind it says that it does not come.
            if self.video.is_behind(place, wanted) {
                break;
            }
        }
        Err(Error::invalid(format!("frame {} of the video cannot be decoded", self.next)))
    }

    /// Begins with the frames from the next one on that need the same key frame, as far as they ascend: an edit list
    /// may go back.
    fn begin(&self, budget: &Budget<'_>) -> Result<Run> {
        let (video, key) = (&self.video, self.video.key_of(self.next)?);
        let (mut end, mut before) = (self.next, None);
        let mut last = key;
        while let Some(shown) = video.shown.get(end) {
            if before.is_some_and(|before| !video.is_behind(shown.packet, before))
                || video.key_of(end)? != key
            {
                break;
            }
            budget.look(size_of_val(shown))?;
            (before, last) = (Some(shown.packet), last.max(shown.packet));
            end += 1;
        }
        Ok(Run { decoding: Decoding::begin(video, key, last, budget)?, end })
    }
}
