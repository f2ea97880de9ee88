//! Pillow's affine transforms, with the matrices that torchvision gives them.

use super::{Moves, Operation, Rgb};

/// Between pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The pixel that a place is in.
    Nearest,
    /// Two by two pixels.
    Linear,
}

/// From places of the output to those of the input: x, then y, each a row of three.
type Matrix = [f64; 6];

/// Fractions of 16 bits, as Pillow counts them without a filter.
const ONE: f64 = 65_536.0;

/// Writes `src` to `dst`, moved. `size` is height and width.
pub(super) fn warp(
    src: &[Rgb],
    dst: &mut [Rgb],
    size: [usize; 2],
    operation: Operation,
    amount: f64,
    moves: Moves,
) {
    let matrix = match operation {
        Operation::Rotate => match turned(size, amount) {
            Turned::Same => return dst.copy_from_slice(src),
            Turned::Half => return dst.iter_mut().zip(src.iter().rev()).for_each(|(to, from)| *to = *from),
            Turned::Quarter { is_left } => return quarter(src, dst, size[1], is_left),
            Turned::Other(matrix) => matrix,
        },
        _ => inverse(size, operation, amount),
    };
    dst.fill(moves.fill);
    match moves.filter {
        Filter::Linear => linear(src, dst, size, &matrix),
        Filter::Nearest if matrix[1] == 0.0 && matrix[3] == 0.0 => scaled(src, dst, size, &matrix),
        Filter::Nearest if is_small(size, &matrix) => fixed(src, dst, size, &matrix),
        Filter::Nearest => nearest(src, dst, size, &matrix),
    }
}

enum Turned {
    Same,
    Half,
    Quarter { is_left: bool },
    Other(Matrix),
}

/// What Pillow's `rotate` does.
fn turned([height, width]: [usize; 2], degrees: f64) -> Turned {
    let degrees = degrees.rem_euclid(360.0);
    let is_square = height == width;
    match degrees {
        0.0 => return Turned::Same,
        180.0 => return Turned::Half,
        90.0 | 270.0 if is_square => return Turned::Quarter { is_left: degrees == 90.0 },
        _ => {}
    }
    let angle = -degrees.to_radians();
    let (sin, cos) = (rounded(angle.sin()), rounded(angle.cos()));
    let (x, y) = (width as f64 / 2.0, height as f64 / 2.0);
    let [a, b, d, e] = [cos, sin, -sin, cos];
    Turned::Other([a, b, a * -x + b * -y + x, d, e, d * -x + e * -y + y])
}

/// To 15 decimals, as Python's `round`, which goes by the decimal text, too.
fn rounded(value: f64) -> f64 {
    format!("{value:.15}").parse().unwrap_or(value)
}

fn quarter(src: &[Rgb], dst: &mut [Rgb], side: usize, is_left: bool) {
    for (y, row) in dst.chunks_exact_mut(side).enumerate() {
        for (x, to) in row.iter_mut().enumerate() {
            *to = if is_left { src[x * side + side - 1 - y] } else { src[(side - 1 - x) * side + y] };
        }
    }
}

/// torchvision's matrix of a shear or a translation.
fn inverse([height, width]: [usize; 2], operation: Operation, amount: f64) -> Matrix {
    let middle = [width as f64 * 0.5, height as f64 * 0.5];
    // By degrees and back, as torchvision goes.
    let angle = || amount.atan().to_degrees().to_radians();
    let (shear, translate, [x, y]) = match operation {
        Operation::ShearX => ([angle(), 0.0], [0.0; 2], [0.0; 2]),
        Operation::ShearY => ([0.0, angle()], [0.0; 2], [0.0; 2]),
        Operation::TranslateX => ([0.0; 2], [amount.trunc(), 0.0], middle),
        _ => ([0.0; 2], [0.0, amount.trunc()], middle),
    };
    let [along_x, along_y] = shear;
    let (cos, sin) = ((-along_y).cos(), (-along_y).sin());
    let a = cos / along_y.cos();
    let b = -cos * along_x.tan() / along_y.cos() - 0.0;
    let c = sin / along_y.cos();
    let d = -sin * along_x.tan() / along_y.cos() + 1.0;
    let mut matrix = [d, -b, 0.0, -c, a, 0.0];
    matrix[2] += matrix[0] * (-x - translate[0]) + matrix[1] * (-y - translate[1]);
    matrix[5] += matrix[3] * (-x - translate[0]) + matrix[4] * (-y - translate[1]);
    matrix[2] += x;
    matrix[5] += y;
    matrix
}

