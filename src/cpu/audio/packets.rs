//! The packets of a stream, whatever container they are in. It must not know what packets hold.

use super::ogg::{self, Packet};
use crate::error::Result;

/// Packets, one after the other.
pub(crate) enum Packets<'a> {
    /// Those of a stream of Ogg.
    Ogg(ogg::Packets<'a>),
    /// Those that a container told of.
    Told(std::vec::IntoIter<&'a [u8]>),
}

impl<'a> Packets<'a> {
    /// These.
    pub(crate) fn told(packets: Vec<&'a [u8]>) -> Self {
        Self::Told(packets.into_iter())
    }

    /// The next one; `None` at the end.
    ///
    /// # Errors
    /// Invalid, for a damaged page of Ogg.
    pub(crate) fn next(&mut self) -> Result<Option<Packet<'_>>> {
        match self {
            Self::Ogg(packets) => packets.next(),
            Self::Told(packets) => Ok(packets.next().map(|bytes| Packet { bytes, position: None })),
        }
    }
}
