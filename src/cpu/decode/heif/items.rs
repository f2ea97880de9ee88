//! The items of HEIF, which are its pictures: where they lie in the file, and their properties (ISO/IEC 23008-12 and
//! 14496-12). It must not know pixels.
//!
//! ```text
//! meta ─┬─ pitm  which item is the picture          iref  which one is its alpha, which it is put together of
//!       ├─ iinf  what an item is coded with         iloc  where its bytes lie (idat: here)
//!       └─ iprp ── ipco  properties, one after the other;  ipma  which of them an item has
//! ```

use super::coding::Coding;
use super::properties::Properties;
use crate::cpu::atoms::{FullBox, atoms, find};
use crate::cpu::av1::UNSPECIFIED;
use crate::cpu::bytes::Bytes;
use crate::error::{Context, Error, Result};
use crate::limits;

/// An item is a grid of others.
const GRID: &[u8; 4] = b"grid";
/// An item is another one, with properties of its own.
const IDENTITY: &[u8; 4] = b"iden";

/// The pictures of a file.
pub(super) struct Items<'a> {
    pub(super) color: Item<'a>,
    pub(super) alpha: Option<Item<'a>>,
    /// Whether colours were multiplied by alpha.
    pub(super) premultiplied: bool,
}

/// One picture: coded, or put together of others.
pub(super) struct Item<'a> {
    pub(super) properties: Properties<'a>,
    /// How it is coded, or those that it is put together of.
    pub(super) coding: Coding,
    /// Whether it is a grid.
    pub(super) is_grid: bool,
    /// Those that it is put together of, row by row; none of a coded one.
    parts: Vec<u32>,
    id: u32,
    /// Where its bytes may lie.
    meta: Meta<'a>,
    file: &'a [u8],
}

impl<'a> Items<'a> {
    /// Reads what the file says of its main picture; pixels may be missing.
    ///
    /// # Errors
    /// A header that ends too early; a picture that is coded otherwise, or put together in another way than as a grid.
    pub(super) fn read(file: &'a [u8], coding: Coding) -> Result<Self> {
        let meta = find(file, b"meta").and_then(|meta| meta.get(4..)).map(Meta);
        let meta = meta.ok_or_else(|| match find(file, b"moov") {
            Some(_) => Error::unsupported("a sequence of frames without a picture that stands for it"),
            None => no_box(b"meta"),
        })?;
        let id = meta.main()?;
        let color = Item::read(meta, id, file, coding)?;
        let mut alpha = None;
        for other in meta.referring(b"auxl", id).take(limits::MAX_AUXILIARY_IMAGES) {
            if alpha.is_none() && Properties::read(meta.child(b"iprp")?, other, coding)?.is_alpha {
                alpha = Some(Item::read(meta, other, file, coding).context(|| "alpha".to_owned())?);
            }
        }
        if let (Some(alpha), Coding::H265) = (&mut alpha, coding) {
            // Alpha has no colours: the largest number is opaque, whatever the stream says of its range.
            alpha.properties.colors = Some((UNSPECIFIED, true));
        }
        let premultiplied =
            alpha.as_ref().is_some_and(|alpha| meta.referring(b"prem", alpha.id).any(|from| from == id));
        Ok(Self { color, alpha, premultiplied })
    }
}

impl<'a> Item<'a> {
    /// The picture `id`. One that is put together has the samples of the first of its parts.
    fn read(meta: Meta<'a>, id: u32, file: &'a [u8], coding: Coding) -> Result<Self> {
        let kind = meta.kind(id)?;
        if &kind != GRID && &kind != IDENTITY {
            return Self::coded(meta, id, file, coding);
        }
        let properties = Properties::read(meta.child(b"iprp")?, id, coding)?;
        let parts = meta.referred(b"dimg", id)?;
        let is_grid = &kind == GRID;
        if parts.is_empty() || (!is_grid && parts.len() > 1) {
            return Err(Error::invalid(format!(
                "damaged: a picture of type `{}` of {} pictures",
                kind.escape_ascii(),
                parts.len()
            )));
        }
        let whole = Self { properties, coding, is_grid, parts, id, meta, file };
        let first = whole.part(0)?.properties;
        let own = whole.properties;
        let size = if own.size == [0, 0] { first.size } else { own.size };
        let properties = Properties {
            size,
            depth: first.depth,
            gray: first.gray,
            halved_twice: first.halved_twice,
            colors: own.colors.or(first.colors),
            codes: own.codes.or(first.codes),
            profile: own.profile.or(first.profile),
            ..own
        };
        Ok(Self { properties, ..whole })
    }

