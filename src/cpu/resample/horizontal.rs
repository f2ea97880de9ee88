//! The horizontal pass: one row of pixels, already float32, to one row of output pixels. It must not know other rows.

use multiversion::multiversion;

use super::filter::Axis;

/// Elements that a row must have beyond its last pixel, to read and to write: pixels are handled four elements at a
/// time.
pub(super) const SLACK: usize = 3;

/// Resamples `line` (pixels of `channels` elements; its first pixel is source coordinate `offset` of `axis`) to `dst`.
/// Both end with [`SLACK`] elements of any value.
///
/// # Panics
/// When a slice is too short.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
pub(super) fn weigh_columns(axis: &Axis, line: &[f32], offset: usize, channels: usize, dst: &mut [f32]) {
    let size = axis.first.len();
    let regular = axis.regular.clone();
    // In ascending order, because the unused lanes of a pixel spill into the next one.
    irregular(axis, 0..regular.start, line, offset, channels, dst);
    match channels {
        1 => pixels::<1, 1>(axis, line, offset, dst),
        2 => pixels::<2, 2>(axis, line, offset, dst),
        3 => pixels::<3, 4>(axis, line, offset, dst),
        4 => pixels::<4, 4>(axis, line, offset, dst),
        _ => many(axis, line, offset, channels, dst),
    }
    irregular(axis, regular.end..size, line, offset, channels, dst);
}

/// Pixels of `C` elements in `L >= C` lanes, the surplus ones being the next pixel's.
#[inline(always)]
fn pixels<const C: usize, const L: usize>(axis: &Axis, line: &[f32], offset: usize, dst: &mut [f32]) {
    let regular = axis.regular.clone();
    let taps = axis.taps;
    let firsts = &axis.first[regular.clone()];
    let weights = axis.weights[regular.start * taps..regular.end * taps].chunks_exact(taps);
    for (i, (&first, weights)) in firsts.iter().zip(weights).enumerate() {
        let x = regular.start + i;
        let start = (first as usize - offset) * C;
        let source = &line[start..start + (taps - 1) * C + L];
        let mut sum = [0.0; L];
        for (pixel, &weight) in source.windows(L).step_by(C).zip(weights) {
            for l in 0..L {
                sum[l] += weight * pixel[l];
            }
        }
        dst[x * C..x * C + L].copy_from_slice(&sum);
    }
}

/// Pixels of any number of elements, four lanes at a time.
#[inline(always)]
fn many(axis: &Axis, line: &[f32], offset: usize, channels: usize, dst: &mut [f32]) {
    for x in axis.regular.clone() {
        let start = axis.source(x, 0) - offset;
        for c in (0..channels).step_by(4) {
            let mut sum = [0.0; 4];
            for (k, &weight) in axis.weights_of(x).iter().enumerate() {
                let pixel = &line[(start + k) * channels + c..][..4];
                for l in 0..4 {
                    sum[l] += weight * pixel[l];
                }
            }
            dst[x * channels + c..][..4].copy_from_slice(&sum);
        }
    }
}

/// Output pixels with taps beyond the edge.
#[inline(always)]
fn irregular(
    axis: &Axis,
    outputs: std::ops::Range<usize>,
    line: &[f32],
    offset: usize,
    channels: usize,
    dst: &mut [f32],
) {
    for x in outputs {
        let dst = &mut dst[x * channels..][..channels];
        dst.fill(0.0);
        for (k, &weight) in axis.weights_of(x).iter().enumerate() {
            let pixel = &line[(axis.source(x, k) - offset) * channels..][..channels];
            for (sum, value) in dst.iter_mut().zip(pixel) {
                *sum += weight * value;
            }
        }
    }
}
