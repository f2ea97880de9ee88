//! What the headers of a JPEG 2000 and of its tiles say of how tiles are coded. It must not know where headers are.

use super::marker::{self, damaged};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// Most times that wavelets halve an image.
const MAX_LEVELS: u8 = 32;

/// Most step sizes of a component: one of the smallest image, three of each level.
const MAX_STEPS: usize = 1 + 3 * MAX_LEVELS as usize;

/// Most changes of the order of packets. All packets are looked at again for each.
const MAX_CHANGES: usize = 32;

/// Bytes of one, where there are no more than 256 components.
const CHANGE_BYTES: usize = 7;

/// The largest logarithms of a code block's sides.
const MAX_BLOCK_SIDE: u8 = 10;
const MAX_BLOCK_AREA: u8 = 12;

/// The flag of a coding style that says that a mark is behind the header of each packet.
const MARKS_HEADERS: u8 = 4;

/// How a component is cut into code blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Coding {
    /// How many pixels, across and down, have one sample of it.
    pub(super) step: [u64; 2],
    /// Whether a mark is behind the header of each packet.
    pub(super) marks_headers: bool,
    /// How often its sides are halved.
    pub(super) levels: u8,
    /// Logarithms of the sides of its code blocks.
    pub(super) block: [u8; 2],
    /// Logarithms of the sides of its precincts, the smallest image first.
    pub(super) precincts: Vec<[u8; 2]>,
    /// Whether a code block may have a segment for each pass.
    pub(super) many_segments: bool,
    /// Sizes of steps that the file has for it.
    pub(super) steps: usize,
    /// Bits of its largest coefficient, but for those of a region of interest.
    pub(super) planes: u32,
    pub(super) region: u8,
}

impl Coding {
    /// The most passes that go over a code block.
    pub(super) fn passes(&self) -> u32 {
        let planes = (self.planes + u32::from(self.region)).clamp(1, 32);
        3 * planes - 2
    }
}

/// What holds for a tile.
#[derive(Debug, Clone)]
pub(super) struct Tile {
    /// Of each component.
    pub(super) codings: Vec<Coding>,
    pub(super) layers: u64,
    /// Whether its packets are sorted by where they lie.
    pub(super) sorts: bool,
    /// How often the order of its packets changes.
    pub(super) changes: usize,
}

impl Tile {
    /// Takes what a marker says.
    ///
    /// # Errors
    /// When it is damaged, or none of those of a tile.
    pub(super) fn marker(&mut self, kind: u8, body: Bytes<'_>) -> Result<()> {
        match kind {
            marker::COD => self.restyle(body),
            marker::QCD => set_steps(&mut self.codings, body),
            marker::COC | marker::QCC | marker::RGN => self.component(kind, body),
            marker::POC => self.change(body),
            other => Err(damaged(&format!("marker {other:02x} in the header of a tile"))),
        }
    }

    /// Counts changes of the order of packets.
    ///
    /// # Errors
    /// When there are more than [`MAX_CHANGES`].
    pub(super) fn change(&mut self, body: Bytes<'_>) -> Result<()> {
        self.changes += body.0.len() / CHANGE_BYTES;
        if self.changes > MAX_CHANGES {
            return Err(Error::invalid(format!(
                "the order of packets changes {} times, more than the limit of {MAX_CHANGES}",
                self.changes
            )));
        }
        Ok(())
    }

    /// What is said of all components.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn restyle(&mut self, mut body: Bytes<'_>) -> Result<()> {
        let (flags, order) = (body.u8()?, body.u8()?);
        self.layers = u64::from(body.u16()?);
        body.skip(1)?;
        self.sorts = order >= 2;
        let style = Style::read(flags, &mut body)?;
        for coding in &mut self.codings {
            style.apply(coding);
            coding.marks_headers = flags & MARKS_HEADERS != 0;
        }
        if body.is_empty() { Ok(()) } else { Err(damaged("a coding style of another length")) }
    }

    /// What is said of one component.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn component(&mut self, kind: u8, mut body: Bytes<'_>) -> Result<()> {
        let number = usize::from(body.u8()?);
        let coding = self.codings.get_mut(number).ok_or_else(|| damaged("a component that is none"))?;
        match kind {
            marker::COC => {
                let flags = body.u8()?;
                Style::read(flags, &mut body)?.apply(coding);
                coding.marks_headers |= flags & MARKS_HEADERS != 0;
            }
            marker::QCC => return set_steps(std::slice::from_mut(coding), body),
            _ => {
                let (style, shift) = (body.u8()?, body.u8()?);
                coding.region = if style == 0 { shift } else { 0 };
            }
        }
        if body.is_empty() { Ok(()) } else { Err(damaged("a header of another length")) }
    }
}

/// What is said of how components are cut.
struct Style {
    levels: u8,
    block: [u8; 2],
    precincts: Vec<[u8; 2]>,
    many_segments: bool,
}

impl Style {
    fn read(flags: u8, body: &mut Bytes<'_>) -> Result<Self> {
        let levels = body.u8()?;
        let block = [body.u8()?, body.u8()?].map(|side| side.saturating_add(2));
        let style = body.u8()?;
        body.skip(1)?;
        if levels > MAX_LEVELS {
            return Err(damaged(&format!("sides are halved {levels} times, more than {MAX_LEVELS}")));
        }
        if block.iter().any(|&side| side > MAX_BLOCK_SIDE) || block[0] + block[1] > MAX_BLOCK_AREA {
            return Err(damaged("code blocks that are too large"));
        }
        let mut precincts = vec![[15, 15]; usize::from(levels) + 1];
        if flags & 1 != 0 {
            for sides in &mut precincts {
                let packed = body.u8()?;
                *sides = [packed & 15, packed >> 4];
            }
        }
        if precincts.iter().skip(1).any(|sides| sides.contains(&0)) {
            return Err(damaged("precincts without a sample"));
        }
        Ok(Self { levels, block, precincts, many_segments: style & 0b101 != 0 })
    }

    fn apply(&self, coding: &mut Coding) {
        coding.levels = self.levels;
        coding.block = self.block;
        coding.precincts.clone_from(&self.precincts);
        coding.many_segments = self.many_segments;
    }
}

/// Reads the step sizes of components.
///
/// # Errors
/// When there are too many, or none.
pub(super) fn set_steps(codings: &mut [Coding], mut body: Bytes<'_>) -> Result<()> {
    let style = body.u8()?;
    let (mut steps, mut exponent) = (0, 0);
    while !body.is_empty() {
        let is_wide = style & 31 != 0;
        exponent =
            exponent.max(if is_wide { u32::from(body.u16()? >> 11) } else { u32::from(body.u8()? >> 3) });
        steps += 1;
    }
    if steps == 0 || steps > MAX_STEPS || (style & 31 == 1 && steps > 1) {
        return Err(damaged(&format!("{steps} step sizes, expected 1 to {MAX_STEPS}")));
    }
    for coding in codings {
        coding.steps = steps;
        coding.planes = (u32::from(style >> 5) + exponent).saturating_sub(1);
    }
    Ok(())
}
