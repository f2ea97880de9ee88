//! The boxes of a JPEG 2000, which say what the components of its codestream mean (ISO/IEC 15444-1, annex I): colours,
//! a palette, the order of channels. It must not know pixels.

use super::codestream::MAX_COMPONENTS;
use super::marker::damaged;
use crate::cpu::atoms::head;
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

const JP2: &[u8] = &[0, 0, 0, 12, b'j', b'P', b' ', b' '];

/// Most rows of a palette.
const MAX_ROWS: usize = 1_024;

/// Most bits of a palette's colour.
const MAX_PALETTE_BITS: u8 = 16;

/// Names of colours, by their number in box `colr`, that are not shown: luma and chroma of other kinds than sYCC, inks,
/// and Lab.
const NOT_SHOWN: [(u32, &str); 11] = [
    (1, "YCbCr"),
    (3, "YCbCr"),
    (4, "YCbCr"),
    (9, "PhotoYCC"),
    (11, "CMY"),
    (12, "CMYK"),
    (13, "YCCK"),
    (14, "CIE L*a*b*"),
    (19, "CIEJab"),
    (22, "YPbPr"),
    (24, "e-sYCC"),
];

/// The same by the signature of a profile.
const PROFILES_NOT_SHOWN: [(&[u8; 4], &str); 4] =
    [(b"CMYK", "CMYK"), (b"CMY ", "CMY"), (b"Lab ", "CIE L*a*b*"), (b"YCbr", "YCbCr")];

/// Where a profile has its signature.
const PROFILE_SPACE: usize = 16;

/// The number of luma with chroma in box `colr`.
const SYCC: u32 = 18;

/// Kinds of channels in box `cdef`.
const COLOR: u16 = 0;
const OPACITY: u16 = 1;
const PREMULTIPLIED: u16 = 2;

/// What a file says of its codestream.
#[derive(Debug, Default)]
pub(super) struct Boxes<'a> {
    pub(super) codestream: &'a [u8],
    /// Whether it says that colours are luma and chroma, or that they are not; nothing where it does not say.
    pub(super) is_sycc: Option<bool>,
    palette: Option<Palette>,
    mapping: Option<&'a [u8]>,
    definitions: Option<&'a [u8]>,
}

/// Colours by number.
#[derive(Debug)]
pub(super) struct Palette {
    /// Bits of each column.
    bits: Vec<u8>,
    /// Row after row.
    colors: Vec<u16>,
}

impl Palette {
    /// Writes the colour that a column has for each number of `from`. Numbers behind the last row, as of lossy files,
    /// are that row.
    pub(super) fn look_up(&self, column: usize, from: &[f32], mut to: impl FnMut(usize, f32)) {
        let columns = self.bits.len();
        let last = (self.colors.len() / columns).saturating_sub(1);
        for (place, number) in from.iter().enumerate() {
            let row = (number.max(0.0).round() as usize).min(last);
            to(place, f32::from(self.colors.get(row * columns + column).copied().unwrap_or(0)));
        }
    }
}

/// A channel of the picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Channel {
    pub(super) component: usize,
    /// The column of the palette whose colours it has.
    pub(super) column: Option<usize>,
    pub(super) bits: u8,
}

