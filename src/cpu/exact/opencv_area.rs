//! OpenCV's `INTER_AREA` of bytes where both sides get smaller: means of the pixels under each output. It must not know
//! regions.

use multiversion::multiversion;

use super::axis::Axis;
use super::rows::Rows;
use crate::deadline::Watch;
use crate::error::Result;

/// A pixel of which less than this is under an output takes no part.
const LEAST: f64 = 1e-3;

/// Whole numbers of rows and columns that each output pixel covers, if they are whole.
pub(super) fn whole_scale(image: [usize; 2], size: [usize; 2]) -> Option<[usize; 2]> {
    let mut whole = [0; 2];
    for d in 0..2 {
        let scale = 1.0 / (size[d] as f64 / image[d] as f64);
        whole[d] = scale.round_ties_even() as usize;
        if (scale - whole[d] as f64).abs() >= f64::EPSILON {
            return None;
        }
    }
    Some(whole)
}

/// Whether halves are rounded up: means of 2 x 2 pixels where OpenCV has code for so many channels. All others are
/// rounded to even.
pub(super) fn rounds_up(scale: [usize; 2], channels: usize) -> bool {
    scale == [2, 2] && matches!(channels, 1 | 3 | 4)
}

/// Makes `dst`, rows of `columns` pixels: of each the mean of a whole number of rows and columns.
///
/// # Errors
/// When nobody waits any more.
pub(super) fn whole_means(
    src: &Rows<'_>,
    channels: usize,
    [high, wide]: [usize; 2],
    columns: usize,
    dst: &mut [u8],
    watch: &Watch<'_>,
) -> Result<()> {
    let halves_up = rounds_up([high, wide], channels);
    let share = 1.0 / (high * wide) as f32;
    let mut sums = vec![0_i32; columns * channels];
    for (y, dst) in dst.chunks_exact_mut(columns * channels).enumerate() {
        sums.fill(0);
        for row in (y * high..(y + 1) * high).map(|y| src.row(y)) {
            let pixels = row.chunks_exact(wide * channels);
            for (sums, pixels) in sums.chunks_exact_mut(channels).zip(pixels) {
                for pixel in pixels.chunks_exact(channels) {
                    sums.iter_mut().zip(pixel).for_each(|(sum, &value)| *sum += i32::from(value));
                }
            }
        }
        for (to, &sum) in dst.iter_mut().zip(&sums) {
            *to =
                if halves_up { ((sum + 2) >> 2) as u8 } else { (sum as f32 * share).round_ties_even() as u8 };
        }
        watch.charge(dst.len() * high * wide)?;
    }
    Ok(())
}

/// How much of each pixel is under each output.
pub(super) fn shares(length: usize, outputs: usize) -> Axis<f32> {
    let scale = 1.0 / (outputs as f64 / length as f64);
    let mut axis = Axis::with_capacity(outputs, scale as usize + 2);
    for output in 0..outputs {
        let start = output as f64 * scale;
        let end = start + scale;
        let cell = scale.min(length as f64 - start);
        let last = (end.floor() as usize).min(length - 1);
        let first = (start.ceil() as usize).min(last);
        let before = first as f64 - start > LEAST;
        let head = before.then_some(((first as f64 - start) / cell) as f32);
        let middle = std::iter::repeat_n((1.0 / cell) as f32, last - first);
        let tail =
            (end - last as f64 > LEAST).then(|| ((end - last as f64).min(1.0).min(cell) / cell) as f32);
        axis.push(first - usize::from(before), head.into_iter().chain(middle).chain(tail));
    }
    axis
}

/// Makes `dst`, so many rows and columns: sums of float32.
///
/// # Errors
/// When nobody waits any more.
pub(super) fn means(
    src: &Rows<'_>,
    channels: usize,
    [rows, columns]: [usize; 2],
    dst: &mut [u8],
    watch: &Watch<'_>,
) -> Result<()> {
    let [down, across] = [shares(src.count, rows), shares(src.len / channels, columns)];
    let row_len = columns * channels;
    let (mut line, mut sums) = (vec![0.0; row_len], vec![0.0; row_len]);
    for (y, dst) in dst.chunks_exact_mut(row_len).enumerate() {
        let (first, weights) = down.at(y);
        sums.fill(0.0);
        for (k, &weight) in weights.iter().enumerate() {
            weigh_columns(src.row(first + k), channels, &across, &mut line);
            add(&line, weight, &mut sums);
            watch.charge(src.len)?;
        }
        for (to, sum) in dst.iter_mut().zip(&sums) {
            *to = sum.round_ties_even().clamp(0.0, 255.0) as u8;
        }
    }
    Ok(())
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn add(line: &[f32], weight: f32, sums: &mut [f32]) {
    for (sum, value) in sums.iter_mut().zip(line) {
        *sum += weight * value;
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn weigh_columns(row: &[u8], channels: usize, axis: &Axis<f32>, dst: &mut [f32]) {
    for (x, dst) in dst.chunks_exact_mut(channels).enumerate() {
        let (first, weights) = axis.at(x);
        dst.fill(0.0);
        for (pixel, &weight) in row[first * channels..].chunks_exact(channels).zip(weights) {
            for (sum, &value) in dst.iter_mut().zip(pixel) {
                *sum += f32::from(value) * weight;
            }
        }
    }
}
