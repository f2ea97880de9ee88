//! A container that is taken apart from its front, as its bytes come. It must not know what decodes its frames.

use super::track::{Packet, Track};
use crate::error::Result;

/// What a container finds at the front of the bytes that came.
pub(super) enum Found {
    /// Nothing of account. It goes on so many bytes further, at least one; they may come yet.
    Nothing(usize),
    /// Frames, with places in the bytes that were looked at. It goes on so many bytes further.
    Packets(Vec<Packet>, usize),
    /// Something that is not there as a whole.
    Cut,
}

/// Takes a container apart from its front.
pub(super) trait Container: Send {
    /// What the video is, once it was said.
    fn track(&self) -> Option<&Track>;

    /// Looks at the front of `bytes`, which begin `at` bytes behind the beginning of all; nothing follows the `is_last`
    /// ones.
    ///
    /// # Errors
    /// Bytes that make no sense; a file that cannot be read before its end came.
    fn look(&mut self, bytes: &[u8], at: u64, is_last: bool) -> Result<Found>;
}
