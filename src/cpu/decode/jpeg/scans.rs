//! How blocks of progressive scans are coded: a band of coefficients of one component, for the first time or a bit more. It must
//! not know where blocks lie in an image.
//!
//! For each block a mask says which coefficients are not zero, in zigzag order. A scan that brings a further bit goes from
//! one of those to the next, not from coefficient to coefficient.

use std::ops::Range;

use multiversion::multiversion;

use super::bits::Bits;
use super::entropy::spread_of;
use super::huffman::{Codes, DC_BITS, Dc, LONG, extend};
use super::transform::{BLOCKS, Group};

/// What a scan brings.
#[derive(Debug, Clone, Copy)]
pub(super) struct Band {
    /// First and last zigzag position.
    pub(super) first: u32,
    pub(super) last: u32,
    /// The lowest bit.
    pub(super) low: u32,
}

/// A row of blocks.
pub(super) struct Coefficients<'a> {
    pub(super) groups: &'a mut [Group],
    /// Of each block.
    pub(super) masks: &'a mut [u64],
}

impl Coefficients<'_> {
    /// A block's coefficients, from its first one on, and its mask.
    #[inline(always)]
    fn block(&mut self, index: usize) -> Option<(&mut [i16; 232], &mut u64)> {
        let group = self.groups.get_mut(index / BLOCKS)?;
        let block = group.get_mut(8 * (index % BLOCKS)..)?.first_chunk_mut()?;
        Some((block, self.masks.get_mut(index)?))
    }
}

/// Places in a group by zigzag position.
static PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut k = 0;
    while k < 64 {
        places[k] = spread_of(k);
        k += 1;
    }
    places
};

#[inline(always)]
fn place(k: u32) -> usize {
    usize::from(PLACES[k as usize & 63])
}

/// The difference that a block's first coefficient is coded as. There must be bits.
#[inline(always)]
pub(super) fn dc(bits: &mut Bits, table: &Dc) -> Option<i32> {
    let entry = &table.entries[(bits.buffer >> (64 - DC_BITS)) as usize];
    let (length, size) = if entry.advance == LONG {
        let (length, size) = table.search.find(bits.buffer)?;
        (length, u32::from(size))
    } else {
        (u32::from(entry.length - entry.size), u32::from(entry.size))
    };
    let difference = extend(bits.buffer << length, size);
    bits.skip(length + size);
    Some(difference)
}

/// How many blocks, from this one on, have nothing (more) in the band.
#[inline(always)]
fn end_run(bits: &mut Bits, exponent: u32) -> u32 {
    if exponent == 0 { 1 } else { (1 << exponent) + bits.take(exponent) }
}

/// Blocks whose band comes for the first time. `run` blocks before had nothing in it, as this one may.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn first(
    data: &[u8],
    (mut bits, mut run): (Bits, u32),
    table: &Codes,
    band: Band,
    row: &mut Coefficients<'_>,
    blocks: Range<usize>,
) -> Option<(Bits, u32)> {
    for index in blocks {
        if run > 0 {
            run -= 1;
            continue;
        }
        let (block, mask) = row.block(index)?;
        let mut found = *mask;
        let mut k = band.first;
        while k <= band.last {
            bits.refill(data)?;
            let (length, symbol) = table.find(bits.buffer)?;
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            if size == 0 && zeros < 15 {
                bits.skip(length);
                run = end_run(&mut bits, zeros) - 1;
                break;
            }
            k += zeros;
            if k > band.last {
                return None;
            }
            if size > 0 {
                let value = extend(bits.buffer << length, size) << band.low;
                let kept = value as i16;
                if i32::from(kept) != value {
                    return None;
                }
                block[place(k)] = kept;
                found |= 1 << k;
            }
            bits.skip(length + size);
            k += 1;
        }
        *mask = found;
    }
    Some((bits, run))
}

/// Blocks of whose band a further bit comes.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt+popcnt"))]
pub(super) fn refine(
    data: &[u8],
    (mut bits, mut run): (Bits, u32),
    table: &Codes,
    band: Band,
    row: &mut Coefficients<'_>,
    blocks: Range<usize>,
) -> Option<(Bits, u32)> {
    let one = 1_i16 << band.low;
    let whole = (!0 << band.first) & (!0 >> (63 - band.last));
    for index in blocks {
        let (block, mask) = row.block(index)?;
        let old = *mask & whole;
        // What is left of the band.
        let mut rest = whole;
        if run == 0 {
            while rest != 0 {
                bits.refill(data)?;
                let (length, symbol) = table.find(bits.buffer)?;
                bits.skip(length);
                let (zeros, size) = (u32::from(symbol >> 4), symbol & 15);
                if size == 0 && zeros < 15 {
                    run = end_run(&mut bits, zeros);
                    break;
                }
                if size > 1 {
                    return None;
                }
                let sign = if size > 0 { bits.take(1) as i16 } else { 0 };
                // Plus or minus, without a branch.
                let value = one * (2 * sign - 1);
                // Past so many zeros to the one behind them.
                let mut free = rest & !old;
                for _ in 0..zeros {
                    free &= free.wrapping_sub(1);
                }
                if free == 0 {
                    return None;
                }
                let k = free.trailing_zeros();
                let passed = rest & old & ((1 << k) - 1);
                bits = correct(data, bits, block, passed, one)?;
                if size > 0 {
                    block[place(k)] = value;
                    *mask |= 1 << k;
                }
                rest &= !1 << k;
            }
        }
        if run > 0 {
            run -= 1;
            if rest & old != 0 {
                bits = correct(data, bits, block, rest & old, one)?;
            }
        }
    }
    Some((bits, run))
}

/// A further bit for each coefficient of `which`.
#[inline(always)]
fn correct(data: &[u8], mut bits: Bits, block: &mut [i16; 232], mut which: u64, one: i16) -> Option<Bits> {
    let mut left = 0;
    while which != 0 {
        if left == 0 {
            bits.refill(data)?;
            left = 56;
        }
        let coefficient = &mut block[place(which.trailing_zeros())];
        // Away from zero.
        let negative = *coefficient >> 15;
        let step = (one ^ negative).wrapping_sub(negative);
        let bit = (bits.buffer >> 63) as i16;
        *coefficient = coefficient.wrapping_add(step & bit.wrapping_neg());
        bits.skip(1);
        left -= 1;
        which &= which - 1;
    }
    Some(bits)
}
