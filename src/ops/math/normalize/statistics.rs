//! Mean, deviation and normalisation of one sample along some of its dimensions: pure functions on slices. What
//! operator and what batch they belong to, this module does not know.
//!
//! A parameter is a value of the mean or the scale: there is one for every position in the dimensions that are not
//! reduced. Sums are kept in float64; DALI adds pairs in float32, so results agree to about 1e-6 of the largest term.

use multiversion::multiversion;

use crate::cpu::convert::convert_slice;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::tensor::{Shape, View, ViewMut};

/// Elements that are converted to float32 at once.
const WINDOW: usize = 4096;

/// Least elements in a row of the inner loops: short runs of parameters are repeated until they reach it.
const ROW: usize = 512;

/// How the elements of a sample and the parameters lie to each other.
///
/// The sample is `blocks` of `block` neighbouring elements; element `i` of a block belongs to parameter `i % period` of
/// the parameters of that block.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Arrangement {
    outer: Vec<Dim>,
    block: usize,
    period: usize,
    parameters: usize,
}

/// A dimension of blocks: how many, and how far apart the parameters of neighbours are.
#[derive(Debug, Clone, PartialEq)]
struct Dim {
    extent: usize,
    stride: usize,
}

impl Default for Arrangement {
    /// The arrangement of a sample without elements.
    fn default() -> Self {
        Self { outer: Vec::new(), block: 0, period: 1, parameters: 0 }
    }
}

impl Arrangement {
    /// The arrangement for a sample of shape `shape`, which has elements, of which the dimensions `reduced` are
    /// reduced.
    pub(super) fn new(shape: &Shape, reduced: &[bool]) -> Self {
        // Neighbours that are both reduced, or neither, are one dimension; those of extent 1 belong to any.
        let mut groups: Vec<(usize, bool)> = Vec::new();
        for (&extent, &reduced) in shape.iter().zip(reduced).filter(|&(&extent, _)| extent != 1) {
            match groups.last_mut() {
                Some((size, same)) if *same == reduced => *size *= extent,
                _ => groups.push((extent, reduced)),
            }
        }
        let parameters = groups.iter().filter(|(_, reduced)| !reduced).map(|(extent, _)| extent).product();
        let (mut block, mut period) = (1, 1);
        if let Some((extent, _)) = groups.pop_if(|(_, reduced)| !*reduced) {
            (block, period) = (extent, extent);
        }
        if let Some((extent, _)) = groups.pop_if(|(_, reduced)| *reduced) {
            block *= extent;
        }
        let mut stride = period;
        let mut outer = Vec::with_capacity(groups.len());
        for (extent, reduced) in groups.into_iter().rev() {
            outer.push(Dim { extent, stride: if reduced { 0 } else { stride } });
            stride *= if reduced { 1 } else { extent };
        }
        outer.reverse();
        Self { outer, block, period, parameters }
    }

    /// Number of parameters.
    pub(super) fn parameters(&self) -> usize {
        self.parameters
    }

    /// Elements of a row of the inner loops: whole periods, or the block when it belongs to one parameter.
    fn row(&self) -> usize {
        if self.period == 1 {
            return self.block;
        }
        self.period * (ROW.min(self.block) / self.period).max(1)
    }

    /// The values of one block's parameters, repeated to a row.
    fn repeat(&self, values: &[f32], first: usize, row: &mut [f32]) {
        for to in row.chunks_mut(self.period) {
            to.copy_from_slice(&values[first..first + to.len()]);
        }
    }

