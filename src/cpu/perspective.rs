//! Images seen through a projective map, as OpenCV 5 does it on a CPU: places are exact for the types and channels that it has
//! code of its own for, else they lie on a grid of 1/32 of a pixel. It must not know where the map comes from.

use super::convert::ConvertSat;
use super::resample::Output;
use super::warp::{Pixels, Sampling};

/// Places between two pixels for linear interpolation on the grid.
const GRID: f64 = 32.0;

/// From homogeneous coordinates of the output to those of the source, pixel centers at integers.
pub type Matrix = [[f64; 3]; 3];

/// What lies outside of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Border {
    /// A value for each channel.
    Constant,
    /// The pixels at the edge.
    Replicate,
    /// The image mirrored, edge pixels twice.
    Reflect,
    /// The image mirrored at its edge pixels.
    Reflect101,
    /// The image again.
    Wrap,
}

impl Border {
    /// Where `place` is in a line of `extent` pixels; `None` when it is outside and stays there.
    fn inside(self, place: i64, extent: usize) -> Option<usize> {
        let last = extent as i64 - 1;
        if (0..=last).contains(&place) {
            return Some(place as usize);
        }
        let mirrored = |period: i64, end: i64| {
            let place = place.rem_euclid(period);
            place.min(end - place)
        };
        Some(match self {
            Border::Constant => return None,
            Border::Replicate => place.clamp(0, last),
            Border::Wrap => place.rem_euclid(last + 1),
            Border::Reflect => mirrored(2 * (last + 1), 2 * last + 1),
            Border::Reflect101 if last == 0 => 0,
            Border::Reflect101 => mirrored(2 * last, 2 * last),
        } as usize)
    }
}

/// An image to look at, and how.
pub struct View<'a, T> {
    /// The image: a volume of one plane.
    pub source: Pixels<'a, T>,
    /// How values between pixels are found.
    pub sampling: Sampling,
    /// What lies outside.
    pub border: Border,
    /// The value of each channel outside, for [`Border::Constant`].
    pub fill: &'a [T],
    /// Whether places lie on the grid.
    pub is_coarse: bool,
}

impl<T: Output + ConvertSat<f32>> View<'_, T> {
    /// Writes rows of `width` pixels.
    pub fn run(&self, matrix: &Matrix, dst: &mut [T], width: usize) {
        let channels = self.source.channels;
        let exact = matrix.map(|row| row.map(|value| value as f32));
        for (y, row) in dst.chunks_exact_mut((width * channels).max(1)).enumerate() {
            for (x, pixel) in row.chunks_exact_mut(channels).enumerate() {
                match self.sampling {
                    Sampling::Nearest => {
                        let [x, y] = on_grid(matrix, x, y, 1.0);
                        let start = self.start(x, y);
                        for (c, to) in pixel.iter_mut().enumerate() {
                            *to = start.map_or(self.fill[c], |start| self.source.values[start + c]);
                        }
                    }
                    Sampling::Linear if self.is_coarse => {
                        let place = on_grid(matrix, x, y, GRID);
                        let grid = GRID as i64;
                        let part = place.map(|place| place.rem_euclid(grid) as f32 / GRID as f32);
                        self.weighted(place.map(|place| place.div_euclid(grid)), part, pixel);
                    }
                    Sampling::Linear => self.between(exactly(&exact, x as f32, y as f32), pixel),
                }
            }
        }
    }

    /// Where the pixel in column `x` and row `y` begins.
    fn start(&self, x: i64, y: i64) -> Option<usize> {
        let [width, height, _] = self.source.size;
        let (x, y) = (self.border.inside(x, width)?, self.border.inside(y, height)?);
        Some((y * width + x) * self.source.channels)
    }

    /// The values of the four pixels from column `x` and row `y` on.
    fn corners(&self, [x, y]: [i64; 2]) -> impl Fn(usize) -> [f32; 4] {
        let starts = [[x, y], [x + 1, y], [x, y + 1], [x + 1, y + 1]].map(|[x, y]| self.start(x, y));
        move |c| {
            starts
                .map(|start| start.map_or(self.fill[c], |start| self.source.values[start + c]).convert_sat())
        }
    }

    /// The sum of the pixels around a place, weighted.
    fn weighted(&self, first: [i64; 2], [px, py]: [f32; 2], pixel: &mut [T]) {
        let corners = self.corners(first);
        let weights = [(1.0 - px) * (1.0 - py), px * (1.0 - py), (1.0 - px) * py, px * py];
        for (c, to) in pixel.iter_mut().enumerate() {
            let values = corners(c);
            let sum = (1..4).fold(values[0] * weights[0], |sum, i| sum + values[i] * weights[i]);
            // Bytes are summed in fixed point, which rounds halves up.
            *to = if size_of::<T>() == 1 { T::from_away(sum) } else { T::from_even(sum) };
        }
    }

    /// The value at a place, along x first.
    fn between(&self, place: [f32; 2], pixel: &mut [T]) {
        let first = place.map(f32::floor);
        let [px, py] = [place[0] - first[0], place[1] - first[1]];
        let corners = self.corners(first.map(|place| whole(f64::from(place))));
        for (c, to) in pixel.iter_mut().enumerate() {
            let [s00, s01, s10, s11] = corners(c);
            let (above, below) = (s00 + px * (s01 - s00), s10 + px * (s11 - s10));
            *to = T::from_even(above + py * (below - above));
        }
    }
}

