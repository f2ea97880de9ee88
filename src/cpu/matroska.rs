//! Matroska and WebM (RFC 9559): EBML elements, one in another. It must not know what tracks hold.

use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};
use crate::limits;

/// Elements by the names of the standard.
pub(super) mod id {
    pub(in crate::cpu) const EBML: u32 = 0x1A45_DFA3;
    pub(in crate::cpu) const SEGMENT: u32 = 0x1853_8067;
    pub(in crate::cpu) const INFO: u32 = 0x1549_A966;
    pub(in crate::cpu) const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
    pub(in crate::cpu) const TRACKS: u32 = 0x1654_AE6B;
    pub(in crate::cpu) const TRACK_ENTRY: u32 = 0xAE;
    pub(in crate::cpu) const TRACK_NUMBER: u32 = 0xD7;
    pub(in crate::cpu) const TRACK_TYPE: u32 = 0x83;
    pub(in crate::cpu) const CODEC_ID: u32 = 0x86;
    pub(in crate::cpu) const CODEC_PRIVATE: u32 = 0x63A2;
    pub(in crate::cpu) const CONTENT_ENCODINGS: u32 = 0x6D80;
    pub(in crate::cpu) const CODEC_DELAY: u32 = 0x56AA;
    pub(in crate::cpu) const VIDEO: u32 = 0xE0;
    pub(in crate::cpu) const PIXEL_WIDTH: u32 = 0xB0;
    pub(in crate::cpu) const PIXEL_HEIGHT: u32 = 0xBA;
    pub(in crate::cpu) const CLUSTER: u32 = 0x1F43_B675;
    pub(in crate::cpu) const TIMESTAMP: u32 = 0xE7;
    pub(in crate::cpu) const SIMPLE_BLOCK: u32 = 0xA3;
    pub(in crate::cpu) const BLOCK_GROUP: u32 = 0xA0;
    pub(in crate::cpu) const BLOCK: u32 = 0xA1;
    pub(in crate::cpu) const REFERENCE: u32 = 0xFB;
    pub(in crate::cpu) const DISCARD_PADDING: u32 = 0x75A2;
}

/// One element: what it is, and where its content begins and ends in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Element {
    pub(super) id: u32,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Bytes of it that are behind where the file, or what it is in, ends.
    pub(super) missing: usize,
    /// Whether it says how long it is.
    pub(super) is_sized: bool,
}

/// Whether a file begins as these do.
pub(super) fn is_matroska(file: &[u8]) -> bool {
    file.starts_with(&id::EBML.to_be_bytes())
}

/// A number of one to eight bytes whose first byte says how many; `None` where all its bits are set: it is not known.
pub(super) fn number(bytes: &mut Bytes<'_>) -> Result<Option<u64>> {
    let first = bytes.u8()?;
    let more = first.leading_zeros() as usize;
    if more > 7 {
        return Err(Error::invalid("an element's size of more than eight bytes"));
    }
    let mask = 0x7F_u64 >> more;
    let rest = bytes.take(more)?;
    let value = rest.iter().fold(u64::from(first) & mask, |value, byte| value << 8 | u64::from(*byte));
    let all = (mask << (8 * more)) | ((1_u64 << (8 * more)) - 1);
    Ok((value != all).then_some(value))
}

/// Reads elements of `file`, of which it counts how many there were.
pub(super) struct Walk<'a> {
    pub(super) file: &'a [u8],
    elements: usize,
}

impl<'a> Walk<'a> {
    /// Of a whole file, or of what there is of it.
    pub(super) fn new(file: &'a [u8]) -> Self {
        Self { file, elements: 0 }
    }

    /// The element at `at`, which ends at `end` at the latest; `None` where none fits.
    pub(super) fn element(&mut self, at: usize, end: usize) -> Result<Option<Element>> {
        let Some(rest) = self.file.get(at..end).filter(|rest| !rest.is_empty()) else { return Ok(None) };
        self.elements += 1;
        if self.elements > limits::MAX_VIDEO_BOXES {
            return Err(Error::invalid("a file of more elements than the limit"));
        }
        let mut bytes = Bytes(rest);
        let length = rest.first().map_or(0, |first| first.leading_zeros() as usize + 1);
        let Ok(name) = bytes.take(length) else { return Ok(None) };
        if length > 4 {
            return Err(Error::invalid("bytes that are no element"));
        }
        let id = name.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        let Ok(size) = number(&mut bytes) else { return Ok(None) };
        let start = end - bytes.0.len();
        let is_sized = size.is_some();
        let size = size.and_then(|size| usize::try_from(size).ok());
        let own_end = size.map_or(end, |size| start.saturating_add(size));
        let missing = own_end.saturating_sub(end);
        Ok(Some(Element { id, start, end: own_end.min(end), missing, is_sized }))
    }

    /// The elements in one.
    pub(super) fn children(&mut self, of: Element) -> Result<Vec<Element>> {
        let (mut at, mut found) = (of.start, Vec::new());
        while let Some(element) = self.element(at, of.end)? {
            found.push(element);
            at = element.end;
        }
        Ok(found)
    }

    /// The bytes in one.
    pub(super) fn content(&self, element: Element) -> &'a [u8] {
        self.file.get(element.start..element.end).unwrap_or_default()
    }

    /// The content as an unsigned number.
    pub(super) fn unsigned(&self, element: Element) -> u64 {
        self.content(element).iter().take(8).fold(0, |value, byte| value << 8 | u64::from(*byte))
    }
}
