//! WAV: RIFF, the same with big numbers (RIFX), with lengths of 64 bits (RF64, BW64), and Sony's W64. It must not know
//! how samples are coded.

use super::adpcm;
use super::fields::{Fields, Order};
use super::stored::{Encoding, Format, Length, Sound, stored};
use crate::error::{Error, Result};

/// What a W64 begins with, and the names of its chunks: those of a WAV, and 12 bytes that say that they are.
const W64_MARK: &[u8] = b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00";
const W64_NAME: &[u8] = b"\xf3\xac\xd3\x11\x8c\xd1\x00\xc0\x4f\x8e\xdb\x8a";
/// Bytes of a W64 chunk's name and length, which the length counts, too; chunks are filled up to a multiple of 8.
const W64_HEAD: u64 = 24;
/// The end of a kind of samples that is 16 bytes long; its start is the usual number.
const EXTENSIBLE: &[u8] = b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71";

/// What kinds of samples are numbered.
mod kind {
    pub(crate) const PCM: u16 = 1;
    pub(crate) const MS_ADPCM: u16 = 2;
    pub(crate) const FLOAT: u16 = 3;
    pub(crate) const A_LAW: u16 = 6;
    pub(crate) const MU_LAW: u16 = 7;
    pub(crate) const IMA_ADPCM: u16 = 0x11;
    pub(crate) const EXTENSIBLE: u16 = 0xfffe;
}

/// What the chunk `fmt` says.
#[derive(Debug, Clone, Copy)]
struct Kind {
    tag: u16,
    format: Format,
    /// Bytes of a frame, or of a block of several.
    unit: usize,
    bits: usize,
}

impl Kind {
    fn read(chunk: &[u8], order: Order) -> Result<Self> {
        let mut fields = Fields::new(chunk, order);
        let mut read = || {
            let (tag, channels, rate) = (fields.u16()?, fields.u16()?, fields.u32()?);
            let (_bytes_a_second, unit) = (fields.u32()?, fields.u16()?);
            // Early ones of laws end here.
            let bits = if fields.bytes.is_empty() && tag != kind::PCM { 8 } else { fields.u16()? };
            let format = Format { channels: channels.into(), rate };
            Some((Self { tag, format, unit: unit.into(), bits: bits.into() }, fields))
        };
        let (mut found, mut rest) =
            read().ok_or_else(|| Error::invalid("the audio's chunk `fmt` is cut off"))?;
        if found.tag == kind::EXTENSIBLE {
            // Its length, the bits of a sample that are used, and which channels those are.
            let mut name = || rest.take(8).and_then(|_| Some((rest.u16()?, rest.take(EXTENSIBLE.len())?)));
            found.tag = match name() {
                Some((tag, end)) if end == EXTENSIBLE => tag,
                _ => return Err(Error::unsupported("WAV whose samples are of a kind without a number")),
            };
        }
        Ok(found)
    }

    /// How samples are stored that are numbers.
    fn encoding(self) -> Option<Encoding> {
        let Self { tag, format: Format { channels, .. }, unit, bits } = self;
        // Samples may have more room than they need.
        let room = unit.checked_div(channels).filter(|&room| room * channels == unit && room * 8 >= bits);
        let room = room.unwrap_or(bits.div_ceil(8));
        match tag {
            kind::PCM if bits > 0 && room == 1 => Some(Encoding::Unsigned),
            kind::PCM if bits > 0 => Encoding::integers(room * 8),
            kind::FLOAT => Encoding::floats(bits),
            kind::A_LAW => Some(Encoding::ALaw),
            kind::MU_LAW => Some(Encoding::MuLaw),
            _ => None,
        }
    }

    /// The samples in `data`, of which the file says that there are `frames`, where it does.
    fn open(self, order: Order, data: &[u8], length: Length) -> Result<Sound<'_>> {
        if let Some(encoding) = self.encoding() {
            return stored(encoding, order, self.format, data, length);
        }
        match (self.tag, self.bits) {
            (kind::MS_ADPCM, 4) => adpcm::microsoft(self.format, self.unit, data, length),
            (kind::IMA_ADPCM, 4) => adpcm::ima(self.format, self.unit, data, length),
            (tag, bits) => Err(Error::unsupported(format!(
                "WAV with samples of kind 0x{tag:04x}{} and {bits} bits, expected integers of 1 to 32, floats of 32 or 64, A-law, mu-law, or ADPCM of \
                 IMA's or Microsoft's kind",
                name(tag)
            ))),
        }
    }
}

