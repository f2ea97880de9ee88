//! The items of an AVIF, which are its pictures: where they lie in the file, and their properties (ISO/IEC 23008-12 and
//! 14496-12). It must not know pixels.
//!
//! ```text
//! meta ─┬─ pitm  which item is the picture          iref  which one is its alpha
//!       ├─ iinf  what an item is coded with         iloc  where its bytes lie (idat: here)
//!       └─ iprp ── ipco  properties, one after the other;  ipma  which of them an item has
//! ```

use super::properties::Properties;
use crate::cpu::atoms::{FullBox, atoms, find};
use crate::cpu::bytes::Bytes;
use crate::error::{Context, Error, Result};
use crate::limits;

/// An item's pictures are coded by AV1.
const CODED_BY_AV1: &[u8; 4] = b"av01";

/// The pictures of a file.
pub(super) struct Items<'a> {
    pub(super) color: Item<'a>,
    pub(super) alpha: Option<Item<'a>>,
    /// Whether colours were multiplied by alpha.
    pub(super) premultiplied: bool,
}

/// One picture of AV1.
pub(super) struct Item<'a> {
    pub(super) properties: Properties<'a>,
    id: u32,
    /// Where its bytes may lie.
    meta: Meta<'a>,
    file: &'a [u8],
}

impl<'a> Items<'a> {
    /// Reads what the file says of its main picture; pixels may be missing.
    ///
    /// # Errors
    /// A header that ends too early; a picture that is not one of AV1, such as a grid of several.
    pub(super) fn read(file: &'a [u8]) -> Result<Self> {
        let meta = find(file, b"meta").and_then(|meta| meta.get(4..)).map(Meta);
        let meta = meta.ok_or_else(|| match find(file, b"moov") {
            Some(_) => Error::unsupported("a sequence of frames without a picture that stands for it"),
            None => no_box(b"meta"),
        })?;
        let id = meta.main()?;
        let color = Item::read(meta, id, file)?;
        let mut alpha = None;
        for other in meta.referring(b"auxl", id).take(limits::MAX_AUXILIARY_IMAGES) {
            if alpha.is_none() && Properties::read(meta.child(b"iprp")?, other)?.is_alpha {
                alpha = Some(Item::read(meta, other, file).context(|| "alpha".to_owned())?);
            }
        }
        let premultiplied =
            alpha.as_ref().is_some_and(|alpha| meta.referring(b"prem", alpha.id).any(|from| from == id));
        Ok(Self { color, alpha, premultiplied })
    }
}

impl<'a> Item<'a> {
    fn read(meta: Meta<'a>, id: u32, file: &'a [u8]) -> Result<Self> {
        match &meta.kind(id)? {
            CODED_BY_AV1 => {}
            b"grid" => return Err(Error::unsupported("a grid of several pictures, expected one of AV1")),
            kind => {
                return Err(Error::unsupported(format!(
                    "a picture of type `{}`, expected `av01`",
                    kind.escape_ascii()
                )));
            }
        }
        Ok(Self { properties: Properties::read(meta.child(b"iprp")?, id)?, id, meta, file })
    }

    /// Its bytes.
    ///
    /// # Errors
    /// Bytes that are not in the file, or not told in a way that is known.
    pub(super) fn stream(&self) -> Result<Vec<u8>> {
        let mut table = FullBox::new(self.meta.child(b"iloc")?)?;
        let sizes = table.rest.u16()?;
        let size = |place: u32| usize::from(sizes >> (12 - 4 * place) & 15);
        let indexed = table.version == 1 || table.version == 2;
        let items = if table.version < 2 { u32::from(table.rest.u16()?) } else { table.rest.u32()? };
        for _ in 0..items {
            let id = table.number(2)?;
            let method = if indexed { table.rest.u16()? & 15 } else { 0 };
            table.rest.skip(2)?;
            let base = number(&mut table.rest, size(2))?;
            let index = if indexed { size(3) } else { 0 };
            // All at once: places that take no bytes can be many.
            let parts = usize::from(table.rest.u16()?);
            let mut places = Bytes(table.rest.take(parts * (index + size(0) + size(1)))?);
            if id != self.id {
                continue;
            }
            let (from, mut stream) = (self.source(method)?, Vec::new());
            for _ in 0..parts {
                places.skip(index)?;
                let offset = base.saturating_add(number(&mut places, size(0))?);
                let length = number(&mut places, size(1))?;
                self.extend(&mut stream, from, offset, length)?;
            }
            return Ok(stream);
        }
        Err(Error::invalid(format!("no place in the file is told of item {}", self.id)))
    }

