//! Images seen through a projective map, as OpenCV 5 does it on a CPU: places are exact for the types and channels that
//! it has code of its own for, else they lie on a grid of 1/32 of a pixel. It must not know where the map comes from.

mod map;

use multiversion::multiversion;

use super::convert::ConvertSat;
use super::corners::{AT_ONCE, Bytes};
use super::resample::Output;
use super::warp::{LANES, Pixels};
use super::weights::cubic_weights;
use crate::deadline::Watch;
use crate::error::Result;
use crate::tensor::DType;
use map::{Places, on_grid};

pub use map::{Matrix, inverse};

/// Places between two pixels for linear interpolation on the grid.
const GRID: f64 = 32.0;

/// How values between pixels are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampling {
    /// The pixel next to the place.
    Nearest,
    /// The weighted mean of the four pixels around it.
    Linear,
    /// That of sixteen pixels, with the weights of `cubic_weights`.
    Cubic,
}

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
    /// Whether places lie on the grid for [`Sampling::Linear`], and are found in double precision for
    /// [`Sampling::Nearest`].
    pub is_coarse: bool,
}

impl<T: Output + ConvertSat<f32>> View<'_, T> {
    /// Writes rows of `width` pixels.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn run(&self, matrix: &Matrix, dst: &mut [T], width: usize, watch: &Watch<'_>) -> Result<()> {
        let exact = matrix.map(|row| row.map(|value| value as f32));
        bring_near(bytemuck::cast_slice(self.source.values));
        let mut places = Places::of(if self.is_exact() { width } else { 0 });
        for (y, row) in dst.chunks_exact_mut((width * self.source.channels).max(1)).enumerate() {
            if self.is_exact() {
                places.exactly(&exact, y as f32);
                match self.sampling {
                    Sampling::Nearest => nearest(self, &places, row),
                    Sampling::Linear => between(self, &places, row),
                    Sampling::Cubic => of_sixteen(self, &places, row),
                }
            } else {
                on_a_grid(self, matrix, y, row);
            }
            watch.charge(row.len())?;
        }
        Ok(())
    }

    fn is_exact(&self) -> bool {
        self.sampling == Sampling::Cubic || !self.is_coarse
    }

    /// Where the pixel in column `x` and row `y` begins.
    fn start(&self, x: i64, y: i64) -> Option<usize> {
        let [width, height, _] = self.source.size;
        let (x, y) = (self.border.inside(x, width)?, self.border.inside(y, height)?);
        Some((y * width + x) * self.source.channels)
    }

    /// The values of the four pixels from column `x` and row `y` on.
    #[inline(always)]
    fn corners(&self, [x, y]: [i64; 2]) -> impl Fn(usize) -> [f32; 4] {
        let starts = [self.start(x, y), self.start(x + 1, y), self.start(x, y + 1), self.start(x + 1, y + 1)];
        move |c| {
            let mut values = [0.0; 4];
            for (value, &start) in values.iter_mut().zip(&starts) {
                *value = start.map_or(self.fill[c], |start| self.source.values[start + c]).convert_sat();
            }
            values
        }
    }

    /// The sum of the pixels around a place, weighted.
    #[inline(always)]
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
    #[inline(always)]
    fn between(&self, place: [f32; 2], pixel: &mut [T]) {
        let first = place.map(f32::floor);
        let part = [place[0] - first[0], place[1] - first[1]];
        let first = first.map(column_of);
        match self.source.corners(first, pixel.len()) {
            Some(corners) => {
                let values = mixed(&corners, part);
                // All lanes at once, though a pixel may have less.
                let mut converted = [T::from_even(values[0]); LANES];
                for lane in 1..LANES {
                    converted[lane] = T::from_even(values[lane]);
                }
                pixel.copy_from_slice(&converted[..pixel.len()]);
            }
            None => self.between_at_the_edge(first, part, pixel),
        }
    }

    /// The sum of the sixteen pixels around a place, weighted, along x first.
    #[inline(always)]
    fn of_sixteen(&self, [x, y]: [f32; 2], pixel: &mut [T]) {
        let [width, height, _] = self.source.size;
        let place = [not_farther(x, width), not_farther(y, height)];
        let first = place.map(f32::floor);
        let [across, down] = [0, 1].map(|axis| cubic_weights(place[axis] - first[axis]));
        let [x, y] = first.map(column_of);
        let starts: [[_; 4]; 4] = std::array::from_fn(|row| {
            std::array::from_fn(|column| self.start(x - 1 + column as i64, y - 1 + row as i64))
        });
        for (c, to) in pixel.iter_mut().enumerate() {
            let value = |start: Option<usize>| -> f32 {
                start.map_or(self.fill[c], |start| self.source.values[start + c]).convert_sat()
            };
            let line = |starts: &[_; 4]| {
                (1..4).fold(value(starts[0]) * across[0], |sum, i| sum + value(starts[i]) * across[i])
            };
            *to = T::from_even(
                (1..4).fold(line(&starts[0]) * down[0], |sum, i| sum + line(&starts[i]) * down[i]),
            );
        }
    }

    /// [`Self::between`] where a pixel may be outside.
    #[inline(always)]
    fn at_the_edge(&self, [x, y]: [f32; 2], pixel: &mut [T]) {
        /// Farther away, places are not told from one another.
        const END: f32 = 1e30;
        let [width, height, _] = self.source.size.map(|extent| extent as f32);
        let is_number = x.abs() < END && y.abs() < END;
        let is_far = is_number && (x < -1.0 || x >= width || y < -1.0 || y >= height);
        match self.fill.get(..pixel.len()) {
            Some(fill) if is_far && self.border == Border::Constant => pixel.copy_from_slice(fill),
            _ => self.between([x, y], pixel),
        }
    }

    #[inline(never)]
    fn between_at_the_edge(&self, first: [i64; 2], part: [f32; 2], pixel: &mut [T]) {
        let corners = self.corners(first);
        for (c, to) in pixel.iter_mut().enumerate() {
            let [s00, s01, s10, s11] = corners(c);
            let [value] = mixed(&[[s00], [s01], [s10], [s11]], part);
            *to = T::from_even(value);
        }
    }
}

