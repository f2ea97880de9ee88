//! Weighted sums of neighbours: along one dimension, or over a rectangle. It must not know where weights come from. Sums are
//! float32, in the order of the weights, products rounded one by one.

use multiversion::multiversion;

use super::convert::ConvertSat;

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

/// Writes to `dst` the sums over `window`, of odd length and centered, along one dimension of `src`. Beyond its ends the
/// dimension is mirrored, its end elements once.
pub fn convolve<S: ConvertSat<f32>>(src: &[S], dst: &mut [f32], along: Along, window: &[f32]) {
    let Along { extent, inner } = along;
    let block = extent * inner;
    if block == 0 {
        return;
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
        }
        for (i, dst) in dst[first * inner..last * inner].chunks_mut(CHUNK).enumerate() {
            dst.fill(0.0);
            for (k, &weight) in window.iter().enumerate() {
                let from = (first - radius + k) * inner + i * CHUNK;
                add_weighted(dst, &src[from..][..dst.len()], weight);
            }
        }
    }
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

    /// The sums over one window for each of the dimensions `extents` of `src`, whose elements have `inner` channels each; the
    /// innermost dimension first.
    pub fn separable<S: ConvertSat<f32>>(
        &mut self,
        src: &[S],
        extents: &[usize],
        inner: usize,
        windows: &[Vec<f32>],
    ) -> &[f32] {
        self.result.resize(src.len(), 0.0);
        self.spare.resize(src.len(), 0.0);
        let mut along = Along { extent: 1, inner };
        for (i, (&extent, window)) in extents.iter().zip(windows).rev().enumerate() {
            along.inner *= along.extent;
            along.extent = extent;
            if i == 0 {
                convolve(src, &mut self.result, along, window);
            } else {
                convolve(&self.result, &mut self.spare, along, window);
                std::mem::swap(&mut self.result, &mut self.spare);
            }
        }
        &self.result
    }
}

/// Where position `at` is in a dimension of `extent`, mirrored at its ends.
fn mirrored(at: i64, extent: i64) -> usize {
    let period = (2 * extent - 2).max(1);
    let at = at.rem_euclid(period);
    at.min(period - at) as usize
}

/// Adds `src`, each element multiplied by `weight`, to `dst`.
#[multiversion(targets("x86_64+avx+avx2+f16c", "x86_64+sse4.1"))]
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

/// Writes to `dst`, rows of `width` elements, the sums over the rectangle `weights` with `columns` columns whose first element
/// is where the element written is. Weights of zero are left out.
pub fn correlate<S: ConvertSat<f32>>(
    source: Padded<'_, S>,
    dst: &mut [f32],
    width: usize,
    weights: &[f32],
    columns: usize,
) {
    if width == 0 || columns == 0 {
        return;
    }
    let weighted: Vec<(usize, f32)> = weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight != 0.0)
        .map(|(k, &weight)| (k / columns * source.pitch + k % columns * source.channels, weight))
        .collect();
    for (y, row) in dst.chunks_exact_mut(width).enumerate() {
        correlate_row(source.values.get(y * source.pitch..).unwrap_or_default(), row, &weighted);
    }
}

/// Sums that are kept in registers while all weights are gone through.
const SUMS: usize = 64;

/// Writes the sums of the elements of `src` that each of `weights` says are so far away, multiplied by the weight.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl+f16c",
    "x86_64+avx+avx2+f16c",
    "x86_64+sse4.1"
))]
fn correlate_row<S: ConvertSat<f32>>(src: &[S], dst: &mut [f32], weights: &[(usize, f32)]) {
    let (parts, rest) = dst.as_chunks_mut::<SUMS>();
    let done = parts.len() * SUMS;
    for (i, part) in parts.iter_mut().enumerate() {
        let mut sums = [0.0; SUMS];
        for &(start, weight) in weights {
            let from = src.get(start + i * SUMS..).and_then(|from| from.first_chunk::<SUMS>());
            if let Some(from) = from {
                for k in 0..SUMS {
                    sums[k] += weight * from[k].convert_sat();
                }
            }
        }
        *part = sums;
    }
    for (i, to) in rest.iter_mut().enumerate() {
        let at = |start| src.get(start + done + i).map_or(0.0, |&from| S::convert_sat(from));
        *to = weights.iter().fold(0.0, |sum, &(start, weight)| sum + weight * at(start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wider_than_the_input_are_mirrored_again_and_again() {
        let mut out = [0.0; 2];
        convolve(&[1.0f32, 3.0], &mut out, Along { extent: 2, inner: 1 }, &[1.0; 7]);
        // 3 1 3 [1] 3 1 3 and 1 3 1 [3] 1 3 1
        assert_eq!(out, [15.0, 13.0]);
        convolve(&[5u8, 7], &mut out, Along { extent: 1, inner: 2 }, &[0.25, 0.5, 0.25]);
        assert_eq!(out, [5.0, 7.0]);
    }

    #[test]
    fn long_runs_agree_with_short_ones() {
        let src: Vec<f32> = (0..3 * 5000).map(|i| (i % 17) as f32).collect();
        let mut out = vec![0.0; src.len()];
        convolve(&src, &mut out, Along { extent: 5000, inner: 3 }, &[1.0, 2.0, 1.0]);
        for i in [2500, 4000, 9000] {
            assert_eq!(out[i], src[i - 3] + 2.0 * src[i] + src[i + 3]);
        }
    }
}
