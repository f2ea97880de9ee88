//! The vectors of macroblocks that are predicted from other frames (RFC 6386, sections 16.3, 16.4 and 17).

use super::bool_decoder::BoolDecoder;
use super::macroblock::{Luma, Macroblock, MacroblockPosition, Neighbours, Reference, Vector};
use super::tables::{self, VectorProbabilities};

const ZERO: Vector = Vector { x: 0, y: 0 };

/// Quarters of a sample in a macroblock.
const STEP: i32 = 64;

/// What the neighbours' vectors say: the one that a new one is added to, the two that are likely, and how likely which
/// way is.
struct Survey {
    best: Vector,
    nearest: Vector,
    near: Vector,
    probabilities: [u8; 4],
}

/// Asks the neighbours, of which those beside weigh twice as much as the one at the corner. Vectors into a frame of the
/// other direction are turned around.
fn survey(
    reference: Reference,
    is_turned: [bool; 2],
    place: MacroblockPosition,
    neighbours: &Neighbours<'_>,
) -> Survey {
    let turned = |reference| match reference {
        Reference::Golden => is_turned[0],
        Reference::Alternative => is_turned[1],
        _ => false,
    };
    // Zero first, then vectors in the order in which they are found.
    let (mut found, mut counts, mut last) = ([ZERO; 4], [0_usize; 4], 0);
    let Neighbours { above, left, above_left } = *neighbours;
    for (neighbour, weight) in [(above, 2), (left, 2), (above_left, 1)] {
        if neighbour.reference == Reference::Own {
            continue;
        }
        let mut vector = neighbour.vector();
        if vector == ZERO {
            counts[0] += weight;
            continue;
        }
        if turned(neighbour.reference) != turned(reference) {
            vector = Vector { x: -vector.x, y: -vector.y };
        }
        if last == 0 || vector != found[last] {
            last += 1;
            found[last] = vector;
        }
        counts[last] += weight;
    }
    // The third vector may be the first once more.
    if counts[3] > 0 && found[3] == found[1] {
        counts[1] += 1;
    }
    let split = |neighbour: &Macroblock| usize::from(neighbour.luma.is_split());
    counts[3] = 2 * (split(above) + split(left)) + split(above_left);
    if counts[2] > counts[1] {
        counts.swap(1, 2);
        found.swap(1, 2);
    }
    let best = if counts[1] >= counts[0] { found[1] } else { ZERO };
    let mut probabilities = [0; 4];
    for (i, (probability, count)) in probabilities.iter_mut().zip(counts).enumerate() {
        *probability = tables::VECTOR_COUNTS[count.min(5)][i];
    }
    Survey {
        best: clipped(best, place),
        nearest: clipped(found[1], place),
        near: clipped(found[2], place),
        probabilities,
    }
}

/// The vector, but no further than a macroblock beyond the frame.
fn clipped(
    vector: Vector,
    MacroblockPosition { column, row, of: [columns, rows] }: MacroblockPosition,
) -> Vector {
    let side =
        |value: i32, at: usize, of: usize| value.clamp(-(at as i32 + 1) * STEP, (of - at) as i32 * STEP);
    Vector { x: side(vector.x, column, columns), y: side(vector.y, row, rows) }
}

/// Reads the vectors of a macroblock whose reference is known.
pub(super) fn read(
    made: &mut Macroblock,
    bits: &mut BoolDecoder<'_>,
    probabilities: &VectorProbabilities,
    is_turned: [bool; 2],
    place: MacroblockPosition,
    neighbours: &Neighbours<'_>,
) {
    let survey = survey(made.reference, is_turned, place, neighbours);
    let vector = match bits.tree(&tables::VECTOR_TREE, &survey.probabilities) {
        0 => {
            made.luma = Luma::Still;
            return;
        }
        1 => survey.nearest,
        2 => survey.near,
        3 => new(bits, probabilities, survey.best),
        _ => return split(made, bits, probabilities, survey.best, neighbours),
    };
    made.luma = Luma::Moved;
    made.vectors = [vector; 16];
}

/// One vector for each part of the macroblock.
fn split(
    made: &mut Macroblock,
    bits: &mut BoolDecoder<'_>,
    probabilities: &VectorProbabilities,
    best: Vector,
    neighbours: &Neighbours<'_>,
) {
    let how = bits.tree(&tables::SPLIT_TREE, &tables::SPLIT);
    made.luma = if how == 0 { Luma::Sixteenths } else { Luma::Quarters };
    let parts = &tables::PARTS[how.min(3)];
    let mut next = 0;
    for first in 0..16 {
        // Its first block decides for the whole part.
        if parts[first] != next {
            continue;
        }
        let left = if first % 4 == 0 { neighbours.left.vectors[first + 3] } else { made.vectors[first - 1] };
        let above = if first < 4 { neighbours.above.vectors[first + 12] } else { made.vectors[first - 4] };
        let likely = match (left == above, left == ZERO, above == ZERO) {
            (true, true, _) => 4,
            (true, ..) => 3,
            (_, _, true) => 2,
            (_, true, _) => 1,
            _ => 0,
        };
        let vector = match bits.tree(&tables::PART_TREE, &tables::PART[likely]) {
            0 => left,
            1 => above,
            2 => ZERO,
            _ => new(bits, probabilities, best),
        };
        for (place, part) in made.vectors.iter_mut().zip(parts) {
            if *part == next {
                *place = vector;
            }
        }
        next += 1;
    }
}

/// A vector that is written as its distance from `base`.
fn new(bits: &mut BoolDecoder<'_>, [rows, columns]: &VectorProbabilities, base: Vector) -> Vector {
    let y = base.y + component(bits, rows);
    Vector { x: base.x + component(bits, columns), y }
}

fn component(bits: &mut BoolDecoder<'_>, probabilities: &[u8; 19]) -> i32 {
    let [is_long, is_negative, ..] = *probabilities;
    let length = if bits.read(is_long) {
        let mut bit = |i: usize| i32::from(bits.read(probabilities[9 + i])) << i;
        let length = [0, 1, 2, 9, 8, 7, 6, 5, 4].map(&mut bit).iter().sum::<i32>();
        // A long one is 8 or more: without a higher bit this one is set.
        length + if length > 15 { bit(3) } else { 8 }
    } else {
        bits.tree(&tables::SHORT_TREE, &probabilities[2..9]) as i32
    };
    if length != 0 && bits.read(is_negative) { -length } else { length }
}