    /// Adds `term(x, parameter)` of every element to the sum of its parameter.
    fn add_up(
        &self,
        sample: &View<'_>,
        means: Option<&[f32]>,
        term: impl Fn(f32, f32) -> f64 + Copy,
        sums: &mut [f64],
    ) -> Result<()> {
        let row = self.row();
        let mut walk = Walk::new(self, row);
        if self.period == 1 {
            return for_each_window(sample, |_, window| {
                let mut rest = &*window;
                while let Some(piece) = walk.next(rest.len()) {
                    let (now, later) = rest.split_at(piece.len);
                    rest = later;
                    let mean = means.map_or(0.0, |means| means[piece.first]);
                    sums[piece.first] += sum(now, |x| term(x, mean));
                }
                Ok(())
            });
        }
        let (mut mean, mut lanes) = (vec![0.0; row], vec![0.0; row]);
        let fold = |lanes: &mut [f64], sums: &mut [f64]| {
            for lanes in lanes.chunks_mut(self.period) {
                for (sum, lane) in sums.iter_mut().zip(lanes) {
                    *sum += std::mem::take(lane);
                }
            }
        };
        let mut open = 0;
        for_each_window(sample, |_, window| {
            let mut rest = &*window;
            while let Some(piece) = walk.next(rest.len()) {
                let (now, later) = rest.split_at(piece.len);
                rest = later;
                if piece.begins {
                    fold(&mut lanes, &mut sums[open..]);
                    open = piece.first;
                    if let Some(means) = means {
                        self.repeat(means, piece.first, &mut mean);
                    }
                }
                sum_each(&mut lanes[piece.phase..], now, &mean[piece.phase..], term);
            }
            Ok(())
        })?;
        fold(&mut lanes, &mut sums[open..]);
        Ok(())
    }

    /// Adds the elements of `sample` to the sums of their parameters.
    ///
    /// # Errors
    /// Internal, when the sample's bytes do not fit its shape.
    pub(super) fn add_elements(&self, sample: &View<'_>, sums: &mut [f64]) -> Result<()> {
        self.add_up(sample, None, |x, _| f64::from(x), sums)
    }

    /// Adds the squares of the elements' distances from `means`.
    ///
    /// # Errors
    /// As [`Arrangement::add_elements`].
    pub(super) fn add_squares(&self, sample: &View<'_>, means: &[f32], sums: &mut [f64]) -> Result<()> {
        let square = |x: f32, mean: f32| {
            let distance = f64::from(x) - f64::from(mean);
            distance * distance
        };
        self.add_up(sample, Some(means), square, sums)
    }

    /// Writes `(x - mean) * scale + shift` of every element to `output`, by the saturating conversion of its type.
    ///
    /// # Errors
    /// As [`Arrangement::add_elements`].
    pub(super) fn normalize(
        &self,
        sample: &View<'_>,
        parameters: &Parameters,
        shift: f32,
        output: &mut ViewMut<'_>,
    ) -> Result<()> {
        let row = self.row();
        let repeated = if self.period == 1 { 0 } else { row };
        let (mut mean, mut scale) = (vec![0.0; repeated], vec![0.0; repeated]);
        let mut walk = Walk::new(self, row);
        for_each_window(sample, |start, window| {
            let mut rest = &mut *window;
            while let Some(piece) = walk.next(rest.len()) {
                let (now, later) = rest.split_at_mut(piece.len);
                rest = later;
                if self.period == 1 {
                    let (mean, scale) = (parameters.means[piece.first], parameters.scales[piece.first]);
                    normalize_all(now, mean, scale, shift);
                    continue;
                }
                if piece.begins {
                    self.repeat(&parameters.means, piece.first, &mut mean);
                    self.repeat(&parameters.scales, piece.first, &mut scale);
                }
                normalize_each(now, &mean[piece.phase..], &scale[piece.phase..], shift);
            }
            dispatch!(output.dtype, T => {
                let out = output.as_slice_mut::<T>()?.get_mut(start..start + window.len());
                convert_slice::<f32, T>(window, out.ok_or_else(too_short)?);
            });
            Ok(())
        })
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn normalize_all(values: &mut [f32], mean: f32, scale: f32, shift: f32) {
    values.iter_mut().for_each(|x| *x = (*x - mean) * scale + shift);
}

/// The same with parameters of its own for every value.
#[multiversion(targets("x86_64+avx+avx2"))]
fn normalize_each(values: &mut [f32], means: &[f32], scales: &[f32], shift: f32) {
    for ((x, mean), scale) in values.iter_mut().zip(means).zip(scales) {
        *x = (*x - mean) * scale + shift;
    }
}

/// Adds `term` of every value and its mean to the value's own sum.
#[multiversion(targets("x86_64+avx+avx2"))]
fn sum_each<F: Fn(f32, f32) -> f64>(sums: &mut [f64], values: &[f32], means: &[f32], term: F) {
    for ((sum, &x), &mean) in sums.iter_mut().zip(values).zip(means) {
        *sum += term(x, mean);
    }
}

/// The sum of `term` over `values`, in several sums side by side: a single one would wait for every addition.
#[multiversion(targets("x86_64+avx+avx2"))]
fn sum<F: Fn(f32) -> f64>(values: &[f32], term: F) -> f64 {
    const LANES: usize = 16;
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for row in rows {
        for (lane, &x) in lanes.iter_mut().zip(row) {
            *lane += term(x);
        }
    }
    let rest: f64 = rest.iter().map(|&x| term(x)).sum();
    if rows.is_empty() { rest } else { lanes.iter().sum::<f64>() + rest }
}

/// Goes through the elements of a sample in order, a part of a row of a block at a time.
struct Walk<'a> {
    arrangement: &'a Arrangement,
    row: usize,
    /// Of the block at hand, in the outer dimensions.
    index: Vec<usize>,
    /// Its first parameter.
    first: usize,
    /// Elements of it that are done.
    done: usize,
}

/// Elements that are handled at once: part of a row.
struct Piece {
    len: usize,
    /// First parameter of the block.
    first: usize,
    /// Place of the first element in its row.
    phase: usize,
    /// Whether a new block begins here.
    begins: bool,
}

impl<'a> Walk<'a> {
    fn new(arrangement: &'a Arrangement, row: usize) -> Self {
        Self { arrangement, row, index: vec![0; arrangement.outer.len()], first: 0, done: 0 }
    }

