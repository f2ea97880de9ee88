//! OpenCV's `resize` of bytes with `INTER_LINEAR` and `INTER_CUBIC`: 2 or 4 weights of 11 bits for each row and column.
//! It must not know regions.

use multiversion::multiversion;

use super::rows::Rows;
use crate::deadline::Watch;
use crate::error::Result;

/// One in OpenCV's weights.
const ONE: f32 = 2048.0;

/// Elements that OpenCV's code for vectors of 16 bytes makes at once of four rows; it rounds otherwise than the code
/// for those that remain.
pub(super) const AT_ONCE: usize = 8;

/// What an axis is resampled by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kernel {
    Linear,
    /// What `INTER_AREA` does where an axis gets larger.
    LinearOfArea,
    Cubic,
}

/// For each output the pixel before it, and the weights of those around it: the first two of linear ones are used.
pub(super) type Taps = Vec<(i64, [i32; 4])>;

impl Kernel {
    /// Weights of an output.
    pub(super) fn taps(self) -> usize {
        if self == Self::Cubic { 4 } else { 2 }
    }

    /// The first pixel that has a weight, by the one before the output. It may lie outside of the image, whose edge
    /// stands for it then.
    pub(super) fn first(self, place: i64) -> i64 {
        place - (self.taps() as i64 / 2 - 1)
    }
}

/// The weights along rows.
pub(super) fn weights_across(width: usize, columns: usize, kernel: Kernel) -> Taps {
    let mut across = weights(width, columns, kernel);
    if kernel != Kernel::Cubic {
        // Beyond the edges there is one pixel, and it has all of the weight.
        for (place, weights) in &mut across {
            if *place < 0 || *place >= width as i64 - 1 {
                *place = (*place).clamp(0, width as i64 - 1);
                *weights = [ONE as i32, 0, 0, 0];
            }
        }
    }
    across
}

/// The weights along columns.
pub(super) fn weights(length: usize, outputs: usize, kernel: Kernel) -> Taps {
    let inverse = outputs as f64 / length as f64;
    let scale = 1.0 / inverse;
    let of = |i: usize| {
        let (place, part) = match kernel {
            Kernel::LinearOfArea => {
                let place = (i as f64 * scale).floor();
                let part = ((i + 1) as f64 - (place + 1.0) * inverse) as f32;
                (place, if part <= 0.0 { 0.0 } else { part - part.floor() })
            }
            _ => {
                let place = ((i as f64 + 0.5) * scale - 0.5) as f32;
                (f64::from(place.floor()), place - place.floor())
            }
        };
        let weights = if kernel == Kernel::Cubic { cubic(part) } else { [1.0 - part, part, 0.0, 0.0] };
        (place as i64, weights.map(|weight| (weight * ONE).round_ties_even() as i32))
    };
    (0..outputs).map(of).collect()
}

/// Keys' convolution with a = -0.75.
fn cubic(x: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let first = ((A * (x + 1.0) - 5.0 * A) * (x + 1.0) + 8.0 * A) * (x + 1.0) - 4.0 * A;
    let (second, third) = (near(x), near(1.0 - x));
    [first, second, third, 1.0 - first - second - third]
}

/// Memory that can be used again.
#[derive(Default)]
pub(super) struct Lines {
    /// Rows after the horizontal pass; row `y` is in slot `y % 4`.
    values: Vec<i32>,
}

impl Lines {
    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<i32>()
    }
}

/// Makes `dst`, so many rows and columns.
///
/// # Errors
/// When nobody waits any more.
pub(super) fn resize(
    src: &Rows<'_>,
    channels: usize,
    [rows, columns]: [usize; 2],
    kernel: Kernel,
    dst: &mut [u8],
    lines: &mut Lines,
    watch: &Watch<'_>,
) -> Result<()> {
    let (height, width) = (src.count, src.len / channels);
    let (across, taps) = (weights_across(width, columns, kernel), kernel.taps());
    let row_len = columns * channels;
    let values = &mut lines.values;
    values.clear();
    values.resize(taps * row_len, 0);
    let mut held = [None; 4];
    for ((place, weights), dst) in
        weights(height, rows, kernel).into_iter().zip(dst.chunks_exact_mut(row_len))
    {
        let first = kernel.first(place);
        let sources: [usize; 4] =
            std::array::from_fn(|k| (first + k as i64).clamp(0, height as i64 - 1) as usize);
        for &y in &sources[..taps] {
            if held[y % taps] != Some(y) {
                held[y % taps] = Some(y);
                weigh_columns(
                    src.row(y),
                    channels,
                    &across,
                    taps,
                    &mut values[y % taps * row_len..][..row_len],
                );
            }
        }
        let row = |k: usize| &values[sources[k] % taps * row_len..][..row_len];
        match kernel {
            Kernel::Cubic => cubic_rows([0, 1, 2, 3].map(row), weights, dst),
            _ => linear_rows([0, 1].map(row), [weights[0], weights[1]], dst),
        }
        watch.charge(dst.len() * taps)?;
    }
    Ok(())
}

