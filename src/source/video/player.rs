//! What makes sequences of a video, wherever its frames are decoded. It must not know codecs, nor who asks.

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::memory::HostPool;
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
    /// Cancelled, when it is no longer wanted; that there is no memory. Damage is no error here.
    fn sequence(&mut self, asked: &Asked<'_>) -> Result<Sequence>;
}

/// What a player works with.
pub(super) struct Asked<'a> {
    /// For sequences on the host.
    pub(super) memory: &'a Arc<HostPool>,
    pub(super) is_wanted: &'a dyn Fn() -> bool,
}

impl Asked<'_> {
    /// Fails when nobody waits any more.
    pub(super) fn check(&self) -> Result<()> {
        if (self.is_wanted)() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Cancelled, "nobody waits for the video any more"))
    }
}

/// A sequence.
pub(super) struct Sequence {
    /// It in memory of its own; `None`, when not one frame of it can be had, or not all of them yet.
    pub(super) made: Option<(Shape, Sample<'static>)>,
    /// Why it is the last one, if not all of its frames can be had.
    pub(super) damage: Option<Error>,
}