    /// The next piece, of at most `available` elements; `None` when there are none.
    fn next(&mut self, available: usize) -> Option<Piece> {
        if available == 0 {
            return None;
        }
        if self.done == self.arrangement.block {
            self.next_block();
        }
        let phase = self.done % self.row;
        let len = (self.row - phase).min(self.arrangement.block - self.done).min(available);
        let piece = Piece { len, first: self.first, phase, begins: self.done == 0 };
        self.done += len;
        Some(piece)
    }

    fn next_block(&mut self) {
        self.done = 0;
        for (index, dim) in self.index.iter_mut().zip(&self.arrangement.outer).rev() {
            *index += 1;
            self.first += dim.stride;
            if *index < dim.extent {
                return;
            }
            self.first -= dim.extent * dim.stride;
            *index = 0;
        }
    }
}

/// Calls `f` for every [`WINDOW`] elements of `sample`, as float32, with the number of the first.
fn for_each_window(sample: &View<'_>, mut f: impl FnMut(usize, &mut [f32]) -> Result<()>) -> Result<()> {
    let elements = sample.shape.volume()?;
    let mut window = vec![0.0; WINDOW.min(elements)];
    for start in (0..elements).step_by(WINDOW) {
        let window = &mut window[..WINDOW.min(elements - start)];
        dispatch!(sample.dtype, T => {
            let elements = sample.as_slice::<T>()?.get(start..start + window.len());
            convert_slice::<T, f32>(elements.ok_or_else(too_short)?, window);
        });
        f(start, window)?;
    }
    Ok(())
}

fn too_short() -> Error {
    Error::internal("a sample has fewer elements than its shape")
}

/// What is subtracted and what is multiplied by, per parameter.
#[derive(Debug, Clone, Default)]
pub(super) struct Parameters {
    pub(super) means: Vec<f32>,
    pub(super) scales: Vec<f32>,
}

/// How deviations become scales.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scaling {
    /// What the scale is multiplied by.
    pub(super) scale: f32,
    /// Added to the variance.
    pub(super) epsilon: f32,
    /// Subtracted from the number of elements.
    pub(super) ddof: i64,
}

