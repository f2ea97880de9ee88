//! A frame of FLAC to samples. It must not know files.

use super::damaged;
use super::subframe::{self, Value};
use crate::cpu::audio::bits::HighFirst;
use crate::cpu::audio::crc;
use crate::error::{Error, Result};

/// Bytes of the shortest frame: a header, a subframe of one value, a sum.
pub(crate) const SHORTEST: usize = 6 + 2 + 2;
/// The longest header.
const LONGEST_HEADER: usize = 16;
/// Bytes of a frame's sum.
const SUM: usize = 2;

/// What a frame begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Samples of each channel.
    pub(crate) size: usize,
    pub(crate) channels: Channels,
    /// Bits of a sample, if it says so.
    bits: Option<u32>,
    /// The number of the frame or, where frames differ in size, of its first sample.
    number: u64,
    counts_samples: bool,
    /// Bytes of this.
    length: usize,
}

/// What the channels of a frame are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// So many, each by itself.
    Apart(usize),
    /// Left, and the difference to right.
    LeftSide,
    /// The difference of left to right, and right.
    SideRight,
    /// The mean, and the difference.
    MidSide,
}

impl Channels {
    fn count(self) -> usize {
        if let Self::Apart(count) = self { count } else { 2 }
    }

    /// Which channel is a difference.
    fn side(self) -> Option<usize> {
        match self {
            Self::Apart(_) => None,
            Self::SideRight => Some(0),
            Self::LeftSide | Self::MidSide => Some(1),
        }
    }
}

/// A number of one to seven bytes, as UTF-8 would have it.
fn number(bits: &mut HighFirst<'_>) -> Option<u64> {
    let first = bits.read(8)? as u8;
    let more = match first.leading_ones() {
        0 => return Some(u64::from(first)),
        ones @ 2..=7 => ones - 1,
        _ => return None,
    };
    let start = u64::from(first) & (0x3f >> more);
    (0..more).try_fold(start, |number, _| match bits.read(8)? {
        byte @ 0x80..=0xbf => Some(number << 6 | byte & 0x3f),
        _ => None,
    })
}

impl FrameHeader {
    /// That of the frame that `bytes` begin with. `None` if they begin with none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let mut bits = HighFirst::new(bytes.get(..LONGEST_HEADER.min(bytes.len()))?);
        // The mark, and a bit that is 0.
        if bits.read(15)? != 0b111_1111_1111_1100 {
            return None;
        }
        let counts_samples = bits.read(1)? == 1;
        let (size, rate) = (bits.read(4)?, bits.read(4)?);
        let (channels, width) = (bits.read(4)?, bits.read(3)?);
        if bits.read(1)? != 0 {
            return None;
        }
        let channels = match channels {
            count @ 0..=7 => Channels::Apart(count as usize + 1),
            8 => Channels::LeftSide,
            9 => Channels::SideRight,
            10 => Channels::MidSide,
            _ => return None,
        };
        let number = number(&mut bits)?;
        let size = match size {
            0 => return None,
            1 => 192,
            code @ 2..=5 => 144 << code,
            6 => bits.read(8)? + 1,
            7 => bits.read(16)? + 1,
            code => 1 << code,
        };
        match rate {
            12 => bits.read(8)?,
            13 | 14 => bits.read(16)?,
            15 => return None,
            _ => 0,
        };
        let width = match width {
            0 => None,
            1 => Some(8),
            2 => Some(12),
            4 => Some(16),
            5 => Some(20),
            6 => Some(24),
            7 => Some(32),
            _ => return None,
        };
        let length = bits.align();
        let sum = bits.read(8)?;
        let is_right =
            u64::from(crc::flac_header(bytes.get(..length)?)) == sum && size <= u64::from(u16::MAX);
        let size = size as usize;
        is_right.then_some(Self { size, channels, bits: width, number, counts_samples, length: length + 1 })
    }

    /// The samples of each channel up to this frame's end, in a file whose frames are of `longest` samples or, its last
    /// one, fewer.
    pub(crate) fn end(&self, longest: usize) -> Option<u64> {
        let start =
            if self.counts_samples { self.number } else { self.number.checked_mul(longest as u64)? };
        start.checked_add(self.size as u64)
    }
}

/// Whether `frame` is one whole frame, as its sum says.
pub(crate) fn has_right_sum(frame: &[u8]) -> bool {
    frame
        .split_last_chunk::<SUM>()
        .is_some_and(|(body, sum)| crc::flac_frame(body) == u16::from_be_bytes(*sum))
}

/// Decodes frames of one stream.
pub(crate) struct Decoder {
    channels: usize,
    bits: u32,
    /// Samples of each channel; of 64 bits where a difference of samples of 32 bits does not fit.
    narrow: Vec<Vec<i32>>,
    wide: Vec<Vec<i64>>,
    /// Those of the last frame, scaled to 32 bits, with interleaved channels.
    samples: Vec<i32>,
}

