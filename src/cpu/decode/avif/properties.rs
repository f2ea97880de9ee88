//! The properties of one item of an AVIF. It must not know where the item lies.

use super::super::orientation::Orientation;
use crate::cpu::atoms::{FullBox, atoms, find};
use crate::cpu::bytes::Bytes;
use crate::error::{Error, Result};

/// What an auxiliary picture says that it is when it is alpha.
const ALPHA: [&[u8]; 2] = [b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha\0", b"urn:mpeg:hevc:2015:auxid:1\0"];

/// Most properties that an item can name: their places have 15 bits.
const PLACES: usize = 0x7FFF;

/// Properties that change nothing of what is decoded here: their names, for items that need them to be known.
const WITHOUT_EFFECT: [&[u8; 4]; 5] = [b"pixi", b"pasp", b"clli", b"mdcv", b"a1lx"];

/// What is known of a picture before it is decoded.
#[derive(Debug, Default)]
pub(super) struct Properties {
    /// Columns and rows, as stored.
    pub(super) size: [usize; 2],
    /// Bits of a sample.
    pub(super) depth: usize,
    /// Whether it has luma only.
    pub(super) gray: bool,
    /// The number of its matrix, and whether samples take the whole range of their bits; where not said here, the stream says it.
    pub(super) colors: Option<(u8, bool)>,
    /// How it is turned for viewing.
    pub(super) orientation: Orientation,
    /// Whether it is another picture's alpha.
    pub(super) is_alpha: bool,
}

impl Properties {
    /// Those that box `iprp` has for item `id`.
    ///
    /// # Errors
    /// Boxes that are missing or damaged; a property that the item needs to be known and that is not.
    pub(super) fn read(iprp: &[u8], id: u32) -> Result<Self> {
        let all: Vec<_> = atoms(find(iprp, b"ipco").unwrap_or_default()).take(PLACES).collect();
        let (mut read, mut turns, mut mirror) = (Self::default(), 0, None);
        for (place, needed) in associated(iprp, id)? {
            // Places count from 1; 0 is none.
            let Some(property) = place.checked_sub(1).and_then(|place| all.get(place)) else { continue };
            let mut body = Bytes(property.body);
            match &property.name {
                b"ispe" => {
                    body.skip(4)?;
                    read.size = [body.u32()? as usize, body.u32()? as usize];
                }
                b"av1C" => {
                    body.skip(2)?;
                    let coding = body.u8()?;
                    read.depth = match coding >> 5 & 3 {
                        0 | 1 => 8,
                        2 => 10,
                        _ => 12,
                    };
                    read.gray = coding & 16 != 0;
                }
                // Its other kinds are colour profiles.
                b"colr" if property.body.starts_with(b"nclx") => {
                    body.skip(8)?;
                    let matrix = body.u16()?;
                    read.colors = Some((u8::try_from(matrix).unwrap_or(u8::MAX), body.u8()? >> 7 != 0));
                }
                b"colr" => {}
                b"irot" => turns = body.u8()? & 3,
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
        if read.depth == 0 {
            return Err(Error::invalid("damaged header: no property `av1C`"));
        }
        read.orientation = Orientation::from_exif(exif_number(turns, mirror));
        Ok(read)
    }
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

/// EXIF's number for quarter turns against the clock, then mirrored: top and bottom change places (0), or left and right (1).
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