/// Who knows a kind that is not read, in parentheses.
fn name(tag: u16) -> &'static str {
    match tag {
        0x31 => " (GSM 6.10)",
        0x40 | 0x45 | 0x64 => " (G.721 or G.726)",
        0x50 | 0x55 => " (MPEG audio)",
        0x92 | 0x2000 => " (AC-3)",
        0xff | 0x1610 => " (AAC)",
        0x160..=0x163 => " (Windows Media Audio)",
        0xf1ac => " (FLAC)",
        0x566f | 0x674f..=0x6771 => " (Vorbis)",
        _ => "",
    }
}

/// Opens a WAV; `None` for what does not begin as one.
pub(crate) fn open(bytes: &[u8]) -> Option<Result<Sound<'_>>> {
    let (name, rest) = bytes.split_first_chunk::<4>()?;
    let order = match name {
        b"RIFF" | b"RF64" | b"BW64" => Order::Little,
        b"RIFX" => Order::Big,
        _ => return bytes.strip_prefix(W64_MARK).map(open_w64),
    };
    let mut fields = Fields::new(rest, order);
    let length = fields.u32()?;
    let rest = fields.bytes;
    (fields.take(4)? == b"WAVE").then(|| open_wav(fields, length as usize, rest.len()))
}

/// Opens what is behind the head of a WAV whose length is said to be `length` and is `found`.
fn open_wav(mut fields: Fields<'_>, length: usize, found: usize) -> Result<Sound<'_>> {
    let order = fields.order;
    let (mut kind, mut long) = (None, None);
    while let Some(chunk) = fields.chunk() {
        match &chunk.name {
            b"fmt " => kind = Some(Kind::read(chunk.body, order)?),
            // Lengths of 64 bits: of the file, of the samples.
            b"ds64" => long = Fields::new(chunk.body.get(8..).unwrap_or_default(), order).u64(),
            b"data" => {
                let kind = kind
                    .ok_or_else(|| Error::invalid("the audio has no chunk `fmt` in front of its samples"))?;
                // A program that was ended before it could write lengths leaves 0, and a length of the file that is too
                // small.
                let was_ended = chunk.length == 0 && !chunk.rest.is_empty() && length < found;
                let length = match long {
                    Some(long) if chunk.length == u64::from(u32::MAX) => Length::of(long),
                    _ if was_ended => Length::Rest,
                    _ => Length::of(chunk.length),
                };
                return kind.open(order, chunk.rest, length);
            }
            _ => {}
        }
    }
    Err(Error::invalid("the audio has no chunk `data`"))
}

/// Opens what is behind a W64's mark.
fn open_w64(rest: &[u8]) -> Result<Sound<'_>> {
    let cut = || Error::invalid("the audio's headers are cut off");
    let mut fields = Fields::new(rest, Order::Little);
    let _length = fields.u64().ok_or_else(cut)?;
    if fields.take(16).and_then(|name| name.strip_prefix(b"wave")) != Some(W64_NAME) {
        return Err(Error::invalid("a W64 file without samples"));
    }
    let mut kind = None;
    loop {
        let (name, mark) =
            (fields.array::<4>().ok_or_else(cut)?, fields.take(W64_NAME.len()).ok_or_else(cut)?);
        let length = fields.u64().ok_or_else(cut)?;
        let body = length.saturating_sub(W64_HEAD);
        let size = usize::try_from(body).unwrap_or(usize::MAX);
        match (&name, mark == W64_NAME) {
            (b"fmt ", true) => {
                kind = Some(Kind::read(fields.bytes.get(..size).ok_or_else(cut)?, Order::Little)?);
            }
            (b"data", true) => {
                let kind = kind
                    .ok_or_else(|| Error::invalid("the audio has no chunk `fmt` in front of its samples"))?;
                let length = if length == 0 { Length::Rest } else { Length::of(body) };
                return kind.open(Order::Little, fields.bytes, length);
            }
            _ => {}
        }
        fields.take(size.checked_next_multiple_of(8).unwrap_or(usize::MAX)).ok_or_else(cut)?;
    }
}
