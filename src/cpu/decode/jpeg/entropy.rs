//! Huffman-coded blocks of sequential scans. It must not know where blocks lie in an image.

use std::hint::select_unpredictable;
use std::sync::Arc;

use multiversion::multiversion;

use super::bits::{Bits, Near, Window};
use super::frame::{Reader, Scan, ZIGZAG};
use super::huffman::{AC_BITS, Ac, Cache, DC_BITS, Dc, END, LONG, extend, number};
use super::transform::{self, BLOCKS, Group};

/// Tables of one part of a scan.
pub(super) struct Tables {
    pub(super) dc: Arc<Dc>,
    pub(super) ac: Arc<Ac>,
}

/// From so many bytes on it pays to make tables that give two codes at once.
const MANY_BYTES: usize = 6_000;

impl Tables {
    /// Those of each part of a scan, in order.
    pub(super) fn all(reader: &Reader<'_>, scan: &Scan, cache: &mut Cache) -> Option<Vec<Self>> {
        let pairs = reader.rest()?.len() > MANY_BYTES;
        let mut all = Vec::with_capacity(scan.parts.len());
        for part in &scan.parts {
            let (dc, ac) = (reader.spec(0, part.dc)?, reader.spec(1, part.ac)?);
            all.push(Self { dc: cache.dc(dc)?, ac: cache.ac(ac, pairs)? });
        }
        Some(all)
    }
}

/// Where a block is decoded to.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockPosition {
    /// Its first coefficient among those of all groups.
    coefficient: u32,
    /// Which of the scan's parts.
    part: u32,
}

impl BlockPosition {
    /// In a group, the block at `lane`.
    pub(super) fn new(group: usize, lane: usize, part: usize) -> Self {
        Self { coefficient: (64 * BLOCKS * group + 8 * lane) as u32, part: part as u32 }
    }
}

/// Where the coefficient at a zigzag position lies in a group, from its block's first one on. Positions behind a
/// block's end are DC's place, which is written last.
static SPREAD: [u8; 2048] = {
    let mut spread = [0; 2048];
    let mut k = 0;
    while k < 64 {
        spread[k] = spread_of(k);
        k += 1;
    }
    spread
};

/// The place of a zigzag position below 64 in a group.
pub(super) const fn spread_of(k: usize) -> u8 {
    let natural = ZIGZAG[k] as usize;
    let place = transform::place(natural / 8, natural % 8);
    (place / 8 * 8 * BLOCKS + place % 8) as u8
}

#[inline(always)]
fn place(k: u32, more: u8) -> usize {
    usize::from(SPREAD[k as usize + usize::from(more)])
}

/// Decodes blocks to where `places` says, whatever was there before. Returns where the data go on.
///
/// The end of a block is looked for after three look-ups, not after each: there are fewer branches that a processor
/// guesses wrong. What the look-ups behind the end did is undone: they wrote to DC's place.
///
/// The first look-up after a refill takes its index from the bits as they were before, of which enough are left: so no
/// look-up waits for a refill.
#[multiversion(targets("x86_64+avx2+bmi1+bmi2+lzcnt"))]
pub(super) fn blocks(
    data: &[u8],
    start: Bits,
    tables: &[Tables],
    places: &[BlockPosition],
    groups: &mut [Group],
    predictions: &mut [i32; 4],
) -> Option<Bits> {
    // A copy: an argument would be kept in the caller's memory.
    let mut bits = start;
    bits.refill(data)?;
    let mut bits = Near::from(bits);
    let coefficients = bytemuck::cast_slice_mut::<Group, i16>(groups);
    for to in places {
        let (window, mut near, start) = bits.enter(data)?;
        let top = near.buffer;
        near.refill(window);
        let Tables { dc, ac } = tables.get(to.part as usize)?;
        let (all, which) = dc.entries[(top >> (64 - DC_BITS)) as usize];
        let (difference, length) = if all == 0 {
            let (length, size) = dc.search.find(near.buffer)?;
            (extend(near.buffer << length, u32::from(size)), length + u32::from(size))
        } else {
            (i32::from(number(near.buffer, u32::from(all), which)), u32::from(all))
        };
        near.skip(length);
        // So long that no index needs a check.
        let block: &mut [i16; 256] = coefficients.get_mut(to.coefficient as usize..)?.first_chunk_mut()?;
        // Here and not for all blocks at once: it costs next to nothing beside look-ups, and brings the block into the
        // first cache.
        for unit in block.chunks_exact_mut(8 * BLOCKS) {
            unit[..8].fill(0);
        }
        let prediction = &mut predictions[to.part as usize & 3];
        *prediction = prediction.checked_add(difference)?;
        near = rest_of_block(window, near, ac, block)?;
        block[0] = *prediction as i16;
        bits = near.leave(start);
    }
    Some(bits.into())
}