    /// The picture `id`, which has to be a coded one.
    fn coded(meta: Meta<'a>, id: u32, file: &'a [u8], coding: Coding) -> Result<Self> {
        let kind = meta.kind(id)?;
        if &kind != coding.item() {
            return Err(Error::unsupported(format!(
                "a picture of type `{}`, expected `{}`",
                kind.escape_ascii(),
                coding.item().escape_ascii()
            )));
        }
        let properties = Properties::read(meta.child(b"iprp")?, id, coding)?;
        if properties.depth == 0 {
            let name = coding.property().escape_ascii();
            return Err(Error::invalid(format!("damaged header: no property `{name}`")));
        }
        Ok(Self { properties, coding, is_grid: false, parts: Vec::new(), id, meta, file })
    }

    /// How many pictures it is put together of; 0 of a coded one.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The picture `place` of those that it is put together of.
    ///
    /// # Errors
    /// One that is not coded as the whole, or is cut or turned by itself.
    pub(super) fn part(&self, place: usize) -> Result<Self> {
        let id = self.parts.get(place).ok_or_else(|| Error::internal("a part that is not there"))?;
        let part = Self::coded(self.meta, *id, self.file, self.coding)
            .context(|| format!("picture {place} of {}", self.parts.len()))?;
        let properties = &part.properties;
        if properties.window.is_some() || properties.orientation != Default::default() {
            return Err(Error::unsupported("a picture of others that are cut or turned by themselves"));
        }
        Ok(part)
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

    /// The items that refer to item `to` as `relation` says.
    fn referring(self, relation: &'static [u8; 4], to: u32) -> impl Iterator<Item = u32> {
        let references = self.references(relation);
        references.filter_map(move |(from, mut found)| found.any(|found| found == to).then_some(from))
    }

    /// The items that item `from` refers to as `relation` says, in order.
    ///
    /// # Errors
    /// More than [`limits::MAX_GRID_PICTURES`].
    fn referred(self, relation: &'static [u8; 4], from: u32) -> Result<Vec<u32>> {
        let found = self.references(relation).find(|(found, _)| *found == from);
        let found: Vec<u32> = found.map(|(_, found)| found.collect()).unwrap_or_default();
        if found.len() > limits::MAX_GRID_PICTURES {
            return Err(Error::unsupported(format!(
                "a picture of {} others, expected at most {}",
                found.len(),
                limits::MAX_GRID_PICTURES
            )));
        }
        Ok(found)
    }

    /// Items that refer to others as `relation` says, each with these. Damaged tables refer to nothing.
    fn references(
        self,
        relation: &'static [u8; 4],
    ) -> impl Iterator<Item = (u32, impl Iterator<Item = u32>)> {
        let table = find(self.0, b"iref").and_then(|table| FullBox::new(table).ok());
        let (version, references) = table.map_or((0, Bytes(&[])), |table| (table.version, table.rest));
        atoms(references.0).filter(move |reference| &reference.name == relation).filter_map(
            move |reference| {
                let mut reference = FullBox { version, flags: 0, rest: Bytes(reference.body) };
                let from = reference.number(1).ok()?;
                let count = reference.rest.u16().ok()?;
                Some((from, (0..count).map_while(move |_| reference.number(1).ok())))
            },
        )
    }
}
