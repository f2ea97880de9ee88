//! The headers of a JPEG 2000 and of its tiles, as far as they say how much work and memory it takes. They are read here before the library
//! reads them, and what is not read the same way by both is refused. It must not know what anything takes.

use std::collections::BTreeMap;

use super::tile::{Coding, Tile, set_steps};
use crate::cpu::atoms::head;
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// Most components of an image, alpha included, and most that a palette makes of one.
pub(super) const MAX_COMPONENTS: usize = 4;

/// Most tiles: their numbers have 16 bits.
const MAX_TILES: u64 = 65_535;

const JP2: &[u8] = &[0, 0, 0, 12, b'j', b'P', b' ', b' '];

/// Markers: the second of their bytes.
pub(super) mod marker {
    pub(in crate::cpu::decode::jpeg2000) const SOC: u8 = 0x4F;
    pub(in crate::cpu::decode::jpeg2000) const SIZ: u8 = 0x51;
    pub(in crate::cpu::decode::jpeg2000) const COD: u8 = 0x52;
    pub(in crate::cpu::decode::jpeg2000) const COC: u8 = 0x53;
    pub(in crate::cpu::decode::jpeg2000) const TLM: u8 = 0x55;
    pub(in crate::cpu::decode::jpeg2000) const PLT: u8 = 0x58;
    pub(in crate::cpu::decode::jpeg2000) const QCD: u8 = 0x5C;
    pub(in crate::cpu::decode::jpeg2000) const QCC: u8 = 0x5D;
    pub(in crate::cpu::decode::jpeg2000) const RGN: u8 = 0x5E;
    pub(in crate::cpu::decode::jpeg2000) const POC: u8 = 0x5F;
    pub(in crate::cpu::decode::jpeg2000) const PPM: u8 = 0x60;
    pub(in crate::cpu::decode::jpeg2000) const PPT: u8 = 0x61;
    pub(in crate::cpu::decode::jpeg2000) const CRG: u8 = 0x63;
    pub(in crate::cpu::decode::jpeg2000) const COM: u8 = 0x64;
    pub(in crate::cpu::decode::jpeg2000) const SOT: u8 = 0x90;
    pub(in crate::cpu::decode::jpeg2000) const SOD: u8 = 0x93;
    pub(in crate::cpu::decode::jpeg2000) const EOC: u8 = 0xD9;
}

/// A rectangle, without its last column and row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) from: [u64; 2],
    pub(super) to: [u64; 2],
}

impl Rect {
    /// Its columns and rows.
    pub(super) fn sides(self) -> [u64; 2] {
        [0, 1].map(|axis| self.to[axis].saturating_sub(self.from[axis]))
    }

    pub(super) fn area(self) -> u64 {
        let [width, height] = self.sides();
        width * height
    }
}

/// A codestream whose headers were read.
#[derive(Debug)]
pub(super) struct Codestream<'a> {
    pub(super) image: Rect,
    /// Where the first tile begins, and the sides of each.
    origin: [u64; 2],
    tile: [u64; 2],
    across: u64,
    /// How many tiles there are.
    pub(super) tiles: u64,
    /// Components that a palette makes, and whether they are put into another order.
    palette: usize,
    ordered: bool,
    /// What holds for those that say nothing else.
    pub(super) main: Tile,
    /// What holds for others.
    own: BTreeMap<u64, Tile>,
    /// What follows the main header.
    rest: Bytes<'a>,
}

pub(super) fn damaged(what: &str) -> Error {
    Error::invalid(format!("damaged: {what}"))
}

