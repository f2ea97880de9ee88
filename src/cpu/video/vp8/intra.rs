//! Prediction from the samples around a block in the same frame (RFC 6386, section 12). What is above the frame counts
//! as 127, what is to its left as 129.

use super::frame::Plane;
use super::macroblock::{BlockMode, Macroblock, MacroblockPosition, Mode};
use super::tokens::Residue;
use super::transform;

const ABOVE: u8 = 127;
const LEFT: u8 = 129;

/// What is around a block of N x N samples.
struct Around<const N: usize> {
    above: [u8; N],
    left: [u8; N],
    corner: u8,
}

impl<const N: usize> Around<N> {
    fn new(plane: &Plane, MacroblockPosition { column, row, .. }: MacroblockPosition) -> Self {
        let mut found =
            Self { above: [ABOVE; N], left: [LEFT; N], corner: if row == 0 { ABOVE } else { LEFT } };
        let first = row * N * plane.width + column * N;
        if row > 0 {
            let above = plane.samples.get(first - plane.width..).and_then(|above| above.first_chunk());
            found.above = above.copied().unwrap_or(found.above);
        }
        if column > 0 {
            let rows = plane.samples.get(first - 1..).unwrap_or_default().chunks(plane.width);
            rows.zip(&mut found.left).for_each(|(row, left)| *left = row.first().copied().unwrap_or(LEFT));
            if row > 0 {
                found.corner = plane.samples.get(first - 1 - plane.width).copied().unwrap_or(ABOVE);
            }
        }
        found
    }
}

/// Predicts a block of N x N samples of `plane`, of which `place` counts blocks.
#[inline(never)]
pub(super) fn whole<const N: usize>(plane: &mut Plane, place: MacroblockPosition, mode: Mode) {
    let around = Around::<N>::new(plane, place);
    let mean = mean(&around, place);
    let width = plane.width;
    let first = place.row * N * width + place.column * N;
    for (row, left) in plane.samples.get_mut(first..).unwrap_or_default().chunks_mut(width).zip(around.left) {
        let Some(row) = row.first_chunk_mut::<N>() else { return };
        match mode {
            Mode::Dc => *row = [mean; N],
            Mode::Vertical => *row = around.above,
            Mode::Horizontal => *row = [left; N],
            Mode::TrueMotion => {
                let add = i16::from(left) - i16::from(around.corner);
                *row = around.above.map(|above| (i16::from(above) + add).clamp(0, 255) as u8);
            }
        }
    }
}

/// The mean of what is around, as far as it is in the frame.
fn mean<const N: usize>(
    around: &Around<N>,
    MacroblockPosition { column, row, .. }: MacroblockPosition,
) -> u8 {
    let sum = |side: &[u8; N]| side.iter().map(|&sample| u32::from(sample)).sum::<u32>();
    let (count, sum) = match (row > 0, column > 0) {
        (false, false) => return 128,
        (true, false) => (N as u32, sum(&around.above)),
        (false, true) => (N as u32, sum(&around.left)),
        (true, true) => (2 * N as u32, sum(&around.above) + sum(&around.left)),
    };
    ((sum + count / 2) / count) as u8
}

/// Samples of a row of [`blocks`]' canvas: one to the left, 16 of luma, 4 to the right.
const CANVAS: usize = 21;

/// Predicts the luma of a macroblock block after block; each is whole before the next, so `residue` is added.
#[inline(never)]
pub(super) fn blocks(
    plane: &mut Plane,
    place: MacroblockPosition,
    made: &Macroblock,
    residue: Option<&Residue>,
) {
    let around = Around::<16>::new(plane, place);
    let width = plane.width;
    let first = place.row * 16 * width + place.column * 16;
    let mut canvas = [0_u8; CANVAS * 17];
    canvas[0] = around.corner;
    canvas[1..17].copy_from_slice(&around.above);
    for (row, left) in canvas.chunks_exact_mut(CANVAS).skip(1).zip(around.left) {
        row[0] = left;
    }
    let right = if place.row == 0 {
        [ABOVE; 4]
    } else if place.column + 1 == place.of[0] {
        [around.above[15]; 4]
    } else {
        let right = plane.samples.get(first - width + 16..).and_then(|right| right.first_chunk());
        right.copied().unwrap_or([ABOVE; 4])
    };
    // For all rows of blocks: what would be to their right is not there yet.
    for row in [0, 4, 8, 12] {
        canvas[row * CANVAS + 17..][..4].copy_from_slice(&right);
    }
    for (i, mode) in made.blocks.iter().enumerate() {
        // The sample above and to the left of the block.
        let at = i / 4 * 4 * CANVAS + i % 4 * 4;
        let predicted = block(*mode, &edge(&canvas, at));
        for (row, predicted) in canvas[at + CANVAS + 1..].chunks_mut(CANVAS).zip(predicted) {
            row[..4].copy_from_slice(&predicted);
        }
        if let Some(residue) = residue {
            transform::add(&mut canvas, at + CANVAS + 1, CANVAS, &residue.blocks[i], residue.ends[i]);
        }
    }
    let made = canvas.chunks_exact(CANVAS).skip(1);
    for (row, made) in plane.samples.get_mut(first..).unwrap_or_default().chunks_mut(width).zip(made) {
        row[..16].copy_from_slice(&made[1..17]);
    }
}