/// The value between four corners, along x first.
#[inline(always)]
fn mixed<const N: usize>([s00, s01, s10, s11]: &[[f32; N]; 4], [px, py]: [f32; 2]) -> [f32; N] {
    let mut mixed = [0.0; N];
    for c in 0..N {
        let (above, below) = (s00[c] + px * (s01[c] - s00[c]), s10[c] + px * (s11[c] - s10[c]));
        mixed[c] = above + py * (below - above);
    }
    mixed
}

/// A column or row; what is no number is far outside.
#[inline(always)]
fn column_of(place: f32) -> i64 {
    i64::from(if place.is_nan() { i32::MIN } else { place as i32 })
}

/// The column or row next to a place, halves to even; what an `i32` cannot hold is far above or to the left, as in C++
/// on x86.
#[inline(always)]
fn next_to(place: f32) -> i64 {
    const END: f32 = 2_147_483_648.0;
    let place = place.round_ties_even();
    if (-END..END).contains(&place) { place as i64 } else { i32::MIN.into() }
}

/// A place in a line of `extent` pixels, so far outside at most: OpenCV repeats an image only so often where it takes
/// sixteen pixels. What is no number is far outside.
#[inline(always)]
fn not_farther(place: f32, extent: usize) -> f32 {
    const LEAST: usize = 16;
    let most = LEAST.max(extent) as f32;
    place.max(-most).min(2.0 * most)
}

/// Writes the pixels at `places` to `row`.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c"
))]
fn between<T: Output + ConvertSat<f32>>(view: &View<'_, T>, places: &Places, row: &mut [T]) {
    let (x, y) = (&places.x, &places.y);
    // With a number of channels that the compiler knows, loops over them disappear.
    match view.source.channels {
        1 if T::DTYPE == DType::U8 => between_bytes::<T, 1>(view, x, y, row),
        3 if T::DTYPE == DType::U8 => between_bytes::<T, 3>(view, x, y, row),
        4 if T::DTYPE == DType::U8 => between_bytes::<T, 4>(view, x, y, row),
        1 => between_each(view, x, y, row, 1),
        3 => between_each(view, x, y, row, 3),
        channels => between_each(view, x, y, row, channels),
    }
}

