//! Rows of bytes to samples: differences undone, bits taken apart. It must not know colours or files.

use half::f16;

use super::directory::Order;
use crate::error::{Error, Result};

/// How a sample is stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stored {
    pub(super) bits: usize,
    pub(super) order: Order,
}

/// A type that samples are kept in.
pub(super) trait Sample: Copy + Default + bytemuck::Zeroable + 'static {
    /// The samples of a row, from its beginning; what is behind its end is 0.
    fn unpack(row: &[u8], stored: Stored, to: &mut [Self]);
}

impl Sample for u8 {
    /// Of 1 to 8 bits, as they are.
    fn unpack(row: &[u8], stored: Stored, to: &mut [Self]) {
        if stored.bits == 8 {
            to.iter_mut().zip(row).for_each(|(to, from)| *to = *from);
            return;
        }
        to.iter_mut().enumerate().for_each(|(i, to)| *to = packed(row, i, stored.bits) as u8);
    }
}

impl Sample for u16 {
    /// Of 9 to 16 bits, their highest bit that of 16, as in DALI.
    fn unpack(row: &[u8], stored: Stored, to: &mut [Self]) {
        let Stored { bits, order } = stored;
        if bits == 16 {
            let number = match order {
                Order::Little => u16::from_le_bytes,
                Order::Big => u16::from_be_bytes,
            };
            to.iter_mut().zip(row.as_chunks().0).for_each(|(to, &from)| *to = number(from));
            return;
        }
        to.iter_mut().enumerate().for_each(|(i, to)| *to = (packed(row, i, bits) << (16 - bits)) as u16);
    }
}

impl Sample for f32 {
    /// Of 16, 32 or 64 bits.
    fn unpack(row: &[u8], stored: Stored, to: &mut [Self]) {
        let Stored { bits, order } = stored;
        for (to, digits) in to.iter_mut().zip(row.chunks_exact(bits / 8)) {
            let number = order.number(digits);
            *to = match bits {
                16 => f16::from_bits(number as u16).to_f32(),
                32 => f32::from_bits(number as u32),
                _ => f64::from_bits(number) as f32,
            };
        }
    }
}

/// Sample `i` of a row of samples of at most 16 bits, which lie one after the other from the highest bit on.
fn packed(row: &[u8], i: usize, bits: usize) -> u32 {
    let bit = i * bits;
    let bytes = [0, 1, 2].map(|k| u32::from(row.get(bit / 8 + k).copied().unwrap_or(0)));
    let word = bytes[0] << 16 | bytes[1] << 8 | bytes[2];
    word >> (24 - bits - bit % 8) & ((1 << bits) - 1)
}

/// How the samples of a row were made smaller numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Predictor {
    None,
    /// Each is a difference from the one of the pixel before.
    Differences,
    /// Differences of bytes, of which the highest of all numbers come first.
    Floats,
}

impl Predictor {
    /// The one that a tag names.
    ///
    /// # Errors
    /// One that there is not for samples of so many bits.
    pub(super) fn numbered(number: u64, bits: usize, is_float: bool) -> Result<Self> {
        match number {
            1 => Ok(Self::None),
            2 if matches!(bits, 8 | 16 | 32 | 64) => Ok(Self::Differences),
            3 if is_float => Ok(Self::Floats),
            other => Err(Error::unsupported(format!("predictor {other} of samples of {bits} bits"))),
        }
    }

    /// In which order bytes are when it was undone.
    pub(super) fn order(self, stored: Order) -> Order {
        if self == Self::Floats { Order::Big } else { stored }
    }

