//! Huffman-coded blocks of sequential scans. It must not know where blocks lie in an image.

use std::hint::select_unpredictable;
use std::sync::Arc;

use multiversion::multiversion;

use super::bits::Bits;
use super::frame::ZIGZAG;
use super::huffman::{AC_BITS, Ac, DC_BITS, Dc, END, Entry, LONG, extend};
use super::transform::{BLOCKS, Group, Lasts};

/// A component's tables.
pub(super) struct Tables {
    pub(super) dc: Arc<Dc>,
    pub(super) ac: Arc<Ac>,
}

/// Where a block is decoded to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Its first coefficient among those of all groups.
    coefficient: u32,
    /// Its place among the blocks of all groups.
    block: u32,
    component: u32,
}

impl Place {
    /// In a group, the block at `lane`.
    pub(super) fn new(group: usize, lane: usize, component: usize) -> Self {
        Self {
            coefficient: (64 * BLOCKS * group + 8 * lane) as u32,
            block: (BLOCKS * group + lane) as u32,
            component: component as u32,
        }
    }
}

/// Where the coefficient at a zigzag position lies in a group, from its block's first one on. Positions behind a block's end are
/// DC's place, which is written last.
static SPREAD: [u8; 1024] = {
    let mut spread = [0; 1024];
    let mut k = 0;
    while k < 64 {
        spread[k] = spread_of(k);
        k += 1;
    }
    spread
};

/// The place of a zigzag position below 64 in a group.
pub(super) const fn spread_of(k: usize) -> u8 {
    let place = ZIGZAG[k];
    place / 8 * 32 + place % 8
}

#[inline(always)]
fn place(k: u32, more: u8) -> usize {
    usize::from(SPREAD[k as usize + usize::from(more)])
}

/// The last number of an entry, which `buffer` begins with.
#[inline(always)]
fn number(buffer: u64, entry: &Entry) -> i16 {
    let ending_here = buffer >> (u32::from(entry.length).wrapping_neg() & 63);
    let bits = ending_here & !(!0 << (entry.size & 63));
    (bits as i16).wrapping_add(entry.bias)
}

/// Decodes blocks to where `places` says; what they are decoded to must be zero. Returns where the data go on.
///
/// The end of a block is looked for after three look-ups, not after each: there are fewer branches that a processor guesses wrong. What
/// the look-ups behind the end did is undone: they wrote to DC's place.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
pub(super) fn blocks(
    data: &[u8],
    start: Bits,
    tables: &[Tables],
    places: &[Place],
    groups: &mut [Group],
    lasts: &mut [Lasts],
    predictions: &mut [i32; 4],
) -> Option<Bits> {
    // A copy: an argument would be kept in the caller's memory.
    let mut bits = start;
    let (coefficients, lasts) = (groups.as_flattened_mut(), lasts.as_flattened_mut());
    for to in places {
        bits.refill(data)?;
        let Tables { dc, ac } = tables.get(to.component as usize)?;
        let entry = &dc.entries[(bits.buffer >> (64 - DC_BITS)) as usize];
        let (difference, length) = if entry.advance == LONG {
            let (length, size) = dc.search.find(bits.buffer)?;
            (extend(bits.buffer << length, u32::from(size)), length + u32::from(size))
        } else {
            (i32::from(number(bits.buffer, entry)), u32::from(entry.length))
        };
        bits.skip(length);
        // So long that no index needs a check.
        let block: &mut [i16; 232] = coefficients.get_mut(to.coefficient as usize..)?.first_chunk_mut()?;
        let prediction = &mut predictions[to.component as usize & 3];
        *prediction = prediction.checked_add(difference)?;
        let last;
        (bits, last) = rest_of_block(data, bits, ac, block)?;
        block[0] = *prediction as i16;
        *lasts.get_mut(to.block as usize)? = last;
    }
    Some(bits)
}

/// One look-up: writes its numbers and returns where it comes to.
#[inline(always)]
fn look_up(bits: Bits, k: u32, ac: &Ac, block: &mut [i16; 232]) -> (Bits, u32) {
    let entry = &ac.entries[(bits.buffer >> (64 - AC_BITS)) as usize];
    block[place(k, entry.first)] = i16::from(entry.value);
    block[place(k, entry.second)] = number(bits.buffer, entry);
    let mut next = bits;
    next.skip(u32::from(entry.length));
    (next, k + u32::from(entry.advance))
}

/// The AC coefficients of a block. Returns where the data go on, and the last position that may not be zero.
#[inline(always)]
fn rest_of_block(data: &[u8], mut bits: Bits, ac: &Ac, block: &mut [i16; 232]) -> Option<(Bits, u8)> {
    let mut k = 1_u32;
    loop {
        // Never: for the compiler, which then knows that no place is beyond the table.
        if k > 63 {
            return None;
        }
        bits.refill(data)?;
        // Places before and after each look-up. As an array they would live in memory, which costs more than the look-ups.
        let (bits0, k0) = (bits, k);
        let (bits1, k1) = look_up(bits0, k0, ac, block);
        let (bits2, k2) = look_up(bits1, k1, ac, block);
        (bits, k) = look_up(bits2, k2, ac, block);
        if k < 64 {
            continue;
        }
        // Back to the first of them that came to the end.
        (bits, k) = (Bits::select(k2 >= 64, bits2, bits), select_unpredictable(k2 >= 64, k2, k));
        (bits, k) = (Bits::select(k1 >= 64, bits1, bits), select_unpredictable(k1 >= 64, k1, k));
        if k.wrapping_sub(END_AT) < 63 {
            return Some((bits, (k - END_AT) as u8));
        }
        if k == 64 {
            return Some((bits, 63));
        }
        // Seldom: a long code, or the second number belongs to the next block. The first code alone, as it should be.
        (bits, k) = match (k1 < 64, k2 < 64) {
            (false, _) => (bits0, k0),
            (_, false) => (bits1, k1),
            _ => (bits2, k2),
        };
        let last;
        (bits, k, last) = long(data, bits, k, ac, block)?;
        if let Some(last) = last {
            return Some((bits, last));
        }
    }
}

/// Where a block has come to that ends before position 1.
const END_AT: u32 = END as u32 + 1;

/// A code of any length, and its number. The last position, if the block ends.
#[cold]
#[inline(never)]
fn long(
    data: &[u8],
    mut bits: Bits,
    k: u32,
    ac: &Ac,
    block: &mut [i16; 232],
) -> Option<(Bits, u32, Option<u8>)> {
    bits.refill(data)?;
    let (length, symbol) = ac.search.find(bits.buffer)?;
    let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
    if size == 0 && run != 15 {
        bits.skip(length);
        return Some((bits, k, Some((k - 1) as u8)));
    }
    let k = k + run + 1;
    if k > 64 {
        // libjpeg goes on here, and it shall.
        return None;
    }
    if size > 0 {
        block[place(k - 1, 0)] = extend(bits.buffer << length, size) as i16;
    }
    bits.skip(length + size);
    Some((bits, k, (k == 64).then_some(63)))
}

// A block that ends has come to 129 and more, below 192; what comes to more is no end.
const _: () = assert!(END_AT + 62 < LONG as u32);
