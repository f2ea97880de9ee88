//! Samples that are stored as numbers, and what a file says of them. It must not know containers.

use super::fields::Order;
use super::sound::{Block, Coding, Header, Stream};
use crate::error::{Error, Result};

/// Channels of a file, as many as libsndfile takes.
const MAX_CHANNELS: usize = 1_024;
/// Frames a second, as many as libsndfile takes.
const MAX_RATE: u32 = i32::MAX as u32;
/// Samples of a block.
const BLOCK: usize = 4_096;
/// Lengths from here on are no lengths: programs write them that do not know theirs yet, as into a pipe. Samples of so
/// many bytes are beyond what a tensor may have.
const UNKNOWN_FROM: u64 = 0x7f00_0000;

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// An integer from 0 on, of one byte.
    Unsigned,
    /// An integer of so many bytes, one to four.
    Signed(usize),
    /// A float of four bytes.
    Float,
    /// A float of eight bytes.
    Double,
    /// Mu-law of G.711.
    MuLaw,
    /// A-law of G.711.
    ALaw,
}

impl Encoding {
    /// Integers of so many bits, in as many bytes as they need; the rest of those is below them.
    pub(crate) fn integers(bits: usize) -> Option<Self> {
        Some(match bits.div_ceil(8) {
            width @ 1..=4 => Self::Signed(width),
            _ => return None,
        })
    }

    /// Floats of so many bits.
    pub(crate) fn floats(bits: usize) -> Option<Self> {
        match bits {
            32 => Some(Self::Float),
            64 => Some(Self::Double),
            _ => None,
        }
    }

    /// Bytes of a sample.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Unsigned | Self::MuLaw | Self::ALaw => 1,
            Self::Signed(width) => width,
            Self::Float => 4,
            Self::Double => 8,
        }
    }
}

/// Channels and frames a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Format {
    /// Channels.
    pub(crate) channels: usize,
    /// Frames a second.
    pub(crate) rate: u32,
}

impl Format {
    /// Fails for what no file can be.
    ///
    /// # Errors
    /// Invalid, for no channels or no rate; unsupported, for too many.
    pub(crate) fn checked(self) -> Result<Self> {
        match self {
            Self { channels: 0, .. } => Err(Error::invalid("the audio has no channels")),
            Self { rate: 0, .. } => Err(Error::invalid("the audio's sampling rate is 0")),
            Self { channels, .. } if channels > MAX_CHANNELS => Err(Error::unsupported(format!(
                "audio of {channels} channels, expected at most {MAX_CHANNELS}"
            ))),
            Self { rate, .. } if rate > MAX_RATE => Err(Error::unsupported(format!(
                "audio of {rate} frames a second, expected at most {MAX_RATE}"
            ))),
            format => Ok(format),
        }
    }
}

/// A file's header, and what decodes its samples.
pub(crate) struct Sound<'a> {
    /// What the header says.
    pub(crate) header: Header,
    /// The samples.
    pub(crate) stream: Box<dyn Stream + 'a>,
}

/// How long a file says that its samples are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// So many bytes.
    Bytes(u64),
    /// Up to the file's end.
    Rest,
}

impl Length {
    /// Of a field of a header, in which programs that write into a pipe write a number that is none.
    pub(crate) fn of(field: u64) -> Self {
        if field >= UNKNOWN_FROM { Self::Rest } else { Self::Bytes(field) }
    }

    /// What of `data`, which goes to the file's end, this is, in whole units of `unit` bytes with `frames` frames each.
    ///
    /// # Errors
    /// Invalid, when there is less.
    pub(crate) fn of_data(self, data: &[u8], unit: usize, frames: usize) -> Result<&[u8]> {
        let whole = |length: u64| length / unit.max(1) as u64;
        let (found, claimed) = match self {
            Self::Bytes(length) => (whole(data.len() as u64), whole(length)),
            Self::Rest => (whole(data.len() as u64), whole(data.len() as u64)),
        };
        if found < claimed {
            let [found, claimed] = [found, claimed].map(|units| units.saturating_mul(frames as u64));
            return Err(Error::invalid(format!(
                "the audio ends after {found} of {claimed} samples of a channel"
            )));
        }
        Ok(data.get(..claimed as usize * unit).unwrap_or(data))
    }
}

/// Samples that are stored as numbers.
#[derive(Debug)]
struct Stored<'a> {
    data: &'a [u8],
    encoding: Encoding,
    order: Order,
    /// Bytes of a block.
    block: usize,
    integers: Vec<i32>,
    floats: Vec<f32>,
}

/// A file whose samples are stored as numbers: in `data`, which goes to the file's end, as far as `length` says.
///
/// # Errors
/// Invalid, when there is less.
pub(crate) fn stored<'a>(
    encoding: Encoding,
    order: Order,
    format: Format,
    data: &'a [u8],
    length: Length,
) -> Result<Sound<'a>> {
    let Format { channels, rate } = format.checked()?;
    let frame = channels * encoding.width();
    let data = length.of_data(data, frame, 1)?;
    let block = frame * (BLOCK / channels).max(1);
    let header = Header {
        frames: data.len() / frame,
        channels,
        rate,
        coding: Coding::Stored,
        scratch: block * size_of::<f32>(),
    };
    let (integers, floats) = (Vec::new(), Vec::new());
    Ok(Sound { header, stream: Box::new(Stored { data, encoding, order, block, integers, floats }) })
}

