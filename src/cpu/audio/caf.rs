//! Apple's CAF. It must not know how samples are coded.

use super::fields::{Fields, Order};
use super::stored::{Encoding, Format, Length, Sound, stored};
use crate::error::{Error, Result};

/// Bits of the flags of samples: they are floats; their lowest byte is first.
const FLOATS: u32 = 1;
const LITTLE: u32 = 2;
/// Bytes in front of the samples: how often they were edited.
const EDITS: usize = 4;

/// What the chunk `desc` says.
#[derive(Debug, Clone, Copy)]
struct Description {
    format: Format,
    encoding: Encoding,
    order: Order,
}

impl Description {
    fn read(chunk: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(chunk, Order::Big);
        let mut read = || {
            let (rate, name, flags) = (f64::from_bits(fields.u64()?), fields.array::<4>()?, fields.u32()?);
            let [unit, _frames, channels, bits] =
                [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?];
            Some((rate, name, flags, unit as usize, channels as usize, bits as usize))
        };
        let (rate, name, flags, unit, channels, bits) =
            read().ok_or_else(|| Error::invalid("the audio's chunk `desc` is cut off"))?;
        // Samples may have more room than they need.
        let room = unit.checked_div(channels).filter(|&room| room * channels == unit && room * 8 >= bits);
        let room = 8 * room.unwrap_or(bits.div_ceil(8)).min(8);
        let encoding = match &name {
            b"lpcm" if flags & FLOATS != 0 => Encoding::floats(bits),
            b"lpcm" if bits > 0 => Encoding::integers(room),
            b"ulaw" => Some(Encoding::MuLaw),
            b"alaw" => Some(Encoding::ALaw),
            _ => None,
        };
        let encoding = encoding.ok_or_else(|| {
            Error::unsupported(format!(
                "CAF with samples of kind `{}` and {bits} bits, expected integers of 1 to 32, floats of 32 or 64, A-law or mu-law",
                name.escape_ascii()
            ))
        })?;
        let order = if flags & LITTLE != 0 { Order::Little } else { Order::Big };
        Ok(Self { format: Format { channels, rate: rate.round() as u32 }, encoding, order })
    }
}

/// Opens a CAF; `None` for what does not begin as one.
pub(crate) fn open(bytes: &[u8]) -> Option<Result<Sound<'_>>> {
    // Behind the name are a version and flags.
    bytes.strip_prefix(b"caff").map(|rest| open_chunks(rest.get(4..).unwrap_or_default()))
}

fn open_chunks(rest: &[u8]) -> Result<Sound<'_>> {
    let cut = || Error::invalid("the audio's headers are cut off");
    let mut fields = Fields::new(rest, Order::Big);
    let mut description = None;
    loop {
        let (name, length) = (fields.array::<4>().ok_or_else(cut)?, fields.u64().ok_or_else(cut)?);
        if &name == b"data" {
            let Description { format, encoding, order } = description
                .ok_or_else(|| Error::invalid("the audio has no chunk `desc` in front of its samples"))?;
            let data = fields.bytes.get(EDITS..).ok_or_else(cut)?;
            let length = match length {
                0 | u64::MAX => Length::Rest,
                length => Length::of(length.saturating_sub(EDITS as u64)),
            };
            return stored(encoding, order, format, data, length);
        }
        let body = usize::try_from(length).ok().and_then(|length| fields.take(length)).ok_or_else(cut)?;
        if &name == b"desc" {
            description = Some(Description::read(body)?);
        }
    }
}