/// The mean of `elements` elements.
pub(super) fn mean(sum: f64, elements: usize) -> f32 {
    (sum / elements as f64) as f32
}

impl Scaling {
    /// The scale for a sum of squared distances of `elements` elements. Elements that do not differ get 0.
    pub(super) fn of_squares(&self, sum: f64, elements: usize) -> f32 {
        let degrees = elements as f64 - self.ddof as f64;
        // Without a degree of freedom only epsilon is left.
        self.of_variance(if degrees > 0.0 { sum / degrees } else { 0.0 })
    }

    /// The scale for a given standard deviation; infinite for 0 without an epsilon.
    pub(super) fn of_deviation(&self, deviation: f32) -> f32 {
        if self.epsilon == 0.0 {
            return self.scale / deviation;
        }
        self.of_variance(f64::from(deviation) * f64::from(deviation))
    }

    fn of_variance(&self, variance: f64) -> f32 {
        let variance = variance + f64::from(self.epsilon);
        if variance == 0.0 { 0.0 } else { (f64::from(self.scale) / variance.sqrt()) as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, Layout};

    /// Sums along every set of dimensions of shapes with extents of one and longer than a window.
    #[test]
    fn sums_belong_to_their_parameters() {
        for shape in
            [vec![2, 3, 4, 5], vec![3, 1, 70], vec![5000, 3], vec![2, 5000], vec![2, 3, 4100], vec![]]
        {
            let shape = Shape::from(shape);
            let strides = shape.strides();
            let values: Vec<f32> = (0..shape.volume().unwrap()).map(|i| (i * 7919 % 1013) as f32).collect();
            let bytes = bytemuck::cast_slice(&values);
            let sample = View { dtype: DType::F32, layout: Layout::NONE, shape: &shape, bytes };
            for mask in 0..1 << shape.len() {
                let reduced: Vec<bool> = (0..shape.len()).map(|d| mask >> d & 1 == 1).collect();
                let kept = |d: &usize| !reduced[*d];
                let parameter = |i: usize| {
                    (0..shape.len()).filter(kept).fold(0, |at, d| at * shape[d] + i / strides[d] % shape[d])
                };
                let arrangement = Arrangement::new(&shape, &reduced);
                let count: usize = (0..shape.len()).filter(kept).map(|d| shape[d]).product();
                assert_eq!(arrangement.parameters(), count);

                let mut expected = vec![0.0; count];
                values.iter().enumerate().for_each(|(i, &x)| expected[parameter(i)] += f64::from(x));
                let mut sums = vec![0.0; count];
                arrangement.add_elements(&sample, &mut sums).unwrap();
                assert_eq!(sums, expected, "{shape} {reduced:?}");

                let means: Vec<f32> = (0..count).map(|i| i as f32).collect();
                let parameters = Parameters { scales: vec![2.0; count], means };
                let mut out = vec![0.0f32; values.len()];
                let bytes = bytemuck::cast_slice_mut(&mut out);
                let mut output = ViewMut { dtype: DType::F32, layout: Layout::NONE, shape: &shape, bytes };
                arrangement.normalize(&sample, &parameters, 1.0, &mut output).unwrap();
                let expected = values.iter().enumerate().map(|(i, x)| (x - parameter(i) as f32) * 2.0 + 1.0);
                assert!(out.iter().copied().eq(expected), "{shape} {reduced:?}");
            }
        }
    }

    #[test]
    fn scales_of_nothing_are_zero() {
        let scaling = Scaling { scale: 3.0, epsilon: 0.0, ddof: 2 };
        assert_eq!(scaling.of_squares(0.0, 10), 0.0);
        assert_eq!(scaling.of_squares(5.0, 2), 0.0);
        assert_eq!(scaling.of_squares(18.0, 4), 1.0);
        assert_eq!(Scaling { epsilon: 0.25, ..scaling }.of_squares(5.0, 2), 6.0);
        assert_eq!(scaling.of_deviation(0.0), f32::INFINITY);
    }
}
