//! How blocks of progressive scans are coded: a band of coefficients of one component, for the first time or a bit
//! more. It must not know where blocks lie in an image.
//!
//! For each block a mask says which coefficients are not zero, in zigzag order from the highest bit on. A scan that
//! brings a further bit finds its way by masks, not from coefficient to coefficient: one instruction gives the bits of
//! the stream, highest first, to the bits of a mask.

use std::ops::Range;

use multiversion::multiversion;

use super::bits::Bits;
use super::entropy::spread_of;
use super::huffman::{Codes, DC_BITS, Dc, extend};
use super::transform::{BLOCKS, Group};
use super::vector::{Vector, Work};

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
        let block = group.0.get_mut(8 * (index % BLOCKS)..)?.first_chunk_mut()?;
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
    let (all, number) = table.entries[(bits.buffer >> (64 - DC_BITS)) as usize];
    let (length, size) = match u32::from(all) {
        0 => table.search.find(bits.buffer).map(|(length, size)| (length, u32::from(size)))?,
        all => (all - u32::from(number & 15), u32::from(number & 15)),
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
                found |= 1 << 63 >> k;
            }
            bits.skip(length + size);
            k += 1;
        }
        *mask = found;
    }
    Some((bits, run))
}

/// Blocks of whose band a further bit comes.
pub(super) struct Refine<'a, 'b> {
    pub(super) data: &'a [u8],
    /// Where the data go on, and how many blocks from there on bring no new coefficients.
    pub(super) start: (Bits, u32),
    pub(super) table: &'a Codes,
    pub(super) band: Band,
    pub(super) row: &'a mut Coefficients<'b>,
    pub(super) blocks: Range<usize>,
}

impl Work for Refine<'_, '_> {
    type Out = Option<(Bits, u32)>;

    #[inline(always)]
    fn run<V: Vector>(self) -> Self::Out {
        let Self { data, start: (mut bits, mut run), table, band, row, blocks } = self;
        let one = 1_i16 << band.low;
        let whole = (!0 >> band.first) & (!0 << (63 - band.last));
        for index in blocks {
            let (block, mask) = row.block(index)?;
            let old = *mask & whole;
            // What is left of the band, and coefficients that are not zero and become greater.
            let (mut rest, mut greater) = (whole, 0);
            while run == 0 && rest != 0 {
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
                // Past so many zeros to the one behind them.
                let free = rest & !old;
                let behind = free.count_ones().checked_sub(zeros + 1)?;
                let new = V::deposit(1 << behind, free);
                greater |= correct::<V>(data, &mut bits, rest & old & !(new | (new - 1)))?;
                if size > 0 {
                    // Plus or minus, without a branch.
                    block[place(new.leading_zeros())] = one * (2 * sign - 1);
                    *mask |= new;
                }
                rest &= new - 1;
            }
            if run > 0 {
                run -= 1;
                greater |= correct::<V>(data, &mut bits, rest & old)?;
            }
            while greater != 0 {
                let coefficient = &mut block[place(greater.trailing_zeros() ^ 63)];
                // Away from zero.
                let negative = *coefficient >> 15;
                *coefficient = coefficient.wrapping_add((one ^ negative).wrapping_sub(negative));
                greater &= greater - 1;
            }
        }
        Some((bits, run))
    }
}

/// Takes a bit for each coefficient of `which`. Returns those whose bit is set.
#[inline(always)]
fn correct<V: Vector>(data: &[u8], bits: &mut Bits, which: u64) -> Option<u64> {
    let mut set = 0;
    // A refill has bits for 56.
    for part in if which.count_ones() > 56 { [which & !0 << 32, which & !0 >> 32] } else { [which, 0] } {
        let count = part.count_ones();
        if count > 0 {
            bits.refill(data)?;
            set |= V::deposit(bits.buffer >> (64 - count), part);
            bits.skip(count);
        }
    }
    Some(set)
}