    /// Makes a row of pixels of so many `samples` what it was. `spare` is memory for another.
    pub(super) fn undo(self, row: &mut [u8], samples: usize, stored: Stored, spare: &mut Vec<u8>) {
        let size = stored.bits / 8;
        match (self, size) {
            (Self::None, _) => {}
            (Self::Floats, _) => {
                add(row, samples);
                spare.clear();
                spare.extend_from_slice(row);
                let count = row.len() / size;
                for (i, number) in row.chunks_exact_mut(size).enumerate() {
                    for (byte, digit) in number.iter_mut().enumerate() {
                        *digit = spare[byte * count + i];
                    }
                }
            }
            (Self::Differences, 1) => add(row, samples),
            (Self::Differences, size) => {
                let step = samples * size;
                for at in (step..row.len()).step_by(size) {
                    let Some(end) = at.checked_add(size).filter(|&end| end <= row.len()) else { break };
                    let before = stored.order.number(&row[at - step..end - step]);
                    let sum = stored.order.number(&row[at..end]).wrapping_add(before);
                    let digits = &sum.to_le_bytes()[..size];
                    row[at..end].copy_from_slice(digits);
                    if stored.order == Order::Big {
                        row[at..end].reverse();
                    }
                }
            }
        }
    }
}

/// Adds to each byte the one `step` bytes before.
fn add(row: &mut [u8], step: usize) {
    match step {
        1 => each(row.as_chunks_mut::<1>().0),
        3 => each(row.as_chunks_mut::<3>().0),
        4 => each(row.as_chunks_mut::<4>().0),
        _ => (step..row.len()).for_each(|i| row[i] = row[i].wrapping_add(row[i - step])),
    }
}

fn each<const N: usize>(pixels: &mut [[u8; N]]) {
    let mut sum = [0_u8; N];
    for pixel in pixels {
        for (value, sum) in pixel.iter_mut().zip(&mut sum) {
            *sum = sum.wrapping_add(*value);
            *value = *sum;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked<T: Sample>(row: &[u8], bits: usize, order: Order, count: usize) -> Vec<T> {
        let mut to = vec![T::default(); count];
        T::unpack(row, Stored { bits, order }, &mut to);
        to
    }

    #[test]
    fn bits_lie_from_the_highest_on() {
        assert_eq!(unpacked::<u8>(&[0b1101_1000], 2, Order::Big, 3), [3, 1, 2]);
        assert_eq!(unpacked::<u8>(&[0b1010_0000], 1, Order::Big, 3), [1, 0, 1]);
        assert_eq!(unpacked::<u16>(&[0x12, 0x3A, 0xBC], 12, Order::Little, 2), [0x1230, 0xABC0]);
        // 0001001 000111010 ... as 9 bits: 0x024, 0x0EA.
        assert_eq!(unpacked::<u16>(&[0x12, 0x3A, 0xBC], 9, Order::Big, 2), [0x024 << 7, 0x0EA << 7]);
        assert_eq!(unpacked::<u16>(&[0x12, 0x3A, 0xBC], 15, Order::Big, 1), [0x123A & 0xFFFE]);
        assert_eq!(unpacked::<u16>(&[1, 2, 3, 4], 16, Order::Little, 2), [0x201, 0x403]);
        assert_eq!(unpacked::<f32>(&[0x3C, 0], 16, Order::Big, 1), [1.0]);
        assert_eq!(unpacked::<f32>(&0.5_f64.to_le_bytes(), 64, Order::Little, 1), [0.5]);
    }

    #[test]
    fn differences_are_added() {
        let undone = |row: &[u8], samples, bits, order, predictor: Predictor| {
            let mut row = row.to_vec();
            predictor.undo(&mut row, samples, Stored { bits, order }, &mut Vec::new());
            row
        };
        let by = Predictor::Differences;
        assert_eq!(undone(&[1, 2, 3, 255], 1, 8, Order::Big, by), [1, 3, 6, 5]);
        assert_eq!(undone(&[1, 2, 3, 255], 2, 8, Order::Big, by), [1, 2, 4, 1]);
        assert_eq!(undone(&[1, 2, 3, 1, 1, 1], 3, 8, Order::Big, by), [1, 2, 3, 2, 3, 4]);
        assert_eq!(undone(&[0, 255, 0, 1], 1, 16, Order::Big, by), [0, 255, 1, 0]);
        assert_eq!(undone(&[255, 0, 1, 0], 1, 16, Order::Little, by), [255, 0, 0, 1]);
        assert_eq!(undone(&[1, 1, 1, 1], 1, 16, Order::Big, Predictor::Floats), [1, 3, 2, 4]);
        assert!(Predictor::numbered(2, 12, false).is_err() && Predictor::numbered(3, 16, false).is_err());
    }
}
