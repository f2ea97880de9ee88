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
        self.blocks = [[0; 16]; 25];
        self.ends = [0; 25];
        read(self, bits, probabilities, steps, has_second, above, left)
    }
}

/// Where a block's neighbours are found in an [`Edge`] above and one to the left.
const PLACES: [[u8; 2]; 25] = places();

const fn places() -> [[u8; 2]; 25] {
    let mut places = [[8; 2]; 25];
    let mut block = 0;
    while block < SECOND {
        places[block] = match block {
            0..16 => [block as u8 % 4, block as u8 / 4],
            _ => {
                let plane = 4 + (block as u8 - 16) / 4 * 2;
                [plane + block as u8 % 2, plane + block as u8 / 2 % 2]
            }
        };
        block += 1;
    }
    places
}

/// Reads the blocks of a macroblock.
#[multiversion(targets("x86_64+bmi1+bmi2+lzcnt"))]
fn read(
    residue: &mut Residue,
    bits: &mut BoolDecoder<'_>,
    probabilities: &Coefficients,
    steps: &Steps,
    has_second: bool,
    above: &mut Edge,
    left: &mut Edge,
) -> bool {
    let mut own = bits.clone();
    let mut is_any = false;
    // The block of the means comes first.
    for number in usize::from(!has_second)..=SECOND {
        let (block, kind, steps) = match number {
            0 => (SECOND, 1, &steps.second),
            1..=16 => (number - 1, if has_second { 0 } else { 3 }, &steps.luma),
            _ => (number - 1, 2, &steps.chroma),
        };
        let [x, y] = PLACES[block].map(usize::from);
        let (Some(above), Some(left)) = (above.get_mut(x), left.get_mut(y)) else { continue };
        let (before, first) = (usize::from(*above + *left), usize::from(kind == 0));
        let coefficients = &mut residue.blocks[block];
        let found = self::block(&mut own, &probabilities[kind], before, first, steps, coefficients);
        let is_filled = found > first;
        residue.ends[block] = if is_filled { found as u8 } else { 0 };
        is_any |= is_filled;
        (*above, *left) = (u8::from(is_filled), u8::from(is_filled));
    }
    *bits = own;
    is_any
}

/// The edges of a macroblock without coefficients. One without means leaves those of the means as they were.
pub(super) fn clear(has_second: bool, above: &mut Edge, left: &mut Edge) {
    let count = if has_second { 9 } else { 8 };
    above[..count].fill(0);
    left[..count].fill(0);
}

/// Reads a block from coefficient `first` on; the place behind the last one, `first` when there is none.
#[inline(always)]
fn block(
    bits: &mut BoolDecoder<'_>,
    probabilities: &[[[u8; 11]; 3]; 8],
    before: usize,
    first: usize,
    steps: &[i32; 2],
    coefficients: &mut [i16; 16],
) -> usize {
    let mut at = first;
    let mut likely = &probabilities[BANDS[at & 15]][before.min(2)];
    loop {
        // For the four decisions that are taken up to a coefficient of 1.
        bits.prepare();
        if !bits.next(likely[0]) {
            return at;
        }
        // Behind a zero a block does not end, as it would have ended ahead of it.
        while !bits.next(likely[1]) {
            at += 1;
            if at == 16 {
                return at;
            }
            likely = &probabilities[BANDS[at & 15]][0];
            bits.prepare();
        }
        let (value, next) = if bits.next(likely[2]) { (large(bits, likely), 2) } else { (1, 1) };
        let sign = -(bits.next_bit(128) as i32);
        let value = (value ^ sign) - sign;
        // In 16 bits, as the format says.
        coefficients[ZIGZAG[at & 15]] = (value * steps[usize::from(at > 0)]) as i16;
        at += 1;
        if at == 16 {
            return at;
        }
        likely = &probabilities[BANDS[at & 15]][next];
    }
}

/// A value of 2 or more; bits are prepared for one more decision.
#[inline(always)]
fn large(bits: &mut BoolDecoder<'_>, likely: &[u8; 11]) -> i32 {
    bits.prepare();
    let value = if !bits.next(likely[3]) {
        if bits.next(likely[4]) { 3 + i32::from(bits.next(likely[5])) } else { 2 }
    } else {
        let range = if bits.next(likely[6]) {
            let higher = usize::from(bits.next(likely[8]));
            2 + 2 * higher + usize::from(bits.next(likely[9 + (higher & 1)]))
        } else {
            usize::from(bits.next(likely[7]))
        };
        let (first, more) = RANGES[range.min(5)];
        let mut value = 0;
        for &likely in more {
            bits.prepare();
            value = value << 1 | i32::from(bits.next(likely));
        }
        first + value
    };
    bits.prepare();
    value
}
