//! What makes sequences of a video, wherever its frames are decoded. It must not know codecs, nor who asks.

use std::sync::Arc;

use crate::cpu::video::Budget;
use crate::deadline::{Deadline, Watch};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Counted, HostPool};
use crate::tensor::{Sample, Shape};

/// Red, green, blue.
pub(super) const CHANNELS: usize = 3;

/// Makes the sequences of one video, one after the other. Dropped, it lets go of its decoder.
pub(super) trait Player: Send {
    /// Whether frames are left, or may come yet.
    fn has_more(&self) -> bool;

    /// Takes the next piece of a video that comes in pieces; nothing follows the last one.
    ///
    /// # Errors
    /// When the video is there as a whole.
    fn grow(&mut self, _piece: &[u8], _is_last: bool) -> Result<()> {
        Err(Error::invalid("a piece of a video behind a whole one, which was not answered yet"))
    }

    /// Bytes of memory that a video in pieces takes until its next one.
    fn held(&self) -> usize {
        0
    }

    /// The next sequence; there are frames left.
    ///
    /// # Errors
    /// Why nobody waits any more; that there is no memory. Damage is no error here.
    fn sequence(&mut self, asked: &PullContext<'_>) -> Result<Sequence>;
}

/// What a player works with.
pub(super) struct PullContext<'a> {
    /// For sequences on the host.
    pub(super) memory: &'a Arc<HostPool>,
    /// Who waits for them.
    pub(super) deadline: &'a dyn Deadline,
}

impl PullContext<'_> {
    /// Fails when nobody waits any more.
    pub(super) fn check(&self) -> Result<()> {
        self.deadline.check(None)
    }

    /// What a sequence may cost, of which `counted` counts the decoder's memory.
    pub(super) fn budget<'b>(&'b self, counted: &'b Counted) -> Budget<'b> {
        Budget::while_waiting(Watch::new(self.deadline, None)).counted_by(counted)
    }
}

/// Whether an error says that somebody does not wait any more, or that there is no room, rather than that a video is
/// damaged.
pub(super) fn is_of_waiting(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Cancelled | ErrorKind::Unavailable)
}

/// A sequence.
pub(super) struct Sequence {
    /// It in memory of its own; `None`, when not one frame of it can be had, or not all of them yet.
    pub(super) made: Option<(Shape, Sample<'static>)>,
    /// Why it is the last one, if not all of its frames can be had.
    pub(super) damage: Option<Error>,
}