    /// Where an item's bytes are, by the method that tells of them.
    fn source(&self, method: u16) -> Result<&'a [u8]> {
        match method {
            0 => Ok(self.file),
            1 => self.meta.child(b"idat"),
            other => {
                Err(Error::unsupported(format!("bytes that are told by method {other}, expected 0 or 1")))
            }
        }
    }

    /// Adds `length` bytes of `from`, from `offset` on; a length of 0 is all that follow.
    fn extend(&self, stream: &mut Vec<u8>, from: &[u8], offset: usize, length: usize) -> Result<()> {
        let length = if length == 0 { from.len().saturating_sub(offset) } else { length };
        let end = offset.saturating_add(length);
        let part = from.get(offset..end).ok_or_else(|| {
            Error::invalid(format!(
                "truncated: the picture's bytes end at {end}, the input's at {}",
                from.len()
            ))
        })?;
        // Parts may lie over one another, and a file of kilobytes would name gigabytes.
        if stream.len() + part.len() > self.file.len() {
            return Err(Error::invalid("damaged: parts of a picture that are more bytes than the file has"));
        }
        stream.extend_from_slice(part);
        Ok(())
    }
}

/// A number of so many bytes; one of none is 0.
fn number(from: &mut Bytes<'_>, size: usize) -> Result<usize> {
    let bytes = from.take(size)?;
    Ok(bytes.iter().fold(0, |number, &byte| number << 8 | usize::from(byte)))
}

fn no_box(name: &[u8; 4]) -> Error {
    Error::invalid(format!("damaged or truncated header: no box `{}`", name.escape_ascii()))
}

/// The boxes in `meta`.
#[derive(Clone, Copy)]
struct Meta<'a>(&'a [u8]);

impl<'a> Meta<'a> {
    fn child(self, name: &[u8; 4]) -> Result<&'a [u8]> {
        find(self.0, name).ok_or_else(|| no_box(name))
    }

    /// The item that is the file's picture.
    fn main(self) -> Result<u32> {
        FullBox::new(self.child(b"pitm")?)?.number(1)
    }

    /// What item `id` is coded with.
    fn kind(self, id: u32) -> Result<[u8; 4]> {
        let mut table = FullBox::new(self.child(b"iinf")?)?;
        table.rest.skip(if table.version == 0 { 2 } else { 4 })?;
        for entry in atoms(table.rest.0).filter(|entry| &entry.name == b"infe") {
            let mut entry = FullBox::new(entry.body)?;
            if entry.version >= 2 && entry.number(3)? == id {
                entry.rest.skip(2)?;
                return entry.rest.name();
            }
        }
        Err(Error::invalid(format!("damaged or truncated header: no item {id}")))
    }

    /// The items that refer to item `to` as `relation` says. Damaged tables refer to nothing.
    fn referring(self, relation: &'static [u8; 4], to: u32) -> impl Iterator<Item = u32> {
        let table = find(self.0, b"iref").and_then(|table| FullBox::new(table).ok());
        let (version, references) = table.map_or((0, Bytes(&[])), |table| (table.version, table.rest));
        atoms(references.0).filter(move |reference| &reference.name == relation).filter_map(
            move |reference| {
                let mut reference = FullBox { version, flags: 0, rest: Bytes(reference.body) };
                let from = reference.number(1).ok()?;
                let count = reference.rest.u16().ok()?;
                (0..count).map_while(|_| reference.number(1).ok()).any(|found| found == to).then_some(from)
            },
        )
    }
}