/// Writes the pixels next to `places` to `row`.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn nearest<T: Output + ConvertSat<f32>>(view: &View<'_, T>, places: &Places, row: &mut [T]) {
    let places = places.x.iter().zip(&places.y);
    for ((&x, &y), pixel) in places.zip(row.chunks_exact_mut(view.source.channels.max(1))) {
        match view.start(next_to(x), next_to(y)) {
            Some(start) => pixel.copy_from_slice(&view.source.values[start..][..pixel.len()]),
            None => pixel.copy_from_slice(&view.fill[..pixel.len()]),
        }
    }
}

/// Writes the pixels at `places` to `row`, each of sixteen.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn of_sixteen<T: Output + ConvertSat<f32>>(view: &View<'_, T>, places: &Places, row: &mut [T]) {
    let places = places.x.iter().zip(&places.y);
    for ((&x, &y), pixel) in places.zip(row.chunks_exact_mut(view.source.channels.max(1))) {
        view.of_sixteen([x, y], pixel);
    }
}

/// Brings a small image into the second cache, line after line, which processors foresee; the places of a map they do
/// not.
fn bring_near(image: &[u8]) {
    const LINE: usize = 64;
    const SMALL: usize = 1 << 20;
    if image.len() <= SMALL {
        let lines = image.chunks(LINE).filter_map(|line| line.first());
        std::hint::black_box(lines.fold(0, |seen, byte| seen | byte));
    }
}

/// Many places at once, and those again that are not inside.
#[inline(always)]
fn between_bytes<T: Output + ConvertSat<f32>, const C: usize>(
    view: &View<'_, T>,
    x: &[f32],
    y: &[f32],
    row: &mut [T],
) {
    let Pixels { values, size, channels } = view.source;
    let image = Pixels { values: bytemuck::cast_slice(values), size, channels };
    let Some(image) = Bytes::<C>::new(image) else { return between_each(view, x, y, row, C) };
    let row = bytemuck::cast_slice_mut::<T, u8>(row).as_chunks_mut::<C>().0;
    for ((x, y), row) in x.chunks(AT_ONCE).zip(y.chunks(AT_ONCE)).zip(row.chunks_mut(AT_ONCE)) {
        if !image.between(x, y, row) {
            for ((&x, &y), pixel) in x.iter().zip(y).zip(row) {
                if !image.is_inside(x, y) {
                    view.at_the_edge([x, y], bytemuck::cast_slice_mut(pixel));
                }
            }
        }
    }
}

#[inline(always)]
fn between_each<T: Output + ConvertSat<f32>>(
    view: &View<'_, T>,
    x: &[f32],
    y: &[f32],
    row: &mut [T],
    channels: usize,
) {
    for ((&x, &y), pixel) in x.iter().zip(y).zip(row.chunks_exact_mut(channels)) {
        view.between([x, y], pixel);
    }
}

/// Writes row `y`, places on the grid or whole pixels.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn on_a_grid<T: Output + ConvertSat<f32>>(view: &View<'_, T>, matrix: &Matrix, y: usize, row: &mut [T]) {
    for (x, pixel) in row.chunks_exact_mut(view.source.channels.max(1)).enumerate() {
        if view.sampling == Sampling::Nearest {
            let [x, y] = on_grid(matrix, x, y, 1.0);
            match view.start(x, y) {
                Some(start) => pixel.copy_from_slice(&view.source.values[start..][..pixel.len()]),
                None => pixel.copy_from_slice(&view.fill[..pixel.len()]),
            }
        } else {
            let place = on_grid(matrix, x, y, GRID);
            let grid = GRID as i64;
            let part = place.map(|place| place.rem_euclid(grid) as f32 / GRID as f32);
            view.weighted(place.map(|place| place.div_euclid(grid)), part, pixel);
        }
    }
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
}
