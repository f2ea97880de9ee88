//! The properties of one item of HEIF. It must not know where the item lies.

use super::super::Window;
use super::super::orientation::Orientation;
use super::coding::{Coding, Samples};
use crate::cpu::atoms::{FullBox, atoms, find};
use crate::cpu::av1;
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// What an auxiliary picture says that it is when it is alpha.
const ALPHA: [&[u8]; 2] = [b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0", b"urn:mpeg:hevc:2015:auxid:1\0"];

/// Most properties that an item can name: their places have 15 bits.
const PLACES: usize = 0x7FFF;

/// Properties that change nothing of what is decoded here: their names, for items that need them to be known.
const WITHOUT_EFFECT: [&[u8; 4]; 4] = [b"pixi", b"pasp", b"clli", b"mdcv"];

/// Most layers of a picture of AV1.
const MAX_LAYERS: usize = 4;

/// What is known of a picture before it is decoded.
#[derive(Debug, Default)]
pub(super) struct Properties<'a> {
    /// Columns and rows, as stored.
    pub(super) size: [usize; 2],
    /// The configuration of its decoder; empty for a picture that is made of others.
    pub(super) config: &'a [u8],
    /// Bits of a sample; 0 for a picture that is made of others.
    pub(super) depth: usize,
    /// Whether it has luma only.
    pub(super) gray: bool,
    /// Whether chroma is halved along both sides.
    pub(super) halved_twice: bool,
    /// The number of its matrix, and whether samples take the whole range of their bits; where not said here, the
    /// stream says it.
    pub(super) colors: Option<(u8, bool)>,
    /// Numbers of its primaries and transfer function.
    pub(super) codes: Option<[u8; 2]>,
    /// Its ICC profile.
    pub(super) profile: Option<&'a [u8]>,
    /// The part of it that is shown.
    pub(super) window: Option<Window>,
    /// Most frames that it has, which are its layers, and which one is shown, if not the last.
    pub(super) layers: usize,
    pub(super) layer: Option<usize>,
    /// How it is turned for viewing, once cut.
    pub(super) orientation: Orientation,
    /// Whether it is another picture's alpha.
    pub(super) is_alpha: bool,
}

impl<'a> Properties<'a> {
    /// Those that box `iprp` has for item `id`.
    ///
    /// # Errors
    /// Boxes that are missing or damaged; a property that the item needs to be known and that is not.
    pub(super) fn read(iprp: &'a [u8], id: u32, coding: Coding) -> Result<Self> {
        let all: Vec<_> = atoms(find(iprp, b"ipco").unwrap_or_default()).take(PLACES).collect();
        let (mut read, mut turns, mut mirror) = (Self { layers: 1, ..Self::default() }, 0, None);
        let mut clap = None;
        for (place, needed) in associated(iprp, id)? {
            // Places count from 1; 0 is none.
            let Some(property) = place.checked_sub(1).and_then(|place| all.get(place)) else { continue };
            let mut body = Bytes(property.body);
            match &property.name {
                b"ispe" => {
                    body.skip(4)?;
                    read.size = [body.u32()? as usize, body.u32()? as usize];
                }
                name if name == coding.property() => {
                    read.config = property.body;
                    Samples { depth: read.depth, gray: read.gray, halved_twice: read.halved_twice } =
                        coding.samples(property.body)?;
                }
                b"colr" if property.body.starts_with(b"nclx") => {
                    body.skip(4)?;
                    let [primaries, transfer] = [body.u16()?, body.u16()?];
                    let matrix = av1::matrix_of(u32::from(body.u16()?), u32::from(primaries));
                    // Numbers beyond a byte mean nothing.
                    read.codes = Some([primaries, transfer].map(|code| u8::try_from(code).unwrap_or(0)));
                    read.colors = Some((matrix, body.u8()? >> 7 != 0));
                }
                b"colr" => {
                    let profile = property.body.strip_prefix(b"prof").or(property.body.strip_prefix(b"rICC"));
                    read.profile = read.profile.or(profile);
                }
                b"a1lx" => read.layers = MAX_LAYERS,
                b"a1op" => match body.u8()? {
                    0 => read.layers = MAX_LAYERS,
                    other => {
                        return Err(Error::unsupported(format!(
                            "operating point {other} of AV1, expected 0"
                        )));
                    }
                },
                b"lsel" => {
                    read.layers = MAX_LAYERS;
                    // The largest number is all of them, one after the other.
                    read.layer =
                        Some(usize::from(body.u16()?)).filter(|layer| *layer != usize::from(u16::MAX));
                }
                b"clap" if turns == 0 && mirror.is_none() => clap = Some(body),
                b"clap" => return Err(Error::unsupported("a picture that is turned before it is cut")),
                b"irot" => {
                    // What is mirrored first turns the other way.
                    let turned = body.u8()? & 3;
                    turns = if mirror.is_some() { (4 - turned) & 3 } else { turned };
                }
                b"imir" => mirror = Some(body.u8()? & 1),
                b"auxC" => {
                    body.skip(4)?;
                    read.is_alpha = ALPHA.iter().any(|name| body.0.starts_with(name));
                }
                name if needed && !WITHOUT_EFFECT.contains(&name) => {
                    return Err(Error::unsupported(format!(
                        "a picture that needs property `{}`, which is not known",
                        name.escape_ascii()
                    )));
                }
                _ => {}
            }
        }
        read.window = clap.map(|clap| window(clap, read.size)).transpose()?;
        read.orientation = Orientation::from_exif(exif_number(turns, mirror));
        Ok(read)
    }
}

