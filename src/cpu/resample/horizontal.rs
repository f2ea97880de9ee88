//! The horizontal pass: a row of pixels to a row of output pixels, or four rows at a time. It must not know which rows.

use multiversion::multiversion;

use super::filter::Axis;

/// Elements that a row must have beyond its last pixel, to read and to write: pixels are handled four elements at a time.
pub(super) const SLACK: usize = 3;

/// Resamples `line` (pixels of `channels` elements; its first pixel is source coordinate `offset` of `axis`) to `dst`.
/// Both end with [`SLACK`] elements of any value.
///
/// # Panics
/// When a slice is too short.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "x86_64+avx+avx2",
    "x86_64+sse4.1"
))]
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

/// Rows that [`weigh_block`] takes at once.
pub(super) const BLOCK: usize = 4;

/// Pixels of a row up to which [`weigh_block`] is worth its memory, 64 bytes a pixel; longer rows leave the cache.
pub(super) const MAX_STACKED: usize = 1 << 14;

/// A pixel of [`BLOCK`] rows, of up to four elements each: a tap of all of them is one multiplication and one addition of
/// the widest vectors there are.
pub(super) type Stack = [f32; 4 * BLOCK];

/// Puts `line`, row `r` of a block, with three or four elements (`C`) a pixel and [`SLACK`] more at the end, into its place
/// of `stacks`. Whole copies of four elements: loops over single ones become slow scatters.
pub(super) fn stack_row<const C: usize>(line: &[f32], r: usize, stacks: &mut [Stack]) {
    for (stack, pixel) in stacks.iter_mut().zip(line.windows(4).step_by(C)) {
        stack[4 * r..4 * r + 4].copy_from_slice(pixel);
    }
}

/// Resamples a block of rows, whose first pixel is source coordinate `offset` of `axis`, to [`BLOCK`] rows of `dst`, each
/// `stride` long and with [`SLACK`] elements of any value at its end. `sums` has a place for each output pixel.
///
/// # Panics
/// When a slice is too short.
#[multiversion(targets(
    "x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl",
    "x86_64+avx+avx2",
    "x86_64+sse4.1"
))]
pub(super) fn weigh_block<const C: usize>(
    axis: &Axis,
    stacks: &[Stack],
    offset: usize,
    sums: &mut [Stack],
    dst: &mut [f32],
    stride: usize,
) {
    let (regular, taps) = (axis.regular.clone(), axis.taps);
    for (x, (weights, sum)) in axis.weights.chunks_exact(taps).zip(&mut *sums).enumerate() {
        *sum = [0.0; 4 * BLOCK];
        if regular.contains(&x) {
            let start = axis.first[x] as usize - offset;
            for (stack, &weight) in stacks[start..start + taps].iter().zip(weights) {
                add(sum, stack, weight);
            }
        } else {
            for (k, &weight) in weights.iter().enumerate() {
                add(sum, &stacks[axis.source(x, k) - offset], weight);
            }
        }
    }

    for (r, row) in dst.chunks_exact_mut(stride).take(BLOCK).enumerate() {
        for (x, sum) in sums.iter().enumerate() {
            row[x * C..x * C + 4].copy_from_slice(&sum[4 * r..4 * r + 4]);
        }
    }
}

#[inline(always)]
fn add(sum: &mut Stack, stack: &Stack, weight: f32) {
    for l in 0..4 * BLOCK {
        sum[l] += weight * stack[l];
    }
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