/// The samples around a block of 4x4, from the lowest one to its left up to the corner, and along the row above: 4 + 1
/// + 8.
fn edge(canvas: &[u8; CANVAS * 17], at: usize) -> [i32; 13] {
    let mut edge = [0; 13];
    for (i, sample) in edge.iter_mut().enumerate() {
        *sample = i32::from(canvas[if i < 4 { at + (4 - i) * CANVAS } else { at + i - 4 }]);
    }
    edge
}

/// Predicts 4x4 samples. Along a line all are alike: the mean of two or three samples of the edge, where the line meets
/// it.
fn block(mode: BlockMode, edge: &[i32; 13]) -> [[u8; 4]; 4] {
    let two = |i: usize| ((edge[i] + edge[i + 1] + 1) >> 1) as u8;
    // Around sample `i`.
    let three = |i: usize| {
        let behind = edge[(i + 1).min(12)];
        ((edge[i - 1] + 2 * edge[i] + behind + 2) >> 2) as u8
    };
    let (left, above) = (|y: usize| edge[3 - y], |x: usize| edge[5 + x]);
    let [a, b, c, d] = [0, 1, 2, 3];
    match mode {
        BlockMode::Dc => {
            [[((edge[..4].iter().sum::<i32>() + edge[5..9].iter().sum::<i32>() + 4) >> 3) as u8; 4]; 4]
        }
        BlockMode::TrueMotion => {
            [a, b, c, d].map(|y| [a, b, c, d].map(|x| (left(y) + above(x) - edge[4]).clamp(0, 255) as u8))
        }
        BlockMode::Vertical => [[a, b, c, d].map(|x| three(5 + x)); 4],
        BlockMode::Horizontal => {
            let lowest = ((left(2) + 3 * left(3) + 2) >> 2) as u8;
            [[three(3); 4], [three(2); 4], [three(1); 4], [lowest; 4]]
        }
        BlockMode::LeftDown => [a, b, c, d].map(|y| [a, b, c, d].map(|x| three(6 + x + y))),
        BlockMode::RightDown => [a, b, c, d].map(|y| [a, b, c, d].map(|x| three(4 + x - y))),
        BlockMode::VerticalRight => [
            [two(4), two(5), two(6), two(7)],
            [three(4), three(5), three(6), three(7)],
            [three(3), two(4), two(5), two(6)],
            [three(2), three(4), three(5), three(6)],
        ],
        BlockMode::VerticalLeft => [
            [two(5), two(6), two(7), two(8)],
            [three(6), three(7), three(8), three(9)],
            [two(6), two(7), two(8), three(10)],
            [three(7), three(8), three(9), three(11)],
        ],
        BlockMode::HorizontalDown => [
            [two(3), three(4), three(5), three(6)],
            [two(2), three(3), two(3), three(4)],
            [two(1), three(2), two(2), three(3)],
            [two(0), three(1), two(1), three(2)],
        ],
        BlockMode::HorizontalUp => {
            let (lowest, nearly) = (left(3) as u8, ((left(2) + 3 * left(3) + 2) >> 2) as u8);
            [
                [two(2), three(2), two(1), three(1)],
                [two(1), three(1), two(0), nearly],
                [two(0), nearly, lowest, lowest],
                [lowest; 4],
            ]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_meet_the_edge_where_they_should() {
        // Left, from below: 40 30 20 10; corner 50; above: 60 to 130.
        let edge = [40, 30, 20, 10, 50, 60, 70, 80, 90, 100, 110, 120, 130];
        assert_eq!(block(BlockMode::LeftDown, &edge)[0], [70, 80, 90, 100]);
        assert_eq!(block(BlockMode::LeftDown, &edge)[3][3], 128);
        assert_eq!(block(BlockMode::RightDown, &edge)[3], [30, 20, 23, 43]);
        assert_eq!(block(BlockMode::HorizontalUp, &edge)[0], [15, 20, 25, 30]);
        assert_eq!(block(BlockMode::HorizontalUp, &edge)[1], [25, 30, 35, 38]);
        assert_eq!(block(BlockMode::Dc, &edge), [[50; 4]; 4]);
        assert_eq!(block(BlockMode::Horizontal, &edge).map(|row| row[0]), [23, 20, 30, 38]);
    }
}