/// What box `clap` shows of a picture: sides, and how far their middle is from the picture's, as fractions.
fn window(mut clap: Bytes<'_>, [width, height]: [usize; 2]) -> Result<Window> {
    let mut number = || clap.u32().map(i128::from);
    let (sides, mut offsets) = ([[number()?, number()?], [number()?, number()?]], [[0; 2]; 2]);
    for offset in &mut offsets {
        // Only what is above the line has a sign.
        *offset = [i128::from(number()? as u32 as i32), number()?];
    }
    let along = |axis: usize, whole: usize| {
        let ([side, side_below], [offset, offset_below]) = (sides[axis], offsets[axis]);
        if side_below == 0 || offset_below == 0 || side % side_below != 0 {
            return None;
        }
        let (side, whole) = (side / side_below, whole as i128);
        let twice = 2 * offset + (whole - side) * offset_below;
        let start = twice / (2 * offset_below);
        let is_inside = twice % (2 * offset_below) == 0 && side > 0 && start >= 0 && start + side <= whole;
        is_inside.then_some((start as usize, side as usize))
    };
    let (Some((x, width)), Some((y, height))) = (along(0, width), along(1, height)) else {
        return Err(Error::invalid(format!(
            "damaged: what `clap` shows is not a part of {width} x {height} pixels"
        )));
    };
    Ok(Window { x, y, width, height })
}

/// The places of an item's properties, and whether a reader must know them.
fn associated(iprp: &[u8], id: u32) -> Result<Vec<(usize, bool)>> {
    for table in atoms(iprp).filter(|table| &table.name == b"ipma") {
        let mut table = FullBox::new(table.body)?;
        for _ in 0..table.rest.u32()? {
            let found = table.number(1)?;
            let count = usize::from(table.rest.u8()?);
            let long = table.flags & 1 != 0;
            let mut places = Bytes(table.rest.take(if long { 2 * count } else { count })?);
            if found != id {
                continue;
            }
            let place = |_| match long {
                true => places.u16().map(|place| (usize::from(place & 0x7FFF), place >> 15 != 0)),
                false => places.u8().map(|place| (usize::from(place & 0x7F), place >> 7 != 0)),
            };
            return (0..count).map(place).collect();
        }
    }
    Err(Error::invalid(format!("damaged or truncated header: no properties of item {id}")))
}

/// EXIF's number for quarter turns against the clock, then mirrored: top and bottom change places (0), or left and
/// right (1).
fn exif_number(turns: u8, mirror: Option<u8>) -> u32 {
    match (turns, mirror) {
        (0, Some(0)) | (2, Some(1)) => 4,
        (0, Some(_)) | (2, Some(_)) => 2,
        (1, None) => 8,
        (1, Some(0)) | (3, Some(1)) => 5,
        (1, Some(_)) | (3, Some(_)) => 7,
        (2, None) => 3,
        (3, None) => 6,
        _ => 1,
    }
}
