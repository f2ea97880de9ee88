//! torchvision's Gaussian blur: the product of two rows of weights, summed weight by weight with one rounding for
//! product and sum, as torch's convolution of a CPU does; edges are mirrored without their pixel.

use multiversion::multiversion;

use super::{CHANNELS, Rgb};
use crate::error::{Error, Result};

/// Writes `src`, blurred, to `dst`. The numbers of weights are odd.
pub fn blur(src: &[Rgb], dst: &mut [Rgb], width: usize, [columns, rows]: [&[f32]; 2]) -> Result<()> {
    if src.is_empty() {
        return Ok(());
    }
    let (height, around) = (src.len() / width, [rows.len() / 2, columns.len() / 2]);
    if around[0] >= height || around[1] >= width {
        return Err(Error::invalid(format!(
            "an image of {height} x {width} pixels and {} x {} weights, expected less than twice as many weights",
            rows.len(),
            columns.len()
        )));
    }
    let weights: Vec<f32> =
        rows.iter().flat_map(|row| columns.iter().map(move |column| row * column)).collect();
    let padded: Vec<Vec<f32>> =
        (0..height).map(|y| mirrored(&src[y * width..][..width], around[1])).collect();
    let mut sums = vec![0.0; width * CHANNELS];
    for (y, dst) in dst.chunks_exact_mut(width).enumerate() {
        sums.fill(0.0);
        for (i, weights) in weights.chunks_exact(columns.len()).enumerate() {
            add(&mut sums, &padded[mirror(y + i, around[0], height)], weights);
        }
        for (to, sum) in dst.as_flattened_mut().iter_mut().zip(&sums) {
            *to = sum.round_ties_even() as u8;
        }
    }
    Ok(())
}

/// Place `at - before` in a row of `count`, mirrored at its ends.
fn mirror(at: usize, before: usize, count: usize) -> usize {
    let place = at.abs_diff(before);
    place.min(2 * (count - 1) - place.min(2 * (count - 1)))
}

fn mirrored(row: &[Rgb], around: usize) -> Vec<f32> {
    let places = (0..row.len() + 2 * around).map(|x| row[mirror(x, around, row.len())]);
    places.flat_map(|pixel| pixel.map(f32::from)).collect()
}

#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn add(sums: &mut [f32], row: &[f32], weights: &[f32]) {
    for (column, weight) in weights.iter().enumerate() {
        for (sum, level) in sums.iter_mut().zip(&row[column * CHANNELS..]) {
            *sum = level.mul_add(*weight, *sum);
        }
    }
}
