//! Boxes of MP4, QuickTime and AVIF, one after the other. It must not know what is in them.

use super::bytes::Bytes;
use crate::error::Result;
use crate::limits;

/// One box: its name and what is in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom<'a> {
    pub(super) name: [u8; 4],
    pub(super) body: &'a [u8],
    /// Where the box begins, from the beginning of what was walked.
    pub(super) at: usize,
}

/// What a box begins with.
pub(super) struct Head {
    pub(super) name: [u8; 4],
    /// Bytes of the head.
    pub(super) length: usize,
    /// Bytes of the box with its head; `None` for one that goes on to the end.
    pub(super) size: Option<usize>,
}

/// The head at the front of `bytes`; `None` where it is cut off, or tells of more than there can be.
pub(super) fn head(bytes: &[u8]) -> Option<Head> {
    let mut reader = Bytes(bytes);
    let (size, name) = (reader.u32().ok()?, reader.name().ok()?);
    let (length, size) = match size {
        0 => (8, None),
        1 => (16, Some(usize::try_from(reader.u64().ok()?).ok()?)),
        size => (8, Some(size as usize)),
    };
    Some(Head { name, length, size })
}

/// The boxes in `bytes`, one after the other. One that is cut off ends where the bytes end; what is no box ends them.
pub(super) fn atoms(bytes: &[u8]) -> impl Iterator<Item = Atom<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..)?;
        let Head { name, length, size } = head(rest)?;
        let end = at.saturating_add(size.unwrap_or(rest.len())).min(bytes.len());
        let atom = Atom { name, body: bytes.get(at + length..end)?, at };
        at = end;
        Some(atom)
    })
    .take(limits::MAX_VIDEO_BOXES)
}

/// The first box called `name`.
pub(super) fn find<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    atoms(bytes).find(|atom| atom.name == *name).map(|atom| atom.body)
}

/// A box that begins with its version and flags.
#[derive(Debug, Clone, Copy)]
pub(super) struct FullBox<'a> {
    pub(super) version: u8,
    pub(super) flags: u32,
    pub(super) rest: Bytes<'a>,
}

impl<'a> FullBox<'a> {
    pub(super) fn new(body: &'a [u8]) -> Result<Self> {
        let mut rest = Bytes(body);
        let head = rest.u32()?;
        Ok(Self { version: (head >> 24) as u8, flags: head & 0xFF_FFFF, rest })
    }

    /// A number that has four bytes from version `long` on, else two.
    pub(super) fn number(&mut self, long: u8) -> Result<u32> {
        if self.version < long { self.rest.u16().map(u32::from) } else { self.rest.u32() }
    }
}