impl<'a> Codestream<'a> {
    /// The main header of the last codestream of a file, which is the one that is decoded.
    ///
    /// # Errors
    /// When it is damaged, or beyond a limit.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self> {
        if !bytes.starts_with(JP2) {
            return Self::main_header(bytes);
        }
        let (mut last, mut palette, mut ordered) = (None, 0, false);
        each_box(bytes, |name, body| {
            match &name {
                b"jp2c" => last = Some(Self::main_header(body)?),
                b"jp2h" => each_box(body, |name, body| {
                    palette = palette.max(palette_components(name, body)?);
                    ordered |= &name == b"cdef";
                    Ok(())
                })?,
                _ => {}
            }
            Ok(())
        })?;
        let last = last.ok_or_else(|| damaged("a file without a codestream"))?;
        Ok(Self { palette, ordered, ..last })
    }

    /// Planes of samples that are there at a time.
    pub(super) fn planes(&self) -> u64 {
        let (components, palette) = (self.main.codings.len(), self.palette);
        let ordered = if self.ordered { 2 * components.max(palette) } else { 0 };
        (components + palette).max(ordered) as u64
    }

    fn main_header(bytes: &'a [u8]) -> Result<Self> {
        let mut rest = Bytes(bytes);
        if next_marker(&mut rest)? != marker::SOC || next_marker(&mut rest)? != marker::SIZ {
            return Err(damaged("a codestream does not begin with its size"));
        }
        let mut stream = Self::sized(segment(&mut rest)?)?;
        let mut defaults = None;
        let mut quantized = false;
        // What is said of one component stands above what is said of all, wherever it stands.
        let mut later: Vec<(u8, Bytes<'_>)> = Vec::new();
        while peek_marker(rest)? != marker::SOT {
            match next_marker(&mut rest)? {
                marker::COD => defaults = Some(segment(&mut rest)?),
                marker::QCD => {
                    quantized = true;
                    set_steps(&mut stream.main.codings, segment(&mut rest)?)?;
                }
                kind @ (marker::COC | marker::QCC | marker::RGN) => later.push((kind, segment(&mut rest)?)),
                marker::POC => stream.main.change(segment(&mut rest)?)?,
                marker::TLM | marker::COM | marker::PPM | marker::CRG => {
                    segment(&mut rest)?;
                }
                0x30..=0x3F => {}
                other => return Err(damaged(&format!("marker {other:02x} in the main header"))),
            }
        }
        let (Some(defaults), true) = (defaults, quantized) else {
            return Err(damaged("a header without its coding style or quantization"));
        };
        stream.main.restyle(defaults)?;
        for (kind, body) in later {
            stream.main.component(kind, body)?;
        }
        stream.rest = rest;
        Ok(stream)
    }

    /// Reads a size.
    fn sized(mut body: Bytes<'a>) -> Result<Self> {
        body.skip(2)?;
        let mut sides = [[0_u64; 2]; 4];
        for pair in &mut sides {
            *pair = [u64::from(body.u32()?), u64::from(body.u32()?)];
        }
        let [to, from, tile, origin] = sides;
        let count = usize::from(body.u16()?);
        if count > MAX_COMPONENTS {
            return Err(Error::unsupported(format!("{count} components, expected 1 to {MAX_COMPONENTS}")));
        }
        let mut steps = Vec::with_capacity(count);
        for _ in 0..count {
            body.skip(1)?;
            steps.push([u64::from(body.u8()?), u64::from(body.u8()?)]);
        }
        let is_sound = |axis: usize| {
            tile[axis] > 0
                && from[axis] < to[axis]
                && origin[axis] <= from[axis]
                && origin[axis] + tile[axis] > from[axis]
                && steps.iter().all(|step| step[axis] > 0)
        };
        if count == 0 || !body.is_empty() || !is_sound(0) || !is_sound(1) {
            return Err(damaged("a size that is none"));
        }
        let [across, down] = [0, 1].map(|axis| (to[axis] - origin[axis]).div_ceil(tile[axis]));
        let tiles = across * down;
        if tiles > MAX_TILES {
            return Err(Error::invalid(format!("{tiles} tiles, more than the limit of {MAX_TILES}")));
        }
        let coding = |&step: &[u64; 2]| Coding {
            step,
            levels: 0,
            block: [2, 2],
            precincts: Vec::new(),
            many_segments: false,
            steps: 0,
            planes: 0,
            region: 0,
        };
        let codings = steps.iter().map(coding).collect();
        let main = Tile { codings, layers: 1, sorts: false, changes: 0 };
        let image = Rect { from, to };
        let own = BTreeMap::new();
        Ok(Self {
            image,
            origin,
            tile,
            across,
            tiles,
            palette: 0,
            ordered: false,
            main,
            own,
            rest: Bytes(&[]),
        })
    }

    /// Reads the headers of all tiles.
    ///
    /// # Errors
    /// When one is damaged or missing.
    pub(super) fn read_tiles(&mut self) -> Result<()> {
        let mut seen = vec![false; self.tiles as usize];
        let mut rest = self.rest;
        while peek_marker(rest)? == marker::SOT {
            let part = rest;
            next_marker(&mut rest)?;
            let mut body = segment(&mut rest)?;
            let (number, length) = (u64::from(body.u16()?), body.u32()? as usize);
            body.skip(2)?;
            let known = seen.get_mut(number as usize).filter(|_| body.is_empty());
            *known.ok_or_else(|| damaged("a tile that is none"))? = true;
            let mut whole = part;
            let mut rest_of_part = Bytes(whole.take(length)?);
            rest_of_part.skip(part.0.len() - rest.0.len())?;
            self.tile_header(number, rest_of_part)?;
            rest = whole;
        }
        if let Some(missing) = seen.iter().position(|&seen| !seen) {
            return Err(Error::invalid(format!(
                "truncated: of {} tiles number {missing} is missing",
                self.tiles
            )));
        }
        Ok(())
    }

    fn tile_header(&mut self, number: u64, mut rest: Bytes<'_>) -> Result<()> {
        let mut tile = None;
        let main = &self.main;
        let known = &mut self.own;
        let mut own = || known.remove(&number).unwrap_or_else(|| Tile { changes: 0, ..main.clone() });
        loop {
            match peek_marker(rest)? {
                marker::SOD | marker::EOC => break,
                kind => {
                    next_marker(&mut rest)?;
                    match kind {
                        marker::PLT | marker::COM | marker::PPT => {
                            segment(&mut rest)?;
                        }
                        0x30..=0x3F => {}
                        _ => tile.get_or_insert_with(&mut own).marker(kind, segment(&mut rest)?)?,
                    }
                }
            }
        }
        if let Some(tile) = tile {
            self.own.insert(number, tile);
        }
        Ok(())
    }

    /// What holds for tile `number`, and where it lies.
    pub(super) fn tile(&self, number: u64) -> (&Tile, Rect) {
        let place = [number % self.across, number / self.across];
        let from = |axis: usize| self.origin[axis] + place[axis] * self.tile[axis];
        let rect = Rect {
            from: [0, 1].map(|axis| from(axis).max(self.image.from[axis])),
            to: [0, 1].map(|axis| (from(axis) + self.tile[axis]).min(self.image.to[axis])),
        };
        (self.own.get(&number).unwrap_or(&self.main), rect)
    }

    /// The order of packets of the whole file changes so often, for a tile that says nothing else.
    pub(super) fn changes(&self, tile: &Tile) -> usize {
        if tile.changes == 0 { self.main.changes } else { tile.changes }
    }
}

