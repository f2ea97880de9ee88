//! The headers of a JPEG 2000 and of its tiles, as far as they say how much work and memory it takes. They are read
//! here before the library reads them, and what is not read the same way by both is refused. It must not know what
//! anything takes.

use std::collections::BTreeMap;

use super::ending::{self, Ending};
use super::marker::{self, damaged};
use super::tile::{Coding, Tile, set_steps};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// Most components of an image, and most channels that a palette makes of them, alpha included.
pub(super) const MAX_COMPONENTS: usize = 4;

/// Most tiles: their numbers have 16 bits.
const MAX_TILES: u64 = 65_535;

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
    /// Bits of each component.
    pub(super) bits: Vec<u8>,
    /// What holds for those that say nothing else.
    pub(super) main: Tile,
    /// What holds for others.
    own: BTreeMap<u64, Tile>,
    bytes: &'a [u8],
    /// What follows the main header.
    rest: Bytes<'a>,
    /// How it ends, once tiles were read.
    pub(super) ending: Ending,
}

impl<'a> Codestream<'a> {
    /// The size that the picture is decoded to. Where all components have as many samples, their number counts, not
    /// that of the grid.
    pub(super) fn size(&self) -> [u64; 2] {
        let mut steps = self.main.codings.iter().map(|coding| coding.step);
        let first = steps.next().unwrap_or([1, 1]);
        let step = if steps.all(|step| step == first) { first } else { [1, 1] };
        [0, 1]
            .map(|axis| self.image.to[axis].div_ceil(step[axis]) - self.image.from[axis].div_ceil(step[axis]))
    }

    /// Whether it has the three components of luma and chroma, and less of chroma.
    pub(super) fn has_less_chroma(&self) -> bool {
        let steps: Vec<[u64; 2]> = self.main.codings.iter().map(|coding| coding.step).collect();
        matches!(steps[..], [luma, blue, red] if blue == red && blue != luma && blue[0] >= luma[0] && blue[1] >= luma[1])
    }

    /// Reads the main header. One that is damaged or beyond a limit is an error.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self> {
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
                marker::CAP => {
                    return Err(Error::unsupported(
                        "high-throughput JPEG 2000 (HTJ2K, part 15 of the standard), expected part 1",
                    ));
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
        (stream.bytes, stream.rest) = (bytes, rest);
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
        let (mut steps, mut bits) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for _ in 0..count {
            // Its first bit says that samples are signed. They are decoded with half of the range added.
            bits.push((body.u8()? & 0x7F) + 1);
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
            marks_headers: false,
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
        let ending = Ending::default();
        Ok(Self { image, origin, tile, across, tiles, bits, main, own, bytes: &[], rest: Bytes(&[]), ending })
    }

    /// Reads the headers of all tiles.
    ///
    /// # Errors
    /// When one is damaged or missing.
    pub(super) fn read_tiles(&mut self) -> Result<()> {
        let mut seen = vec![false; self.tiles as usize];
        let (mut rest, mut last, mut goes_to_the_end) = (self.rest, self.rest, false);
        while !rest.is_empty() && peek_marker(rest)? == marker::SOT {
            let part = rest;
            next_marker(&mut rest)?;
            let mut body = segment(&mut rest)?;
            let (number, length) = (u64::from(body.u16()?), body.u32()? as usize);
            body.skip(2)?;
            let known = seen.get_mut(number as usize).filter(|_| body.is_empty());
            *known.ok_or_else(|| damaged("a tile that is none"))? = true;
            last = part;
            goes_to_the_end = length == 0;
            if goes_to_the_end {
                rest = ending::packets_end(self.tile_header(number, rest)?);
                break;
            }
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
        let [part, at] = [last, rest].map(|rest| self.bytes.len() - rest.0.len());
        self.ending = Ending { part, at, goes_to_the_end, is_marked: !rest.is_empty() };
        if !self.ending.is_marked && self.tiles > 1 {
            return Err(ending::cut());
        }
        Ok(())
    }

    /// Reads the header of a part of a tile; what is behind it.
    fn tile_header<'b>(&mut self, number: u64, mut rest: Bytes<'b>) -> Result<Bytes<'b>> {
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
        Ok(rest)
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
