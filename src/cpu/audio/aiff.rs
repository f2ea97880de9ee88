//! AIFF and AIFC. It must not know how samples are coded.

use super::adpcm;
use super::fields::{Fields, Order};
use super::stored::{Encoding, Format, Length, Sound, stored};
use crate::error::{Error, Result};

/// What the chunk `COMM` says.
#[derive(Debug, Clone, Copy)]
struct Common {
    format: Format,
    bits: usize,
    /// How samples are coded.
    code: [u8; 4],
}

/// The rate that a float of 80 bits is.
fn rate(bytes: [u8; 10]) -> u32 {
    let [high, low, mantissa @ ..] = bytes;
    let exponent = i32::from(i16::from_be_bytes([high, low])) - 16_383 - 63;
    (u64::from_be_bytes(mantissa) as f64 * 2f64.powi(exponent)).round() as u32
}

impl Common {
    fn read(chunk: &[u8], is_coded: bool) -> Result<Self> {
        let mut fields = Fields::new(chunk, Order::Big);
        let mut read = || {
            let channels = fields.u16()?.into();
            let _frames = fields.u32()?;
            let (bits, rate) = (fields.u16()?.into(), rate(fields.array()?));
            let code = if is_coded { fields.array()? } else { *b"NONE" };
            Some(Self { format: Format { channels, rate }, bits, code })
        };
        read().ok_or_else(|| Error::invalid("the audio's chunk `COMM` is cut off"))
    }

    /// The samples in `data`, which goes to the file's end.
    fn open(self, data: &[u8], length: Length) -> Result<Sound<'_>> {
        let Self { format, bits, code } = self;
        let unknown = || {
            Error::unsupported(format!(
                "AIFF with samples of kind `{}` and {bits} bits, expected integers of 1 to 32, floats of 32 or 64, A-law, mu-law, or IMA's ADPCM",
                code.escape_ascii()
            ))
        };
        let integers = || Encoding::integers(bits).ok_or_else(unknown);
        let (encoding, order) = match &code {
            b"NONE" | b"twos" => (integers()?, Order::Big),
            b"sowt" => (integers()?, Order::Little),
            b"in24" => (Encoding::Signed(3), Order::Big),
            b"in32" => (Encoding::Signed(4), Order::Big),
            b"42ni" | b"42n1" => (Encoding::Signed(3), Order::Little),
            b"23ni" => (Encoding::Signed(4), Order::Little),
            b"raw " if bits <= 8 => (Encoding::Unsigned, Order::Big),
            b"fl32" | b"FL32" => (Encoding::Float, Order::Big),
            b"fl64" | b"FL64" => (Encoding::Double, Order::Big),
            b"ulaw" | b"ULAW" => (Encoding::MuLaw, Order::Big),
            b"alaw" | b"ALAW" => (Encoding::ALaw, Order::Big),
            b"ima4" => return adpcm::quick_time(format, data, length),
            _ => return Err(unknown()),
        };
        stored(encoding, order, format, data, length)
    }
}

/// Opens an AIFF; `None` for what does not begin as one.
pub(crate) fn open(bytes: &[u8]) -> Option<Result<Sound<'_>>> {
    let mut fields = Fields::new(bytes.strip_prefix(b"FORM")?, Order::Big);
    let _length = fields.u32()?;
    let is_coded = match fields.take(4)? {
        b"AIFF" => false,
        b"AIFC" => true,
        _ => return None,
    };
    Some(open_chunks(fields, is_coded))
}

fn open_chunks(mut fields: Fields<'_>, is_coded: bool) -> Result<Sound<'_>> {
    let (mut common, mut samples) = (None, None);
    while let Some(chunk) = fields.chunk() {
        match &chunk.name {
            b"COMM" => common = Some(Common::read(chunk.body, is_coded)?),
            b"SSND" => {
                let mut start = Fields::new(chunk.rest, Order::Big);
                let skip = start.u32().and_then(|skip| start.u32().map(|_| skip as usize));
                let data = skip.and_then(|skip| start.take(skip).map(|_| start.bytes));
                let data = data.ok_or_else(|| Error::invalid("the audio's chunk `SSND` is cut off"))?;
                let length = match chunk.length {
                    0 => Length::Rest,
                    length => Length::of(length),
                };
                let head = (chunk.rest.len() - data.len()) as u64;
                let length = match length {
                    Length::Bytes(length) => Length::Bytes(length.saturating_sub(head)),
                    Length::Rest => Length::Rest,
                };
                samples = Some((data, length));
                // What is known is enough; the rest may be samples of a length that is not known.
                if common.is_some() {
                    break;
                }
            }
            _ => {}
        }
    }
    match (common, samples) {
        (Some(common), Some((data, length))) => common.open(data, length),
        (Some(common), None) => common.open(&[], Length::Rest),
        _ => Err(Error::invalid("the audio has no chunk `COMM`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_floats_of_80_bits() {
        let bytes = |start: [u8; 4]| {
            let mut bytes = [0; 10];
            bytes[..4].copy_from_slice(&start);
            rate(bytes)
        };
        assert_eq!(bytes([0x40, 0x0e, 0xac, 0x44]), 44_100);
        assert_eq!(bytes([0x40, 0x0b, 0xfa, 0]), 8_000);
        assert_eq!(
            [bytes([0, 0, 0, 0]), bytes([0xc0, 0x0e, 0xac, 0x44]), bytes([0x7f, 0xff, 0xff, 0])],
            [0, 0, u32::MAX]
        );
    }
}