/// How many components a box says that a palette makes.
fn palette_components(name: [u8; 4], body: &[u8]) -> Result<usize> {
    const BYTES_OF_A_COMPONENT: usize = 4;
    let count = match &name {
        b"cmap" => body.len() / BYTES_OF_A_COMPONENT,
        b"pclr" => body.get(2).copied().map_or(0, usize::from),
        _ => 0,
    };
    if count > MAX_COMPONENTS {
        let text = format!("a palette of {count} components, expected 1 to {MAX_COMPONENTS}");
        return Err(Error::unsupported(text));
    }
    Ok(count)
}

/// Calls `look` for each box.
fn each_box<'a>(bytes: &'a [u8], mut look: impl FnMut([u8; 4], &'a [u8]) -> Result<()>) -> Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let head = head(rest).ok_or_else(|| damaged("a box that is cut off"))?;
        let end = head.size.unwrap_or(rest.len());
        let body = rest.get(head.length..end).ok_or_else(|| damaged("a box that is cut off"))?;
        look(head.name, body)?;
        rest = &rest[end..];
    }
    Ok(())
}

/// The next marker, which stays where it is.
fn peek_marker(mut rest: Bytes<'_>) -> Result<u8> {
    next_marker(&mut rest)
}

fn next_marker(rest: &mut Bytes<'_>) -> Result<u8> {
    match rest.u8()? {
        0xFF => rest.u8(),
        other => Err(damaged(&format!("{other:02x} where a marker is expected"))),
    }
}

/// What a marker says.
fn segment<'a>(rest: &mut Bytes<'a>) -> Result<Bytes<'a>> {
    let length = usize::from(rest.u16()?);
    let body = length.checked_sub(2).ok_or_else(|| damaged("a header without a length"))?;
    rest.take(body).map(Bytes)
}
