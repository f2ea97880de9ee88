//! How a codestream of JPEG 2000 ends. The last part of a tile need not say how long it is, and the end marker may be
//! missing; the library wants both. It must not know what packets hold.

use super::marker::{self, damaged};
use super::tile::Tile;
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// Where the header of a part of a tile has the part's length, in four bytes.
const LENGTH: std::ops::Range<usize> = 6..10;

/// A packet that holds nothing; what is behind its header where headers have a mark at their end.
const PACKET: &[u8] = &[0];
const MARKED_PACKET: &[u8] = &[0, 0xFF, 0x92];

/// How a codestream ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ending {
    /// Where its last part of a tile begins and ends.
    pub(super) part: usize,
    pub(super) at: usize,
    /// Whether that part does not say how long it is.
    pub(super) goes_to_the_end: bool,
    /// Whether something stands behind it: the end marker, or what is no end.
    pub(super) is_marked: bool,
}

impl Ending {
    /// Whether the file says all that the library wants.
    pub(super) fn is_told(self) -> bool {
        self.is_marked && !self.goes_to_the_end
    }

    /// The codestream with the length of its last part and an end marker, and with `packet` behind its packets.
    ///
    /// # Errors
    /// When the part is longer than its header can say.
    pub(super) fn told(self, bytes: &[u8], packet: &[u8]) -> Result<Vec<u8>> {
        let none = || damaged("the last part of a tile is longer than its header can say");
        let mut told = bytes.get(..self.at).ok_or_else(none)?.to_vec();
        told.extend_from_slice(packet);
        let length = u32::try_from(told.len().saturating_sub(self.part)).map_err(|_| none())?;
        let part = told.get_mut(self.part..).and_then(|part| part.get_mut(LENGTH)).ok_or_else(none)?;
        part.copy_from_slice(&length.to_be_bytes());
        told.extend([0xFF, marker::EOC]);
        Ok(told)
    }
}

/// What is behind the packets at the start of `rest`: the end marker, whose bytes no packet has, or nothing.
pub(super) fn packets_end(rest: Bytes<'_>) -> Bytes<'_> {
    let end = memchr::memmem::find(rest.0, &[0xFF, marker::EOC]).unwrap_or(rest.0.len());
    Bytes(rest.0.get(end..).unwrap_or_default())
}

/// A packet that holds nothing, of any component of `tile`; nothing where components differ.
pub(super) fn empty_packet(tile: &Tile) -> Option<&'static [u8]> {
    let mut marks = tile.codings.iter().map(|coding| coding.marks_headers);
    let first = marks.next()?;
    marks.all(|marks| marks == first).then_some(if first { MARKED_PACKET } else { PACKET })
}

/// The error of a codestream that ends without an end marker, of which nothing says that it is whole.
pub(super) fn cut() -> Error {
    Error::invalid("truncated: the codestream ends without its end marker, and may lack packets")
}
