//! The arithmetic decoder that everything behind a frame's first bytes is read with (RFC 6386, section 7). It must not
//! know what is read.

use std::hint::select_unpredictable;

/// Bits that are as good as endless: zeros behind the last byte.
const ENDLESS: i32 = 1 << 24;

/// Decisions that [`BoolDecoder::prepare`] is for, and bits that one of them takes at most.
const PREPARED: i32 = 4;
const MOST_BITS: i32 = 7;

/// Reads decisions from the front of bytes.
#[derive(Clone)]
pub(super) struct BoolDecoder<'a> {
    rest: &'a [u8],
    /// The bits at hand, from the highest on.
    value: u64,
    /// How many bits are at hand.
    bits: i32,
    /// The interval that `value` lies in, less 1: 127 to 254.
    range: u32,
    /// Whether zeros were put behind the last byte.
    has_ended: bool,
}

impl<'a> BoolDecoder<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, value: 0, bits: 0, range: 254, has_ended: false }
    }

    /// Whether more bits were used than there are.
    pub(super) fn is_exhausted(&self) -> bool {
        self.has_ended && self.bits < ENDLESS
    }

    #[inline(always)]
    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk::<8>() {
            // What does not fill a byte comes again with the next word, as the same bits.
            self.value |= u64::from_be_bytes(*word) >> self.bits;
            let bytes = (64 - self.bits as usize) / 8;
            self.bits += 8 * bytes as i32;
            self.rest = &self.rest[bytes..];
            return;
        }
        // By value, so that a decoder at work stays in registers.
        *self = self.clone().refilled_from_bytes();
    }

    #[cold]
    #[inline(never)]
    fn refilled_from_bytes(mut self) -> Self {
        while self.bits <= 56 {
            let Some((&byte, rest)) = self.rest.split_first() else {
                // A second time only after millions of zeros, which the frame does not get to.
                self.bits += if self.has_ended { 64 } else { ENDLESS };
                self.has_ended = true;
                break;
            };
            self.value |= u64::from(byte) << (56 - self.bits);
            self.bits += 8;
            self.rest = rest;
        }
        self
    }

    /// A decision that is false `probability` times of 256.
    #[inline(always)]
    pub(super) fn read(&mut self, probability: u8) -> bool {
        self.prepare();
        self.next(probability)
    }

    /// Makes sure that there are bits for [`PREPARED`] decisions.
    #[inline(always)]
    pub(super) fn prepare(&mut self) {
        if self.bits < MOST_BITS * PREPARED {
            self.refill();
        }
    }

    /// [`BoolDecoder::read`] where [`BoolDecoder::prepare`] was called before.
    #[inline(always)]
    pub(super) fn next(&mut self, probability: u8) -> bool {
        let split = (self.range * u32::from(probability)) >> 8;
        let border = u64::from(split + 1) << 56;
        // A branch, as whoever asks takes one as well.
        let taken = self.value >= border;
        let range = if taken {
            self.value -= border;
            self.range - split
        } else {
            split + 1
        };
        self.normalize(range);
        taken
    }

    /// [`BoolDecoder::next`] for one who takes no branch: a decision that nobody can guess costs no more than others.
    #[inline(always)]
    pub(super) fn next_bit(&mut self, probability: u8) -> u32 {
        let split = (self.range * u32::from(probability)) >> 8;
        let border = u64::from(split + 1) << 56;
        let taken = self.value >= border;
        let range = select_unpredictable(taken, self.range - split, split + 1);
        self.value -= select_unpredictable(taken, border, 0);
        self.normalize(range);
        u32::from(taken)
    }

    /// Takes an interval of 1 to 255.
    #[inline(always)]
    fn normalize(&mut self, range: u32) {
        let shift = range.leading_zeros() - 24;
        self.range = (range << shift) - 1;
        self.value <<= shift;
        self.bits -= shift as i32;
    }

    /// A flag.
    pub(super) fn flag(&mut self) -> bool {
        self.read(128)
    }

    /// A number of `bits` bits, the highest first.
    pub(super) fn number(&mut self, bits: u32) -> u8 {
        (0..bits).fold(0, |number, _| number << 1 | u8::from(self.flag()))
    }

    /// A number of `bits` bits and its sign.
    pub(super) fn signed(&mut self, bits: u32) -> i32 {
        let number = i32::from(self.number(bits));
        if self.flag() { -number } else { number }
    }

    /// What [`BoolDecoder::signed`] reads, where a flag says that there is something; else 0.
    pub(super) fn optional(&mut self, bits: u32) -> i32 {
        if self.flag() { self.signed(bits) } else { 0 }
    }

    /// A leaf of a tree. Entry 2n and the one behind it say where node n leads: a further entry, or behind a leaf's
    /// number, negative.
    pub(super) fn tree(&mut self, tree: &[i8], probabilities: &[u8]) -> usize {
        let mut at = 0_usize;
        loop {
            let probability = probabilities.get(at / 2).copied().unwrap_or(128);
            let next = tree.get(at + usize::from(self.read(probability))).copied().unwrap_or(-1);
            match usize::try_from(next) {
                Ok(next) => at = next,
                Err(_) => return usize::from((-1 - next).unsigned_abs()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_even_odds_are_nearly_those_of_the_bytes() {
        let mut bits = BoolDecoder::new(&[0b0110_0000, 0, 0, 0]);
        assert_eq!([0; 3].map(|_| bits.flag()), [false, true, true]);
        assert!(!bits.is_exhausted());
    }

    #[test]
    fn behind_the_end_there_are_zeros_and_it_shows() {
        let mut bits = BoolDecoder::new(&[0xFF; 3]);
        let mut read = 0;
        while !bits.is_exhausted() {
            bits.flag();
            read += 1;
        }
        assert!((24..=25).contains(&read), "{read}");
        (0..100).for_each(|_| _ = bits.flag());
        assert!(bits.is_exhausted());
    }

    #[test]
    fn decisions_are_the_same_with_and_without_a_branch() {
        let bytes: Vec<u8> = (0..90_u32).map(|i| (i * i * 31 + 7) as u8).collect();
        let [mut one, mut other] = [(); 2].map(|()| BoolDecoder::new(&bytes));
        for i in 0..600_u32 {
            let probability = (i * 29 % 255 + 1) as u8;
            other.prepare();
            assert_eq!(u32::from(one.read(probability)), other.next_bit(probability), "decision {i}");
            assert_eq!(one.is_exhausted(), other.is_exhausted(), "decision {i}");
        }
    }

    #[test]
    fn words_and_bytes_are_read_alike() {
        let bytes: Vec<u8> = (0..64_u32).map(|i| (i * 37 + 11) as u8).collect();
        let mut whole = BoolDecoder::new(&bytes);
        // Too short for words from the 57th byte on.
        let read: Vec<bool> = (0..400).map(|i| whole.read((i * 7 % 255 + 1) as u8)).collect();
        let mut value = 0_u64;
        let mut at = 0;
        let (mut range, mut bits) = (255_u32, 0);
        for (i, found) in read.into_iter().enumerate() {
            while bits < 16 {
                value |= u64::from(bytes[at]) << (56 - bits);
                (at, bits) = (at + 1, bits + 8);
            }
            let split = 1 + (((range - 1) * (i as u32 * 7 % 255 + 1)) >> 8);
            let expected = value >> 56 >= u64::from(split);
            if expected {
                (value, range) = (value - (u64::from(split) << 56), range - split);
            } else {
                range = split;
            }
            while range < 128 {
                (value, range, bits) = (value << 1, range << 1, bits - 1);
            }
            assert_eq!(found, expected, "decision {i}");
        }
    }
}
