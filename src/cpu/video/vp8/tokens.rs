//! The coefficients of a macroblock (RFC 6386, section 13), multiplied by their steps (section 14.1).

use multiversion::multiversion;

use super::bool_decoder::BoolDecoder;
use super::coefficients::{BANDS, Coefficients, RANGES, ZIGZAG};
use super::header::{Quantizer, Segments};
use super::tables;

/// The block of the luma blocks' means, behind 16 blocks of luma and 4 each of blue and red.
pub(super) const SECOND: usize = 24;

/// What coefficients are multiplied by, DC and AC.
#[derive(Clone, Copy, Default)]
pub(super) struct Steps {
    luma: [i32; 2],
    second: [i32; 2],
    chroma: [i32; 2],
}

impl Steps {
    /// Those of each segment.
    pub(super) fn of_segments(quantizer: &Quantizer, segments: &Segments) -> [Self; 4] {
        let mut number = 0..4;
        [(); 4].map(|()| {
            let own = number.next().map_or(0, |segment: usize| segments.quantizer[segment]);
            let index = match (segments.is_enabled, segments.is_absolute) {
                (false, _) => quantizer.index,
                (true, true) => own,
                (true, false) => quantizer.index + own,
            };
            Self::new(index.clamp(0, 127), quantizer)
        })
    }

    fn new(index: i32, quantizer: &Quantizer) -> Self {
        let of = |table: &[u16; 128], delta: i32| i32::from(table[(index + delta).clamp(0, 127) as usize]);
        let (dc, ac) = (&tables::DC_STEPS, &tables::AC_STEPS);
        Self {
            luma: [of(dc, quantizer.luma_dc), of(ac, 0)],
            second: [2 * of(dc, quantizer.second_dc), (of(ac, quantizer.second_ac) * 155 / 100).max(8)],
            chroma: [of(dc, quantizer.chroma_dc).min(132), of(ac, quantizer.chroma_ac)],
        }
    }
}

/// Which blocks beside a macroblock had coefficients: 4 of luma, 2 of blue, 2 of red, the means.
pub(super) type Edge = [u8; 9];

/// The coefficients of a macroblock.
pub(super) struct Residue {
    /// In rows of 4.
    pub(super) blocks: [[i16; 16]; 25],
    /// The place behind the last coefficient of each, in the order in which they come.
    pub(super) ends: [u8; 25],
}

impl Residue {
    pub(super) const NONE: Self = Self { blocks: [[0; 16]; 25], ends: [0; 25] };

    /// Reads them; `above` and `left` are the edges of the neighbours and become those of the macroblock. Whether there
    /// are any.
    pub(super) fn read(
        &mut self,
        bits: &mut BoolDecoder<'_>,
        probabilities: &Coefficients,
        steps: &Steps,
        has_second: bool,
        above: &mut Edge,
        left: &mut Edge,
    ) -> bool {
        *self = Self::NONE;
        let mut is_any = false;
        let mut read = |block: usize, kind: usize, steps: &[i32; 2], above: &mut u8, left: &mut u8| {
            let first = usize::from(kind == 0);
            let (Some(coefficients), Some(end)) = (self.blocks.get_mut(block), self.ends.get_mut(block))
            else {
                return;
            };
            let found = self::block(
                bits,
                &probabilities[kind],
                usize::from(*above + *left),
                first,
                steps,
                coefficients,
            );
            let is_filled = found > first;
            *end = if is_filled { found as u8 } else { 0 };
            is_any |= is_filled;
            (*above, *left) = (u8::from(is_filled), u8::from(is_filled));
        };
        if has_second {
            read(SECOND, 1, &steps.second, &mut above[8], &mut left[8]);
        }
        let kind = if has_second { 0 } else { 3 };
        for block in 0..16 {
            read(block, kind, &steps.luma, &mut above[block % 4], &mut left[block / 4]);
        }
        for block in 16..24 {
            let plane = 4 + (block - 16) / 4 * 2;
            read(block, 2, &steps.chroma, &mut above[plane + block % 2], &mut left[plane + block / 2 % 2]);
        }
        is_any
    }
}

/// The edges of a macroblock without coefficients. One without means leaves those of the means as they were.
pub(super) fn clear(has_second: bool, above: &mut Edge, left: &mut Edge) {
    let count = if has_second { 9 } else { 8 };
    above[..count].fill(0);
    left[..count].fill(0);
}

/// Reads a block from coefficient `first` on; the place behind the last one, `first` when there is none.
#[multiversion(targets("x86_64+bmi1+bmi2+lzcnt"))]
fn block(
    bits: &mut BoolDecoder<'_>,
    probabilities: &[[[u8; 11]; 3]; 8],
    before: usize,
    first: usize,
    steps: &[i32; 2],
    coefficients: &mut [i16; 16],
) -> usize {
    let mut own = bits.clone();
    let mut at = first;
    let mut likely = &probabilities[BANDS[at & 15]][before.min(2)];
    while own.read(likely[0]) {
        // Behind a zero a block does not end, as it would have ended ahead of it.
        while !own.read(likely[1]) {
            at += 1;
            if at == 16 {
                *bits = own;
                return at;
            }
            likely = &probabilities[BANDS[at & 15]][0];
        }
        let (value, next) = if own.read(likely[2]) { (large(&mut own, likely), 2) } else { (1, 1) };
        let value = if own.flag() { -value } else { value };
        // In 16 bits, as the format says.
        coefficients[ZIGZAG[at & 15]] = (value * steps[usize::from(at > 0)]) as i16;
        at += 1;
        if at == 16 {
            break;
        }
        likely = &probabilities[BANDS[at & 15]][next];
    }
    *bits = own;
    at
}

/// A value of 2 or more.
#[inline(always)]
fn large(bits: &mut BoolDecoder<'_>, likely: &[u8; 11]) -> i32 {
    if !bits.read(likely[3]) {
        return if bits.read(likely[4]) { 3 + i32::from(bits.read(likely[5])) } else { 2 };
    }
    let range = if bits.read(likely[6]) {
        let higher = bits.read(likely[8]);
        2 + 2 * usize::from(higher) + usize::from(bits.read(likely[9 + usize::from(higher)]))
    } else {
        usize::from(bits.read(likely[7]))
    };
    let (first, more) = RANGES[range.min(5)];
    first + more.iter().fold(0, |more, &likely| more << 1 | i32::from(bits.read(likely)))
}
