//! Weighted sums of neighbours: along one dimension, or over a rectangle. It must not know where weights come from.
//! Sums are float32, in the order of the weights, products rounded one by one.

use multiversion::multiversion;

use super::convert::ConvertSat;
use crate::deadline::Watch;
use crate::error::Result;

/// One dimension of a dense tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Along {
    /// Elements along it.
    pub extent: usize,
    /// Elements of the dimensions behind it.
    pub inner: usize,
}

/// Elements of a sum that are added up together: few enough to stay in the nearest cache.
const CHUNK: usize = 2048;

/// Elements that are added up in the time of one that is worked on alone, and those that take as long as fewer.
const SUMMED_AT_ONCE: usize = 4;
const SHORT: usize = 32;

/// Nanoseconds of an element of a sum, and of the sum of a short run of them.
const ELEMENT_TIME: f64 = 0.2;
const RUN_TIME: f64 = 5.0;

impl Along {
    /// Nanoseconds that [`convolve`] takes over so many elements in all, by a window of so many weights.
    pub fn nanoseconds(self, elements: usize, weights: usize) -> f64 {
        let Self { extent, inner } = self;
        let positions = elements as f64 / (inner.max(1) as f64);
        // Beyond the ends each position is summed by itself.
        let alone = (weights as f64 / extent.max(1) as f64).min(1.0);
        let runs =
            positions * alone + (1.0 - alone) * elements as f64 / CHUNK.min(extent * inner).max(1) as f64;
        weights as f64 * (runs * RUN_TIME + elements as f64 * ELEMENT_TIME)
    }
}

/// Writes to `dst` the sums over `window`, of odd length and centered, along one dimension of `src`. Beyond its ends
/// the dimension is mirrored, its end elements once.
///
/// # Errors
/// When nobody waits any more.
pub fn convolve<S: ConvertSat<f32>>(
    src: &[S],
    dst: &mut [f32],
    along: Along,
    window: &[f32],
    watch: &Watch<'_>,
) -> Result<()> {
    let Along { extent, inner } = along;
    let block = extent * inner;
    if block == 0 {
        return Ok(());
    }
    let radius = window.len() / 2;
    // From here to there every neighbour is inside.
    let first = radius.min(extent);
    let last = extent.saturating_sub(radius).max(first);
    for (src, dst) in src.chunks_exact(block).zip(dst.chunks_exact_mut(block)) {
        for at in (0..first).chain(last..extent) {
            let dst = &mut dst[at * inner..][..inner];
            dst.fill(0.0);
            for (k, &weight) in window.iter().enumerate() {
                let from = mirrored(at as i64 + k as i64 - radius as i64, extent as i64);
                add_weighted(dst, &src[from * inner..][..inner], weight);
            }
            // A sum of few elements takes as long as one of some more.
            watch.charge(window.len().saturating_mul(inner.max(SHORT) / SUMMED_AT_ONCE))?;
        }
        for (i, dst) in dst[first * inner..last * inner].chunks_mut(CHUNK).enumerate() {
            dst.fill(0.0);
            for (k, &weight) in window.iter().enumerate() {
                let from = (first - radius + k) * inner + i * CHUNK;
                add_weighted(dst, &src[from..][..dst.len()], weight);
            }
            watch.charge(window.len().saturating_mul(dst.len().max(SHORT) / SUMMED_AT_ONCE))?;
        }
    }
    Ok(())
}

/// Buffers of a separable sum: the result, and what comes before it.
#[derive(Debug, Default)]
pub struct Scratch {
    result: Vec<f32>,
    spare: Vec<f32>,
}

impl Scratch {
    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        (self.result.capacity() + self.spare.capacity()) * size_of::<f32>()
    }

    /// The sums over one window for each of the dimensions `extents` of `src`, whose elements have `inner` channels
    /// each; the innermost dimension first.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn separable<S: ConvertSat<f32>>(
        &mut self,
        src: &[S],
        extents: &[usize],
        inner: usize,
        windows: &[Vec<f32>],
        watch: &Watch<'_>,
    ) -> Result<&[f32]> {
        self.result.resize(src.len(), 0.0);
        self.spare.resize(src.len(), 0.0);
        let mut along = Along { extent: 1, inner };
        for (i, (&extent, window)) in extents.iter().zip(windows).rev().enumerate() {
            along.inner *= along.extent;
            along.extent = extent;
            if i == 0 {
                convolve(src, &mut self.result, along, window, watch)?;
            } else {
                convolve(&self.result, &mut self.spare, along, window, watch)?;
                std::mem::swap(&mut self.result, &mut self.spare);
            }
        }
        Ok(&self.result)
    }
}

/// Where position `at` is in a dimension of `extent`, mirrored at its ends.
fn mirrored(at: i64, extent: i64) -> usize {
    let period = (2 * extent - 2).max(1);
    let at = at.rem_euclid(period);
    at.min(period - at) as usize
}

/// Adds `src`, each element multiplied by `weight`, to `dst`.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn add_weighted<S: ConvertSat<f32>>(dst: &mut [f32], src: &[S], weight: f32) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to += weight * from.convert_sat();
    }
}

/// An image with interleaved channels, larger than the output by the rectangle of weights less one.
#[derive(Debug, Clone, Copy)]
pub struct Padded<'a, S> {
    /// The elements.
    pub values: &'a [S],
    /// Elements of a row.
    pub pitch: usize,
    /// Channels of a pixel.
    pub channels: usize,
}