impl Decoder {
    /// Of samples of `bits` bits.
    pub(crate) fn new(channels: usize, bits: u32) -> Self {
        Self { channels, bits, narrow: Vec::new(), wide: Vec::new(), samples: Vec::new() }
    }

    /// Samples of the last frame.
    pub(crate) fn samples(&self) -> &[i32] {
        &self.samples
    }

    /// Decodes the frame that `bytes` begin with, and says how many bytes it has.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<usize> {
        let header = FrameHeader::read(bytes).ok_or_else(|| damaged("no frame begins where one should"))?;
        let bits = header.bits.unwrap_or(self.bits);
        if header.channels.count() != self.channels || bits != self.bits {
            return Err(Error::unsupported("FLAC audio that changes its channels or its bits of a sample"));
        }
        let mut body = HighFirst::new(bytes);
        (0..header.length).try_for_each(|_| body.read(8).map(|_| ())).ok_or_else(cut)?;
        self.samples.clear();
        let count = header.size * self.channels;
        self.samples.try_reserve(count).map_err(|_| Error::invalid("no memory for a frame of the audio"))?;
        self.samples.resize(count, 0);
        let scale = 32 - self.bits;
        if header.channels.side().is_some() && self.bits > 31 {
            read(&mut self.wide, &header, bits, &mut body)?;
            interleave(&self.wide, header.channels, scale, &mut self.samples);
        } else {
            read(&mut self.narrow, &header, bits, &mut body)?;
            interleave(&self.narrow, header.channels, scale, &mut self.samples);
        }
        let length = body.align() + SUM;
        let frame = bytes.get(..length).ok_or_else(cut)?;
        if has_right_sum(frame) { Ok(length) } else { Err(damaged("the sum of a frame is wrong")) }
    }
}

fn cut() -> Error {
    Error::invalid("the audio ends within a frame")
}

/// Reads the channels of a frame.
fn read<T: Value>(
    channels: &mut Vec<Vec<T>>,
    header: &FrameHeader,
    bits: u32,
    body: &mut HighFirst<'_>,
) -> Result<()> {
    channels.resize(header.channels.count(), Vec::new());
    for (channel, samples) in channels.iter_mut().enumerate() {
        samples.clear();
        samples.try_reserve(header.size).map_err(|_| Error::invalid("no memory for a frame of the audio"))?;
        samples.resize(header.size, T::default());
        let bits = bits + u32::from(header.channels.side() == Some(channel));
        subframe::read(body, bits, samples)
            .ok_or_else(|| damaged("a frame has codes that there are not, or is cut off"))?;
    }
    Ok(())
}

/// Writes the frames of `channels`, shifted by `scale` bits.
fn interleave<T: Value>(channels: &[Vec<T>], kind: Channels, scale: u32, out: &mut [i32]) {
    let scaled = |value: i64| (value << scale) as i32;
    match (kind, channels) {
        (Channels::Apart(count), channels) => {
            for (channel, samples) in channels.iter().enumerate() {
                let to = out.iter_mut().skip(channel).step_by(count);
                to.zip(samples).for_each(|(to, &value)| *to = scaled(value.into()));
            }
        }
        (kind, [first, second]) => {
            for (to, (&first, &second)) in out.as_chunks_mut::<2>().0.iter_mut().zip(first.iter().zip(second))
            {
                let (first, second): (i64, i64) = (first.into(), second.into());
                let [left, right] = match kind {
                    Channels::LeftSide => [first, first - second],
                    Channels::SideRight => [first + second, second],
                    _ => {
                        let sum = first << 1 | second & 1;
                        [(sum + second) >> 1, (sum - second) >> 1]
                    }
                };
                *to = [scaled(left), scaled(right)];
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_how_long_its_frame_is() {
        let mut header = vec![0xff, 0xf9, 0x70, 0xa8, 0xc4, 0x80, 0x00, 0x0f];
        header.push(crc::flac_header(&header));
        let found = FrameHeader::read(&header).unwrap();
        assert_eq!((found.size, found.channels, found.bits), (16, Channels::MidSide, Some(16)));
        assert_eq!((found.end(4096), found.length), (Some(256 + 16), 9));
        for i in 0..header.len() {
            let mut damaged = header.clone();
            damaged[i] ^= 0x10;
            assert_eq!(FrameHeader::read(&damaged), None, "{i}");
            assert_eq!(FrameHeader::read(&header[..i]), None, "{i}");
        }
    }

    #[test]
    fn differences_become_channels() {
        for kind in [Channels::LeftSide, Channels::SideRight, Channels::MidSide] {
            let (left, right) = (i32::MIN, i32::MAX - 1);
            let side = i64::from(left) - i64::from(right);
            let mid = (i64::from(left) + i64::from(right)) >> 1;
            let channels = match kind {
                Channels::LeftSide => [vec![left.into()], vec![side]],
                Channels::SideRight => [vec![side], vec![right.into()]],
                _ => [vec![mid], vec![side]],
            };
            let mut out = [0; 2];
            interleave::<i64>(&channels, kind, 0, &mut out);
            assert_eq!(out, [left, right], "{kind:?}");
        }
    }
}