/// The pixel of a place, where the image has one.
fn pixel(src: &[Rgb], [height, width]: [usize; 2], x: i64, y: i64) -> Option<Rgb> {
    let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
    if x < width && y < height { src.get(y * width + x).copied() } else { None }
}

/// The whole part, -1 below zero.
fn whole(place: f64) -> i64 {
    if place < 0.0 { -1 } else { place as i64 }
}

/// Rows and columns by themselves; each place is the one before and a step.
fn scaled(src: &[Rgb], dst: &mut [Rgb], size: [usize; 2], matrix: &Matrix) {
    let (height, width) = (size[0], size[1]);
    let mut place = matrix[2] + matrix[0] * 0.5;
    let mut columns = Vec::with_capacity(width);
    for _ in 0..width {
        columns.push(whole(place));
        place += matrix[0];
    }
    let mut place = matrix[5] + matrix[4] * 0.5;
    for row in dst.chunks_exact_mut(width).take(height) {
        for (to, &x) in row.iter_mut().zip(&columns) {
            if let Some(found) = pixel(src, size, x, whole(place)) {
                *to = found;
            }
        }
        place += matrix[4];
    }
}

/// Whether all corners are numbers of 16 bits.
fn is_small([height, width]: [usize; 2], matrix: &Matrix) -> bool {
    let corners = [[0, 0], [width, height], [0, height], [width, 0]];
    corners.iter().all(|corner| {
        let [x, y] = corner.map(|side| side as f64);
        let [to_x, to_y] = [0, 3].map(|i| x * matrix[i] + y * matrix[i + 1] + matrix[i + 2]);
        to_x.abs() < 32_768.0 && to_y.abs() < 32_768.0
    })
}

/// With fractions of 16 bits.
fn fixed(src: &[Rgb], dst: &mut [Rgb], size: [usize; 2], matrix: &Matrix) {
    let fix = |value: f64| (value * ONE + 0.5).floor() as i64;
    let step = [fix(matrix[0]), fix(matrix[1]), fix(matrix[3]), fix(matrix[4])];
    let mut start = [0, 3].map(|i| fix(matrix[i + 2] + matrix[i] * 0.5 + matrix[i + 1] * 0.5));
    for row in dst.chunks_exact_mut(size[1]) {
        let [mut x, mut y] = start;
        for to in row {
            if let Some(found) = pixel(src, size, x >> 16, y >> 16) {
                *to = found;
            }
            x += step[0];
            y += step[2];
        }
        start = [start[0] + step[1], start[1] + step[3]];
    }
}

/// Of images too large for fractions of 16 bits; each place is the one before and a step.
fn nearest(src: &[Rgb], dst: &mut [Rgb], size: [usize; 2], matrix: &Matrix) {
    let mut start = [0, 3].map(|i| matrix[i + 2] + matrix[i] * 0.5 + matrix[i + 1] * 0.5);
    for row in dst.chunks_exact_mut(size[1]) {
        let [mut x, mut y] = start;
        for to in row {
            if let Some(found) = pixel(src, size, whole(x), whole(y)) {
                *to = found;
            }
            x += matrix[0];
            y += matrix[3];
        }
        start = [start[0] + matrix[1], start[1] + matrix[4]];
    }
}

/// Two by two pixels in float64, fractions cut.
fn linear(src: &[Rgb], dst: &mut [Rgb], size: [usize; 2], matrix: &Matrix) {
    let [height, width] = size;
    for (row, to) in dst.chunks_exact_mut(width).enumerate() {
        for (column, to) in to.iter_mut().enumerate() {
            let [x, y] = [column, row].map(|at| at as f64 + 0.5);
            let [x, y] = [0, 3].map(|i| matrix[i] * x + matrix[i + 1] * y + matrix[i + 2]);
            if x < 0.0 || x >= width as f64 || y < 0.0 || y >= height as f64 {
                continue;
            }
            let (x, y) = (x - 0.5, y - 0.5);
            let (left, top) = (x.floor(), y.floor());
            let columns = [left, left + 1.0].map(|at| at.clamp(0.0, (width - 1) as f64) as usize);
            let rows = [top.max(0.0), (top + 1.0).min((height - 1) as f64)].map(|at| at as usize);
            *to = std::array::from_fn(|channel| {
                let between = |y: usize| {
                    let [a, b] = columns.map(|x| f64::from(src[y * width + x][channel]));
                    a + (b - a) * (x - left)
                };
                let [above, below] = rows.map(between);
                (above + (below - above) * (y - top)) as u8
            });
        }
    }
}