fn weigh_columns(row: &[u8], channels: usize, across: &[(i64, [i32; 4])], taps: usize, dst: &mut [i32]) {
    match (channels, taps) {
        (1, 2) => weigh_pixels::<1, 2>(row, across, dst),
        (3, 2) => weigh_pixels::<3, 2>(row, across, dst),
        (4, 2) => weigh_pixels::<4, 2>(row, across, dst),
        (1, _) => weigh_pixels::<1, 4>(row, across, dst),
        (3, _) => weigh_pixels::<3, 4>(row, across, dst),
        (4, _) => weigh_pixels::<4, 4>(row, across, dst),
        _ => weigh_any(row, channels, across, taps, dst),
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn weigh_pixels<const C: usize, const T: usize>(row: &[u8], across: &[(i64, [i32; 4])], dst: &mut [i32]) {
    let pixels = row.as_chunks::<C>().0;
    let last = pixels.len() as i64 - 1;
    for ((place, weights), dst) in across.iter().zip(dst.as_chunks_mut::<C>().0) {
        let first = place - (T as i64 / 2 - 1);
        let mut sums = [0; C];
        for (k, weight) in weights.iter().enumerate().take(T) {
            let pixel = &pixels[(first + k as i64).clamp(0, last) as usize];
            for (sum, &value) in sums.iter_mut().zip(pixel) {
                *sum += weight * i32::from(value);
            }
        }
        *dst = sums;
    }
}

fn weigh_any(row: &[u8], channels: usize, across: &[(i64, [i32; 4])], taps: usize, dst: &mut [i32]) {
    let last = (row.len() / channels) as i64 - 1;
    for ((place, weights), dst) in across.iter().zip(dst.chunks_exact_mut(channels)) {
        let first = place - (taps as i64 / 2 - 1);
        dst.fill(0);
        for (k, weight) in weights.iter().enumerate().take(taps) {
            let pixel = &row[(first + k as i64).clamp(0, last) as usize * channels..][..channels];
            for (sum, &value) in dst.iter_mut().zip(pixel) {
                *sum += weight * i32::from(value);
            }
        }
    }
}

/// Sums lose bits before they are added: products of 16 bits are cut to their upper half.
#[multiversion(targets("x86_64+avx+avx2"))]
fn linear_rows([above, below]: [&[i32]; 2], [a, b]: [i32; 2], dst: &mut [u8]) {
    for ((to, above), below) in dst.iter_mut().zip(above).zip(below) {
        let sum = ((a * (above >> 4)) >> 16) + ((b * (below >> 4)) >> 16);
        *to = ((sum + 2) >> 2).clamp(0, 255) as u8;
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn cubic_rows(rows: [&[i32]; 4], weights: [i32; 4], dst: &mut [u8]) {
    let (vectors, _) = dst.as_chunks_mut::<AT_ONCE>();
    let whole = vectors.len() * AT_ONCE;
    let scaled = weights.map(|weight| weight as f32 * (1.0 / (ONE * ONE)));
    for (x, to) in dst[..whole].iter_mut().enumerate() {
        let product = |k: usize| rows[k][x] as f32 * scaled[k];
        let sum = product(0) + (product(1) + (product(2) + product(3)));
        *to = sum.round_ties_even().clamp(0.0, 255.0) as u8;
    }
    for (x, to) in dst.iter_mut().enumerate().skip(whole) {
        let sum = (0..4).fold(1_i32 << 21, |sum, k| sum.wrapping_add(rows[k][x].wrapping_mul(weights[k])));
        *to = (sum >> 22).clamp(0, 255) as u8;
    }
}
