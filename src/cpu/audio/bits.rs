//! Bits of a packet: lowest first, as Vorbis has them, and highest first, as FLAC does. It must not know what they
//! mean.

/// Bits of bytes, of which the lowest comes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowFirst<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl<'a> LowFirst<'a> {
    /// From the first bit of `bytes` on.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next 32 bits without taking them; zeros behind the end.
    #[inline(always)]
    pub(crate) fn peek(&self) -> u32 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        (word >> (self.at % 8)) as u32
    }

    /// Takes `count` bits. `None`, and nothing is left, where there are fewer.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: u32) -> Option<()> {
        let (next, end) = (self.at + count as usize, self.bytes.len() * 8);
        self.at = next.min(end);
        (next <= end).then_some(())
    }

    /// The next `count` bits, at most 32, as a number.
    #[inline(always)]
    pub(crate) fn read(&mut self, count: u32) -> Option<u32> {
        let bits = self.peek();
        self.skip(count)?;
        Some(if count < 32 { bits & ((1 << count) - 1) } else { bits })
    }

    /// The next bit.
    #[inline(always)]
    pub(crate) fn flag(&mut self) -> Option<bool> {
        self.read(1).map(|bit| bit == 1)
    }
}

/// Bits of bytes, of which the highest comes first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HighFirst<'a> {
    bytes: &'a [u8],
    /// In bits.
    at: usize,
}

impl<'a> HighFirst<'a> {
    /// From the first bit of `bytes` on.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// At least the next 57 bits, the first of them highest; zeros behind the end.
    #[inline(always)]
    fn peek(&self) -> u64 {
        let rest = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match rest.first_chunk::<8>() {
            Some(bytes) => u64::from_be_bytes(*bytes),
            None => {
                let mut bytes = [0; 8];
                bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                u64::from_be_bytes(bytes)
            }
        };
        word << (self.at % 8)
    }

    #[inline(always)]
    fn skip(&mut self, count: usize) -> Option<()> {
        let (next, end) = (self.at.checked_add(count)?, self.bytes.len() * 8);
        self.at = next.min(end);
        (next <= end).then_some(())
    }

    /// The next `count` bits, at most 56, as a number.
    #[inline(always)]
    pub(crate) fn read(&mut self, count: u32) -> Option<u64> {
        let word = self.peek();
        self.skip(count as usize)?;
        Some(if count == 0 { 0 } else { word >> (64 - count) })
    }

    /// The next `count` bits, at most 56, as a number in two's complement.
    #[inline(always)]
    pub(crate) fn signed(&mut self, count: u32) -> Option<i64> {
        let word = self.peek() as i64;
        self.skip(count as usize)?;
        Some(if count == 0 { 0 } else { word >> (64 - count) })
    }

    /// The zeros in front of the next one, which is taken, too.
    #[inline(always)]
    pub(crate) fn unary(&mut self) -> Option<u64> {
        let mut zeros = 0;
        loop {
            let found = self.peek().leading_zeros();
            if found < 56 {
                self.skip(found as usize + 1)?;
                return Some(zeros + u64::from(found));
            }
            self.skip(56)?;
            zeros += 56;
        }
    }

    /// A number of Rice's code: `low` bits of it as they are, at most 31, behind the others in unary; signs alternate.
    #[inline(always)]
    pub(crate) fn rice(&mut self, low: u32) -> Option<i64> {
        let word = self.peek();
        let zeros = word.leading_zeros();
        let code = if zeros + 1 + low <= 56 {
            self.skip((zeros + 1 + low) as usize)?;
            let rest = word << (zeros + 1);
            u64::from(zeros) << low | if low == 0 { 0 } else { rest >> (64 - low) }
        } else {
            let high = self.unary()?;
            high << low | self.read(low)?
        };
        Some((code >> 1) as i64 ^ -((code & 1) as i64))
    }

    /// Leaves out bits up to the next whole byte, and says which byte that is.
    pub(crate) fn align(&mut self) -> usize {
        self.at = self.at.next_multiple_of(8);
        self.at / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_in_either_order_and_end() {
        let mut low = LowFirst::new(&[0b1010_0101, 0xff, 0x01]);
        assert_eq!([low.read(4), low.read(0), low.read(5)], [Some(5), Some(0), Some(0b1_1010)]);
        assert_eq!([low.read(16), low.read(1)], [None, None]);
        let mut high = HighFirst::new(&[0b1010_0101, 0xff, 0x01]);
        assert_eq!([high.read(4), high.read(0), high.read(5)], [Some(10), Some(0), Some(0b0_1011)]);
        assert_eq!((high.signed(7), high.unary(), high.unary()), (Some(-1), Some(7), None));
        assert_eq!(LowFirst::new(&[1, 2, 3, 4, 5]).read(32), Some(0x0403_0201));
    }

    #[test]
    fn a_code_of_rice_is_longer_than_a_word() {
        // 70 zeros, a one, and 3 low bits: 563, odd, so -282.
        let mut bytes = [0; 10];
        bytes[8] = 0b0000_0010;
        bytes[9] = 0b1100_0000;
        assert_eq!(HighFirst::new(&bytes).rice(3), Some(-((70 << 3 | 3) + 1) / 2));
        assert_eq!(HighFirst::new(&[0b0101_0000]).rice(2), Some(-3));
        assert_eq!(HighFirst::new(&[0; 9]).rice(2), None);
    }
}