impl Stream for Stored<'_> {
    fn next(&mut self) -> Result<Option<(Block<'_>, usize)>> {
        let (data, rest) = self.data.split_at(self.block.min(self.data.len()));
        if data.is_empty() {
            return Ok(None);
        }
        self.data = rest;
        let Self { integers, floats, order, .. } = self;
        let order = *order;
        match self.encoding {
            Encoding::Unsigned => read(data, order, integers, |[a]| i32::from(a ^ 0x80) << 24),
            Encoding::Signed(1) => read(data, order, integers, |[a]| i32::from(a) << 24),
            Encoding::Signed(2) => read(data, order, integers, |[a, b]| i32::from_le_bytes([0, 0, a, b])),
            Encoding::Signed(3) => read(data, order, integers, |[a, b, c]| i32::from_le_bytes([0, a, b, c])),
            Encoding::Signed(_) => read(data, order, integers, i32::from_le_bytes),
            Encoding::MuLaw => read(data, order, integers, |[a]| mu_law(a)),
            Encoding::ALaw => read(data, order, integers, |[a]| a_law(a)),
            Encoding::Float => read(data, order, floats, f32::from_le_bytes),
            Encoding::Double => read(data, order, floats, |bytes| f64::from_le_bytes(bytes) as f32),
        }
        let block = match self.encoding {
            Encoding::Float | Encoding::Double => Block::Floats(floats),
            _ => Block::Integers(integers),
        };
        Ok(Some((block, data.len())))
    }
}

/// Reads samples of `N` bytes each, which `sample` gets lowest first.
#[inline(always)]
fn read<T, const N: usize>(data: &[u8], order: Order, out: &mut Vec<T>, sample: impl Fn([u8; N]) -> T) {
    out.clear();
    let (samples, _) = data.as_chunks::<N>();
    match order {
        Order::Little => out.extend(samples.iter().map(|&bytes| sample(bytes))),
        Order::Big => out.extend(samples.iter().map(|&(mut bytes)| {
            bytes.reverse();
            sample(bytes)
        })),
    }
}

/// A sample of G.711's mu-law, scaled to 32 bits.
fn mu_law(code: u8) -> i32 {
    let code = !code;
    // A line of 16 steps, twice as high as the one before, each 132 further away from 0 than it says.
    let level = (((i32::from(code & 0xf) << 3) + 132) << (code >> 4 & 7)) - 132;
    (if code & 0x80 != 0 { -level } else { level }) << 16
}

/// A sample of G.711's A-law, scaled to 32 bits.
fn a_law(code: u8) -> i32 {
    let code = code ^ 0x55;
    let (line, step) = (code >> 4 & 7, i32::from(code & 0xf) << 4);
    let level = if line == 0 { step + 8 } else { (step + 264) << (line - 1) };
    (if code & 0x80 != 0 { level } else { -level }) << 16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(encoding: Encoding, order: Order, data: &[u8]) -> Vec<i32> {
        let format = Format { channels: 1, rate: 8_000 };
        let mut sound = stored(encoding, order, format, data, Length::Rest).unwrap();
        match sound.stream.next().unwrap() {
            Some((Block::Integers(samples), _)) => samples.to_vec(),
            Some((Block::Floats(samples), _)) => samples.iter().map(|x| (x * 256.0) as i32).collect(),
            None => Vec::new(),
        }
    }

    #[test]
    fn numbers_are_read_in_either_order() {
        use Encoding::{Double, Float, Signed, Unsigned};
        let top = |bytes: [u8; 4]| i32::from_be_bytes(bytes);
        for (encoding, little, expected) in [
            (Unsigned, &[0x81][..], top([1, 0, 0, 0])),
            (Signed(1), &[0x81], top([0x81, 0, 0, 0])),
            (Signed(2), &[1, 0x80], top([0x80, 1, 0, 0])),
            (Signed(3), &[1, 2, 0x80], top([0x80, 2, 1, 0])),
            (Signed(4), &[1, 2, 3, 0x80], top([0x80, 3, 2, 1])),
            (Float, &1.5f32.to_le_bytes(), 384),
            (Double, &(-2.25f64).to_le_bytes(), -576),
        ] {
            let big: Vec<u8> = little.iter().rev().copied().collect();
            assert_eq!(samples(encoding, Order::Little, little), [expected], "{encoding:?}");
            assert_eq!(samples(encoding, Order::Big, &big), [expected], "{encoding:?}");
        }
    }

    #[test]
    fn laws_are_those_of_their_table() {
        let levels = |law: fn(u8) -> i32, codes: [u8; 6]| codes.map(|code| law(code) >> 16);
        assert_eq!(levels(mu_law, [0x00, 0x80, 0x7f, 0xff, 0x8f, 0xef]), [-32124, 32124, 0, 0, 16764, 132]);
        assert_eq!(levels(a_law, [0x55, 0xd5, 0x2a, 0xaa, 0x00, 0x80]), [-8, 8, -32256, 32256, -5504, 5504]);
    }

    #[test]
    fn a_length_is_no_more_than_there_is() {
        let data = [0; 10];
        let length = |length: Length| length.of_data(&data, 4, 1).map(<[u8]>::len);
        assert_eq!(length(Length::of(5)).unwrap(), 4);
        assert_eq!(length(Length::of(11)).unwrap(), 8);
        assert_eq!(length(Length::of(0xffff_ffff)).unwrap(), 8);
        let error = length(Length::of(12)).unwrap_err().to_string();
        assert_eq!(error, "the audio ends after 2 of 3 samples of a channel");
    }
}