/// Where look-ups have come to since the last refill.
#[derive(Clone, Copy)]
struct Reached {
    buffer: u64,
    /// Steps of entries, from [`Near::steps`] on.
    steps: u32,
}

impl Reached {
    /// The position in the block.
    #[inline(always)]
    fn k(self) -> u32 {
        self.steps >> 8
    }

    /// One look-up, for which `top` has the bits: writes its numbers and goes on.
    #[inline(always)]
    fn look_up(self, top: u64, ac: &Ac, block: &mut [i16; 256]) -> Self {
        let index = (top >> (64 - AC_BITS)) as usize;
        let step = u32::from(ac.steps[index]);
        let entry = &ac.entries[index];
        block[place(self.k(), entry.first)] = i16::from(entry.value);
        block[place(self.k(), entry.second)] = number(self.buffer, step, entry.number);
        // No more than the lowest six bits of a number shift: those are the length.
        Self { buffer: self.buffer << (step & 63), steps: self.steps + step }
    }

    /// `self` if it is at the end of a block, else `other`, without a branch.
    #[inline(always)]
    fn if_ended(self, other: Self) -> Self {
        let ended = self.steps >= 64 << 8;
        Self {
            buffer: select_unpredictable(ended, self.buffer, other.buffer),
            steps: select_unpredictable(ended, self.steps, other.steps),
        }
    }
}

/// The AC coefficients of a block. Returns where the data go on.
#[inline(always)]
fn rest_of_block(window: &Window, mut bits: Near, ac: &Ac, block: &mut [i16; 256]) -> Option<Near> {
    let mut k = 1_u32;
    loop {
        // Never: for the compiler, which then knows that no place is beyond the table.
        if k > 63 {
            return None;
        }
        let top = bits.buffer;
        bits.refill(window);
        // Each look-up in variables of its own. As an array they would live in memory, which costs more than the
        // look-ups.
        let start = Reached { buffer: bits.buffer, steps: bits.steps(k) };
        let first = start.look_up(top, ac, block);
        let second = first.look_up(first.buffer, ac, block);
        let third = second.look_up(second.buffer, ac, block);
        if third.k() < 64 {
            bits.go_on(third.buffer, third.steps);
            k = third.k();
            continue;
        }
        // Back to the first of them that came to the end.
        let end = first.if_ended(second.if_ended(third));
        if end.k() == 64 || end.k().wrapping_sub(END_AT) < 63 {
            bits.go_on(end.buffer, end.steps);
            return Some(bits);
        }
        // Seldom: a long code, or the second number belongs to the next block. The first code alone, as it should be.
        let before = match (first.k() < 64, second.k() < 64) {
            (false, _) => start,
            (_, false) => first,
            _ => second,
        };
        bits.go_on(before.buffer, before.steps);
        (bits, k) = long(window, bits, before.k(), ac, block)?;
        if k == 64 {
            return Some(bits);
        }
    }
}

/// Where a block has come to that ends before position 1.
const END_AT: u32 = END as u32 + 1;

/// A code of any length, and its number. Position 64 if the block ends.
#[cold]
#[inline(never)]
fn long(window: &Window, mut bits: Near, k: u32, ac: &Ac, block: &mut [i16; 256]) -> Option<(Near, u32)> {
    bits.refill(window);
    let (length, symbol) = ac.search.find(bits.buffer)?;
    let (run, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
    if size == 0 && run != 15 {
        bits.skip(length);
        return Some((bits, 64));
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
    Some((bits, k))
}

// A block that ends has come to 129 and more, below 192; what comes to more is no end.
const _: () = assert!(END_AT + 62 < LONG as u32);