impl<'a> Boxes<'a> {
    /// Reads what stands beside the codestream. A bare one has nothing beside it.
    ///
    /// # Errors
    /// Boxes that are damaged; colours that are not shown.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self> {
        if !bytes.starts_with(JP2) {
            return Ok(Self { codestream: bytes, ..Self::default() });
        }
        let mut read = Self::default();
        let mut codestream = None;
        each_box(bytes, |name, body| {
            match &name {
                b"jp2c" => codestream = codestream.or(Some(body)),
                b"jp2h" => each_box(body, |name, body| read.header_box(&name, body))?,
                _ => {}
            }
            Ok(())
        })?;
        read.codestream = codestream.ok_or_else(|| damaged("a file without a codestream"))?;
        Ok(read)
    }

    fn header_box(&mut self, name: &[u8; 4], body: &'a [u8]) -> Result<()> {
        match name {
            // The first that is known counts.
            b"colr" if self.is_sycc.is_none() => self.is_sycc = says_sycc(body)?,
            b"pclr" => self.palette = Some(palette(body)?),
            b"cmap" => self.mapping = Some(body),
            b"cdef" => self.definitions = Some(body),
            _ => {}
        }
        Ok(())
    }

    /// The colours that channels are looked up in.
    pub(super) fn palette(&self) -> Option<&Palette> {
        self.palette.as_ref()
    }

    /// The channels that components of so many bits make: gray, or red, green and blue, then what else there is, alpha
    /// first.
    ///
    /// # Errors
    /// Channels of components or columns that there are not; more than four.
    pub(super) fn channels(&self, bits: &[u8]) -> Result<Vec<Channel>> {
        let mapped = match &self.palette {
            None => bits
                .iter()
                .enumerate()
                .map(|(component, &bits)| Channel { component, column: None, bits })
                .collect(),
            Some(palette) => self.mapped(palette, bits)?,
        };
        if mapped.len() > MAX_COMPONENTS {
            let text = format!("{} channels, expected 1 to {MAX_COMPONENTS}", mapped.len());
            return Err(Error::unsupported(text));
        }
        self.ordered(mapped)
    }

    fn mapped(&self, palette: &Palette, bits: &[u8]) -> Result<Vec<Channel>> {
        let column = |component: usize, column: usize| match (bits.get(component), palette.bits.get(column)) {
            (Some(_), Some(&bits)) => Ok(Channel { component, column: Some(column), bits }),
            _ => Err(damaged("a channel of a component or column that is none")),
        };
        let Some(mapping) = self.mapping else {
            return (0..palette.bits.len()).map(|place| column(0, place)).collect();
        };
        let (entries, _) = mapping.as_chunks::<4>();
        entries
            .iter()
            .map(|&[high, low, kind, place]| {
                let component = usize::from(u16::from_be_bytes([high, low]));
                match (kind, bits.get(component)) {
                    (0, Some(&bits)) => Ok(Channel { component, column: None, bits }),
                    _ => column(component, usize::from(place)),
                }
            })
            .collect()
    }

    /// Colours in their order, then alpha, then the rest.
    fn ordered(&self, channels: Vec<Channel>) -> Result<Vec<Channel>> {
        let Some(definitions) = self.definitions else { return Ok(channels) };
        let (mut ranks, mut rest) = (vec![u32::MAX; channels.len()], Bytes(definitions));
        for _ in 0..rest.u16()? {
            let (place, kind, color) = (usize::from(rest.u16()?), rest.u16()?, rest.u16()?);
            let rank =
                ranks.get_mut(place).ok_or_else(|| damaged("a definition of a channel that is none"))?;
            *rank = match kind {
                COLOR => u32::from(color),
                OPACITY | PREMULTIPLIED => u32::MAX - 1,
                _ => u32::MAX,
            };
        }
        let mut places: Vec<usize> = (0..channels.len()).collect();
        places.sort_by_key(|&place| ranks.get(place).copied());
        Ok(places.into_iter().filter_map(|place| channels.get(place).copied()).collect())
    }
}

/// Whether a box `colr` says that colours are luma and chroma; nothing where its method is not known.
fn says_sycc(body: &[u8]) -> Result<Option<bool>> {
    let mut rest = Bytes(body);
    let method = rest.u8()?;
    rest.skip(2)?;
    let (sycc, name) = match method {
        1 => {
            let number = rest.u32()?;
            (number == SYCC, NOT_SHOWN.iter().find(|(known, _)| *known == number).map(|(_, name)| *name))
        }
        2 | 3 => {
            let space = rest.0.get(PROFILE_SPACE..).and_then(|rest| rest.first_chunk::<4>());
            let known = PROFILES_NOT_SHOWN.iter().find(|(known, _)| Some(*known) == space);
            (false, known.map(|(_, name)| *name))
        }
        _ => return Ok(None),
    };
    match name {
        Some(name) => Err(Error::unsupported(format!(
            "an image of {name}, expected gray, red, green and blue, or sYCC"
        ))),
        None => Ok(Some(sycc)),
    }
}

fn palette(body: &[u8]) -> Result<Palette> {
    let mut rest = Bytes(body);
    let (rows, columns) = (usize::from(rest.u16()?), usize::from(rest.u8()?));
    if !(1..=MAX_COMPONENTS).contains(&columns) {
        let text = format!("a palette of {columns} components, expected 1 to {MAX_COMPONENTS}");
        return Err(Error::unsupported(text));
    }
    if !(1..=MAX_ROWS).contains(&rows) {
        return Err(damaged(&format!("a palette of {rows} rows, expected 1 to {MAX_ROWS}")));
    }
    let mut bits = rest.take(columns)?.to_vec();
    for bits in &mut bits {
        *bits = match *bits {
            signed if signed & 0x80 != 0 => {
                return Err(Error::unsupported("a palette of signed colours, expected unsigned ones"));
            }
            less => less + 1,
        };
        if *bits > MAX_PALETTE_BITS {
            let text = format!("a palette of {bits} bits, expected 1 to {MAX_PALETTE_BITS}");
            return Err(Error::unsupported(text));
        }
    }
    let mut colors = Vec::with_capacity(rows * columns);
    for _ in 0..rows {
        for &bits in &bits {
            colors.push(if bits > 8 { rest.u16()? } else { u16::from(rest.u8()?) });
        }
    }
    Ok(Palette { bits, colors })
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