/// The sums over the rectangle `weights` with `columns` columns whose first element is where the element written is.
/// `write` gets them in pieces, and where in rows of `width` each begins. Weights of zero are left out.
///
/// # Errors
/// Those of `write`, at once.
pub fn correlate<S: ConvertSat<f32>>(
    source: Padded<'_, S>,
    width: usize,
    weights: &[f32],
    columns: usize,
    mut write: impl FnMut(usize, &[f32]) -> Result<()>,
) -> Result<()> {
    let Padded { values, pitch, channels } = source;
    let rows = weights.len().checked_div(columns).unwrap_or(0);
    if width == 0 || rows == 0 || pitch == 0 {
        return Ok(());
    }
    let tile = (NEAR / rows).next_multiple_of(SUMS).max(SUMS);
    let halo = (columns - 1) * channels;
    // The rows that lie under the rectangle as float32, each in the place of one that does not any more: an element is
    // converted once, not once for each weight.
    let mut ring = vec![0.0; rows * (tile + halo)];
    let mut weighted = Vec::with_capacity(weights.len());
    let mut sums = vec![0.0; tile.min(width)];
    for x in (0..width).step_by(tile) {
        let sums = &mut sums[..tile.min(width - x)];
        let wide = sums.len() + halo;
        for (y, row) in values.chunks_exact(pitch).enumerate() {
            let Some(row) = row.get(x..x + wide) else { return Ok(()) };
            convert_row(row, &mut ring[y % rows * wide..][..wide]);
            let Some(first) = (y + 1).checked_sub(rows) else { continue };
            weighted.clear();
            weighted.extend(
                weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0).map(|(k, &weight)| {
                    ((first + k / columns) % rows * wide + k % columns * channels, weight)
                }),
            );
            correlate_row(&ring, sums, &weighted);
            write(first * width + x, sums)?;
        }
    }
    Ok(())
}

#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn convert_row<S: ConvertSat<f32>>(src: &[S], dst: &mut [f32]) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to = from.convert_sat();
    }
}

/// Sums that are kept in registers while all weights are gone through.
const SUMS: usize = 64;

/// Elements under a rectangle that stay in the first cache (16 kB), less what is beside them. A whole row of an image
/// of 500 pixels in colour, five times, does not: that took a third longer.
pub const NEAR: usize = 4096;

/// Writes the sums of the elements of `src` that each of `weights` says are so far away, multiplied by the weight.
#[multiversion(targets("x86_64+avx+avx2+avx512f", "x86_64+avx+avx2"))]
fn correlate_row(src: &[f32], dst: &mut [f32], weights: &[(usize, f32)]) {
    let Some(last) = dst.len().checked_sub(SUMS) else {
        for (i, to) in dst.iter_mut().enumerate() {
            let at = |start| src.get(start + i).copied().unwrap_or_default();
            *to = weights.iter().fold(0.0, |sum, &(start, weight)| sum + weight * at(start));
        }
        return;
    };
    // What the last ones have in common with those before is computed twice.
    for first in (0..last).step_by(SUMS).chain([last]) {
        let mut sums = [0.0; SUMS];
        for &(start, weight) in weights {
            let from = src.get(start + first..).and_then(|from| from.first_chunk::<SUMS>());
            if let Some(from) = from {
                for k in 0..SUMS {
                    sums[k] += weight * from[k];
                }
            }
        }
        dst[first..][..SUMS].copy_from_slice(&sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wider_than_the_input_are_mirrored_again_and_again() {
        let mut out = [0.0; 2];
        let watch = Watch::forever();
        convolve(&[1.0f32, 3.0], &mut out, Along { extent: 2, inner: 1 }, &[1.0; 7], &watch).unwrap();
        // 3 1 3 [1] 3 1 3 and 1 3 1 [3] 1 3 1
        assert_eq!(out, [15.0, 13.0]);
        convolve(&[5u8, 7], &mut out, Along { extent: 1, inner: 2 }, &[0.25, 0.5, 0.25], &watch).unwrap();
        assert_eq!(out, [5.0, 7.0]);
    }

    #[test]
    fn rectangles_of_any_height_and_rows_of_any_width() {
        for (rows, width) in [(1, 3), (2, 64), (3, 70), (3, 3_000), (NEAR + 1, 5)] {
            let (columns, channels, height) = (2, 3, 2);
            let pitch = width + channels;
            let values: Vec<f32> = (0..pitch * (height + rows - 1)).map(|i| (i % 7) as f32).collect();
            let weights: Vec<f32> = (0..rows * columns).map(|i| (i % 3) as f32).collect();
            let mut found = vec![0.0; height * width];
            let source = Padded { values: &values, pitch, channels };
            correlate(source, width, &weights, columns, |at, sums| {
                found[at..][..sums.len()].copy_from_slice(sums);
                Ok(())
            })
            .unwrap();
            for (i, found) in found.into_iter().enumerate() {
                let at =
                    |k: usize| values[(i / width + k / columns) * pitch + i % width + k % columns * channels];
                assert_eq!(found, weights.iter().enumerate().map(|(k, weight)| weight * at(k)).sum::<f32>());
            }
        }
    }

    #[test]
    fn long_runs_agree_with_short_ones() {
        let src: Vec<f32> = (0..3 * 5000).map(|i| (i % 17) as f32).collect();
        let mut out = vec![0.0; src.len()];
        let along = Along { extent: 5000, inner: 3 };
        convolve(&src, &mut out, along, &[1.0, 2.0, 1.0], &Watch::forever()).unwrap();
        for i in [2500, 4000, 9000] {
            assert_eq!(out[i], src[i - 3] + 2.0 * src[i] + src[i + 3]);
        }
    }
}