/// A coordinate as an integer; what is no number is far outside.
fn whole(place: f64) -> i64 {
    if place.is_nan() { i64::from(i32::MIN) } else { place.clamp(i32::MIN.into(), i32::MAX.into()) as i64 }
}

/// Where a pixel is taken from, in parts of which a pixel has `parts`.
fn on_grid(matrix: &Matrix, x: usize, y: usize, parts: f64) -> [i64; 2] {
    let [u, v, w] = matrix.map(|row| row[0] * x as f64 + row[1] * y as f64 + row[2]);
    let scale = if w == 0.0 { 0.0 } else { parts / w };
    [u, v].map(|place| whole((place * scale).round_ties_even()))
}

fn exactly(matrix: &[[f32; 3]; 3], x: f32, y: f32) -> [f32; 2] {
    let [u, v, w] = matrix.map(|row| row[0] * x + (row[1] * y + row[2]));
    [u / w, v / w]
}

/// The map that undoes `matrix`; `None` when there is none.
pub fn inverse(matrix: &Matrix) -> Option<Matrix> {
    let m = |row: usize, column: usize| matrix[row % 3][column % 3];
    let cofactor = |i: usize, k: usize| m(i + 1, k + 1) * m(i + 2, k + 2) - m(i + 1, k + 2) * m(i + 2, k + 1);
    let determinant: f64 = (0..3).map(|k| m(0, k) * cofactor(0, k)).sum();
    let inverted = std::array::from_fn(|i| std::array::from_fn(|k| cofactor(k, i) / determinant));
    (determinant != 0.0 && determinant.is_finite()).then_some(inverted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_continue_a_line() {
        let line = |border: Border| (-4..8).map(|i| border.inside(i, 3)).collect::<Vec<_>>();
        let all = |places: [usize; 12]| places.map(Some).to_vec();
        assert_eq!(line(Border::Replicate), all([0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2]));
        assert_eq!(line(Border::Wrap), all([2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1]));
        assert_eq!(line(Border::Reflect), all([2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1]));
        assert_eq!(line(Border::Reflect101), all([0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1]));
        assert_eq!(Border::Reflect101.inside(-9, 1), Some(0));
        assert_eq!(Border::Constant.inside(3, 3), None);
    }

    #[test]
    fn an_inverse_leads_back() {
        let matrix = [[1.0, 0.5, 3.0], [0.25, 2.0, -1.0], [0.01, 0.02, 1.0]];
        let back = inverse(&matrix).unwrap();
        for (i, row) in matrix.iter().enumerate() {
            for k in 0..3 {
                let product: f64 = row.iter().zip(&back).map(|(value, column)| value * column[k]).sum();
                assert!((product - f64::from(u8::from(i == k))).abs() < 1e-12);
            }
        }
        assert!(inverse(&[[0.0; 3]; 3]).is_none());
    }
}
