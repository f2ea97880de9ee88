//! torchvision's arithmetic of float32, as it runs on a CPU: weights, products and sums are float32. The result is
//! rounded to a byte, halves to even. It must not know sizes other than those of an axis.
//!
//! Whether a product is rounded before it is added depends on its place ([`sums`]), as torch's code for CPUs does it.

use multiversion::multiversion;

use super::axis::Axis;
use super::rows::Rows;
use crate::deadline::Watch;
use crate::error::Result;

/// An element of such an image.
pub(super) trait Pixel: Copy + Into<f32> {
    /// Of a sum.
    fn of(sum: f32) -> Self;
}

impl Pixel for u8 {
    #[inline(always)]
    fn of(sum: f32) -> Self {
        sum.clamp(0.0, 255.0).round_ties_even() as u8
    }
}

impl Pixel for f32 {
    #[inline(always)]
    fn of(sum: f32) -> Self {
        sum
    }
}

/// Elements of a row that are summed up together.
const LANES: usize = 32;

/// Of the products behind the first one so many at a time are rounded before they are added. The others are not.
const ROUNDED: usize = 4;

/// The sums of the values that `at` gives for each weight, times that weight.
#[inline(always)]
fn sums<const N: usize>(weights: &[f32], at: impl Fn(usize) -> [f32; N]) -> [f32; N] {
    let mut sums = [0.0; N];
    let rounded = weights.len().saturating_sub(1) / ROUNDED * ROUNDED;
    for (k, &weight) in weights.iter().enumerate() {
        let values = at(k);
        for i in 0..N {
            sums[i] = match k {
                0 => values[i] * weight,
                _ if k <= rounded => sums[i] + values[i] * weight,
                _ => values[i].mul_add(weight, sums[i]),
            };
        }
    }
    sums
}

/// The weights of every output of a line of `length` pixels. `cubic`: Keys' convolution, otherwise a triangle.
pub(super) fn weights(length: usize, outputs: usize, cubic: bool) -> Axis<f32> {
    let scale = length as f32 / outputs as f32;
    let stretched = scale >= 1.0;
    let half = if cubic { 2.0 } else { 1.0 };
    let reach = if stretched { (half * f64::from(scale)) as f32 } else { half as f32 };
    let shrink = if stretched { (1.0 / f64::from(scale)) as f32 } else { 1.0 };
    let most = reach.ceil() as i64 * 2 + 1;
    let mut axis = Axis::with_capacity(outputs, length.min(most as usize));
    for output in 0..outputs {
        let center = (f64::from(scale) * (output as f64 + 0.5)) as f32;
        let first = ((f64::from(center - reach) + 0.5) as i64).max(0);
        let end = ((f64::from(center + reach) + 0.5) as i64).min(length as i64);
        let weight = |i: i64| {
            let place = (f64::from((i + first) as f32 - center) + 0.5) * f64::from(shrink);
            let distance = (place as f32).abs();
            if cubic { bicubic(distance) } else { (1.0 - distance).max(0.0) }
        };
        let weights = axis.push(first as usize, (0..(end - first).clamp(0, most)).map(weight));
        let sum = weights.iter().fold(0.0, |sum, weight| sum + weight);
        if sum != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= sum);
        }
    }
    axis
}

/// Keys' convolution with a = -0.5.
fn bicubic(x: f32) -> f32 {
    const A: f32 = -0.5;
    if x < 1.0 {
        let inner = (A + 2.0).mul_add(x, -(A + 3.0));
        (inner * x).mul_add(x, 1.0)
    } else if x < 2.0 {
        let inner = A.mul_add(x, -5.0 * A).mul_add(x, 8.0 * A);
        inner.mul_add(x, -4.0 * A)
    } else {
        0.0
    }
}

/// Makes `dst` of rows of floats, each as `axis` says, of pixels of `channels` elements.
///
/// # Errors
/// When nobody waits any more.
pub(super) fn across<T: Pixel>(
    src: &Rows<'_, T>,
    channels: usize,
    axis: &Axis<f32>,
    dst: &mut [f32],
    watch: &Watch<'_>,
) -> Result<()> {
    for (y, dst) in dst.chunks_exact_mut(axis.len() * channels).enumerate() {
        weigh_columns(src.row(y), channels, axis, dst);
        watch.charge(dst.len())?;
    }
    Ok(())
}

#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn weigh_columns<T: Pixel>(row: &[T], channels: usize, axis: &Axis<f32>, dst: &mut [f32]) {
    match channels {
        1 => pixels::<1, T>(row, axis, dst),
        3 => pixels::<3, T>(row, axis, dst),
        4 => pixels::<4, T>(row, axis, dst),
        _ => {
            for (x, dst) in dst.chunks_exact_mut(channels).enumerate() {
                let (first, weights) = axis.at(x);
                for (c, to) in dst.iter_mut().enumerate() {
                    [*to] = sums(weights, |k| [row[(first + k) * channels + c].into()]);
                }
            }
        }
    }
}

/// Pixels of `C` elements.
#[inline(always)]
fn pixels<const C: usize, T: Pixel>(row: &[T], axis: &Axis<f32>, dst: &mut [f32]) {
    let pixels = row.as_chunks::<C>().0;
    for (x, to) in dst.as_chunks_mut::<C>().0.iter_mut().enumerate() {
        let (first, weights) = axis.at(x);
        let pixels = &pixels[first..][..weights.len()];
        *to = sums(weights, |k| pixels[k].map(T::into));
    }
}

/// Makes `dst` of the rows of `src`, each `row_len` floats, as `axis` says.
///
/// # Errors
/// When nobody waits any more.
pub(super) fn down<T: Pixel>(
    src: &[f32],
    row_len: usize,
    axis: &Axis<f32>,
    dst: &mut [T],
    watch: &Watch<'_>,
) -> Result<()> {
    for (y, dst) in dst.chunks_exact_mut(row_len).enumerate() {
        let (first, weights) = axis.at(y);
        weigh_rows(&src[first * row_len..], weights, dst);
        watch.charge(dst.len() * weights.len())?;
    }
    Ok(())
}

#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn weigh_rows<T: Pixel>(src: &[f32], weights: &[f32], dst: &mut [T]) {
    let row_len = dst.len();
    let (lanes, rest) = dst.as_chunks_mut::<LANES>();
    let whole = row_len - rest.len();
    for (i, to) in lanes.iter_mut().enumerate() {
        let at =
            |k: usize| src[k * row_len + i * LANES..].first_chunk::<LANES>().copied().unwrap_or([0.0; LANES]);
        *to = sums(weights, at).map(T::of);
    }
    for (x, to) in rest.iter_mut().enumerate() {
        let [sum] = sums(weights, |k| [src[k * row_len + whole + x]]);
        *to = T::of(sum);
    }
}
