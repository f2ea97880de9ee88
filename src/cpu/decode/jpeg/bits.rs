//! The data of a scan: without stuffed zeros and markers, and read bit by bit. It must not know what the bits mean.

use crate::memory::unstuff;

/// Zeros behind the data: a block that begins with the last bit may read so far beyond it.
const PAD: usize = size_of::<Window>() + 32;

/// The data of one scan. Buffers are kept for the next one.
#[derive(Default)]
pub(super) struct Data {
    buffer: Vec<u8>,
    /// How much of it is of this scan.
    length: usize,
    /// Where each segment ends.
    pub(super) ends: Vec<usize>,
}

impl Data {
    /// All segments, one behind the other, and some zeros.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.length).unwrap_or_default()
    }

    /// Bytes that are kept.
    pub(super) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Takes the entropy-coded data from the beginning of `from`: each FF 00 is an FF, and RSTn in their order end
    /// segments. How many bytes there were up to the marker that ends the scan. `None`: anything else, which libjpeg
    /// shall judge.
    pub(super) fn read(&mut self, from: &[u8]) -> Option<usize> {
        let Self { buffer, length, ends } = self;
        // Nothing becomes longer.
        buffer.resize(buffer.len().max(from.len() + PAD), 0);
        ends.clear();
        *length = 0;
        let (mut read, mut written) = (0, 0);
        loop {
            let done = unstuff(from.get(read..)?, buffer.get_mut(written..)?)?;
            (read, written) = (read + done.read, written + done.written);
            let rest = from.get(read..)?;
            // A marker may be preceded by any number of FF.
            let fill = rest.iter().position(|&byte| byte != 0xFF)?;
            match rest[fill] {
                marker @ 0xD0..=0xD7 if marker & 7 == ends.len() as u8 & 7 => {
                    ends.push(written);
                    read += fill + 1;
                }
                // Markers out of order, and zeros behind more than one FF.
                0 | 0xD0..=0xD7 => return None,
                _ => {
                    ends.push(written);
                    *length = written + PAD;
                    buffer.get_mut(written..*length)?.fill(0);
                    return Some(read + fill - 1);
                }
            }
        }
    }
}

/// A place in the data and the bits from there on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bits {
    /// The next byte to take in.
    at: usize,
    /// The next bits, at the top. Behind `count` of them there may be more of the right ones, or zeros.
    pub(super) buffer: u64,
    count: u32,
}

impl Bits {
    /// From a byte on.
    pub(super) fn from(at: usize) -> Self {
        Self { at, buffer: 0, count: 0 }
    }

    /// Takes in bytes until there are 56 bits or more.
    #[inline(always)]
    pub(super) fn refill(&mut self, data: &[u8]) -> Option<()> {
        let next = u64::from_be_bytes(*data.get(self.at..)?.first_chunk()?);
        self.buffer |= next >> (self.count & 63);
        self.at += ((63 - self.count) >> 3) as usize;
        self.count |= 56;
        Some(())
    }

    /// Goes on by some bits, less than 64.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.buffer <<= count & 63;
        self.count = self.count.wrapping_sub(count);
    }

    /// The next bits, at least one and at most 32, which it goes on by.
    #[inline(always)]
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let taken = self.buffer >> (64 - count);
        self.skip(count);
        taken as u32
    }

    /// Bits from the data's beginning.
    pub(super) fn position(self) -> usize {
        (self.at * 8).wrapping_sub(self.count as usize)
    }
}

/// Bytes that a refill within a block may begin at. The longest block has a DC code and 63 AC codes of 16 bits with 15
/// more each: 248 bytes.
const WINDOW: usize = 512;

/// The data from a block's beginning on, as much as any block has: no refill asks whether there is more.
pub(super) type Window = [u8; WINDOW + 8];

/// [`Bits`] while blocks are decoded from windows. The number that is kept is another one, which steps of look-ups
/// simply add up to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Near {
    at: usize,
    pub(super) buffer: u64,
    /// 63 less the bits that are counted: those that were used since the last refill, and up to 7 before.
    used: u32,
}

impl Near {
    /// The data of the next block, this place counted from there on, and where that is.
    #[inline(always)]
    pub(super) fn enter(self, data: &[u8]) -> Option<(&Window, Self, usize)> {
        Some((data.get(self.at..)?.first_chunk()?, Self { at: 0, ..self }, self.at))
    }

    /// Counted from the beginning of all data again.
    #[inline(always)]
    pub(super) fn leave(self, start: usize) -> Self {
        Self { at: self.at + start, ..self }
    }

    /// Takes in bytes until 56 bits or more are counted. Then all that are in the buffer are right ones.
    #[inline(always)]
    pub(super) fn refill(&mut self, window: &Window) {
        let at = self.at % WINDOW;
        let mut next = [0; 8];
        next.copy_from_slice(&window[at..at + 8]);
        self.buffer |= u64::from_be_bytes(next) >> (!self.used & 63);
        self.at += (self.used >> 3) as usize;
        self.used &= 7;
    }

    /// Goes on by some bits, less than 64.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.buffer <<= count & 63;
        self.used += count;
    }

    /// A position in a block times 256, and the used bits below it.
    #[inline(always)]
    pub(super) fn steps(self, k: u32) -> u32 {
        k << 8 | self.used
    }

    /// Goes on where look-ups have come to: to `buffer`, and [`Self::steps`].
    #[inline(always)]
    pub(super) fn go_on(&mut self, buffer: u64, steps: u32) {
        self.buffer = buffer;
        self.used = steps & 255;
    }
}

impl From<Bits> for Near {
    fn from(Bits { at, buffer, count }: Bits) -> Self {
        Self { at, buffer, used: 63 - count }
    }
}

impl From<Near> for Bits {
    fn from(Near { at, buffer, used }: Near) -> Self {
        Self { at, buffer, count: 63 - used }
    }
}

/// Where segments end: bits must be used up there, all but those that fill the last byte.
pub(super) fn is_used_up(bits: Bits, end: usize) -> bool {
    (end * 8).checked_sub(bits.position()).is_some_and(|left| left < 8)
}
