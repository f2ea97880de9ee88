//! The horizontal pass of four rows of pixels of three or four elements at once: a vector holds one pixel of each. Sums
//! are those of the pass over one row. It must not know which rows are wanted.
//!
//! ```text
//! row a, b, c, d       a0 a0 a0 a1 a1 a1 ...
//! pixels               a0 a0 a0 -- b0 b0 b0 -- c0 c0 c0 -- d0 d0 d0 -- | a1 ...
//! sums                 the same, for each output pixel
//! ```

use bytemuck::Pod;
use multiversion::multiversion;

use super::filter::Axis;
use crate::cpu::convert::ConvertSat;

/// Rows that are taken at once.
pub(super) const ROWS: usize = 4;
/// Elements that a pixel takes between the rows and the sums.
const LANES: usize = 4;
/// Sums that are made before they are spread: they stay in the first cache.
const BLOCK: usize = 32;

/// One pixel of each row.
type Pixels<S> = [[S; LANES]; ROWS];

/// Whether the pass over one row should be left for this one: elsewhere a pixel fills a vector by itself.
pub(super) fn is_faster(channels: usize) -> bool {
    matches!(channels, 3 | 4) && has_long_vectors()
}

#[cfg(target_arch = "x86_64")]
fn has_long_vectors() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_long_vectors() -> bool {
    false
}

/// Memory that [`weigh_columns`] needs for rows of so many pixels of `S`, in units of [`u64`].
pub(super) fn room<S>(pixels: usize) -> usize {
    let widened = if size_of::<S>() == 1 { size_of::<Pixels<S>>() } else { 0 };
    pixels.saturating_mul(size_of::<Pixels<S>>() + widened).div_ceil(size_of::<u64>())
}

/// Resamples `rows`, whose first pixels are source coordinate `offset` of `axis`, to `out`: a row of output pixels
/// after the other, `stride` elements apart. `between` is memory of [`room`].
///
/// # Panics
/// When a slice is too short.
pub(super) fn weigh_columns<S: ConvertSat<f32> + Pod>(
    axis: &Axis,
    rows: [&[S]; ROWS],
    offset: usize,
    channels: usize,
    between: &mut [u64],
    (out, stride): (&mut [f32], usize),
) {
    if channels == 3 {
        gather::<S, 3>(rows, between);
    } else {
        gather::<S, 4>(rows, between);
    }
    let between = &bytemuck::cast_slice(between)[..rows[0].len() / channels * LANES * ROWS];
    let pixels = between.as_chunks::<LANES>().0.as_chunks::<ROWS>().0;
    if channels == 3 {
        weigh::<S, 3>(axis, pixels, offset, out, stride);
    } else {
        weigh::<S, 4>(axis, pixels, offset, out, stride);
    }
}

/// Puts the pixels of rows beside one another.
fn gather<S: Pod, const C: usize>(rows: [&[S]; ROWS], between: &mut [u64]) {
    let count = rows[0].len() / C;
    if size_of::<S>() > 1 {
        let pixels = &mut bytemuck::cast_slice_mut(between)[..count * LANES * ROWS];
        return gather_elements::<S, C>(rows, pixels.as_chunks_mut().0.as_chunks_mut().0);
    }
    // A pixel of bytes is a number, which is moved as a whole.
    let (pixels, wide) = bytemuck::cast_slice_mut(between).split_at_mut(count * ROWS);
    let [a, b, c, d] = rows.map(bytemuck::cast_slice);
    let (wide_a, wide) = wide.split_at_mut(count);
    let (wide_b, wide) = wide.split_at_mut(count);
    let (wide_c, wide_d) = wide.split_at_mut(count);
    for (row, wide) in [(a, &mut *wide_a), (b, &mut *wide_b), (c, &mut *wide_c), (d, &mut *wide_d)] {
        widen::<C>(row, wide);
    }
    interleave([wide_a, wide_b, wide_c, wide_d], pixels);
}

/// Pixels of `C` bytes as numbers; what is in the surplus byte is of no account.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn widen<const C: usize>(row: &[u8], wide: &mut [u32]) {
    let mut done = 0;
    if C == 3 {
        // Four pixels at once, and one byte of the next.
        for (to, from) in wide.as_chunks_mut::<4>().0.iter_mut().zip(row.windows(13).step_by(12)) {
            let number = |i: usize| u32::from_ne_bytes([from[i], from[i + 1], from[i + 2], from[i + 3]]);
            *to = [number(0), number(3), number(6), number(9)];
            done += 4;
        }
    }
    for (to, from) in wide[done..].iter_mut().zip(row[done * C..].chunks_exact(C)) {
        let mut bytes = [0; LANES];
        bytes[..C].copy_from_slice(from);
        *to = u32::from_ne_bytes(bytes);
    }
}

#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn interleave([a, b, c, d]: [&[u32]; ROWS], pixels: &mut [u32]) {
    let pixels = pixels.as_chunks_mut::<ROWS>().0;
    for ((((to, &a), &b), &c), &d) in pixels.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *to = [a, b, c, d];
    }
}

#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn gather_elements<S: Pod, const C: usize>(rows: [&[S]; ROWS], pixels: &mut [Pixels<S>]) {
    let count = pixels.len();
    for (r, row) in rows.into_iter().enumerate() {
        // With one element of the next pixel, but for the last.
        for (to, from) in pixels.iter_mut().zip(row.windows(LANES).step_by(C)) {
            to[r].copy_from_slice(from);
        }
        if let (Some(to), Some(from)) = (pixels.last_mut(), row.get((count - 1) * C..)) {
            to[r][..C].copy_from_slice(&from[..C]);
        }
    }
}

/// Sums of pixels, spread over the rows.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn weigh<S: ConvertSat<f32>, const C: usize>(
    axis: &Axis,
    pixels: &[Pixels<S>],
    offset: usize,
    out: &mut [f32],
    stride: usize,
) {
    let (size, taps) = (axis.first.len(), axis.taps);
    let mut sums = [[[0.0; LANES]; ROWS]; BLOCK];
    for from in (0..size).step_by(BLOCK) {
        let sums = &mut sums[..BLOCK.min(size - from)];
        for (x, to) in (from..).zip(sums.iter_mut()) {
            let weights = &axis.weights[x * taps..][..taps];
            if axis.regular.contains(&x) {
                let pixels = &pixels[axis.first[x] as usize - offset..][..taps];
                *to = sum(pixels.iter().zip(weights));
            } else {
                let pixels = (0..taps).map(|k| &pixels[axis.source(x, k) - offset]);
                *to = sum(pixels.zip(weights));
            }
        }
        for (row, out) in out.chunks_mut(stride).take(ROWS).enumerate() {
            // In ascending order, because the unused lanes of a pixel spill into the next one.
            let out = &mut out[from * C..][..(sums.len() - 1) * C + LANES];
            for (x, sum) in sums.iter().enumerate() {
                out[x * C..][..LANES].copy_from_slice(&sum[row]);
            }
        }
    }
}

/// Pixels times their weights, added in order; every product and sum rounded to float32.
#[inline(always)]
fn sum<'p, S: ConvertSat<f32> + 'p>(pixels: impl Iterator<Item = (&'p Pixels<S>, &'p f32)>) -> Pixels<f32> {
    let mut sum = [0.0; LANES * ROWS];
    for (pixels, &weight) in pixels {
        let pixels = pixels.as_flattened();
        for l in 0..LANES * ROWS {
            sum[l] += weight * pixels[l].convert_sat();
        }
    }
    let (rows, _) = sum.as_chunks::<LANES>();
    [rows[0], rows[1], rows[2], rows[3]]
}

#[cfg(test)]
mod tests {
    use super::super::filter::{Axis, FilterSpec, Window};
    use super::super::horizontal;
    use super::*;
    use crate::cpu::convert::convert_slice;

    fn check<S: ConvertSat<f32> + Pod>(channels: usize, value: impl Fn(usize) -> S) {
        let filter = FilterSpec::default();
        for (length, size, roi) in [
            (1_usize, 1_usize, (0.0_f32, 1.0)),
            (3, 7, (0.0, 3.0)),
            (500, 224, (0.0, 500.0)),
            (333, 50, (-20.0, 340.5)),
            (64, 33, (64.0, 0.0)),
            (129, 300, (10.25, 90.5)),
        ] {
            let window = Window::new(filter, (roi.1 - roi.0).abs(), size);
            let axis = Axis::new(window.as_ref(), length, size, roi.0, (roi.1 - roi.0) / size as f32, false)
                .unwrap();
            let rows: [Vec<S>; ROWS] =
                std::array::from_fn(|row| (0..length * channels).map(|i| value(i * ROWS + row)).collect());
            let stride = size * channels + horizontal::SLACK;
            let needed = axis.needed.clone();
            let cut = rows.each_ref().map(|row| &row[needed.start * channels..needed.end * channels]);
            let mut between = vec![0; room::<S>(needed.len())];
            let mut found = vec![0.0; ROWS * stride];
            weigh_columns(&axis, cut, needed.start, channels, &mut between, (&mut found, stride));
            for (row, found) in cut.iter().zip(found.chunks(stride)) {
                let mut line = vec![0.0; row.len() + horizontal::SLACK];
                convert_slice(row, &mut line[..row.len()]);
                let mut expected = vec![0.0; stride];
                horizontal::weigh_columns(&axis, &line, needed.start, channels, &mut expected);
                let (found, expected) = (&found[..size * channels], &expected[..size * channels]);
                assert_eq!(found, expected, "{length} to {size} pixels of {channels}");
            }
        }
    }

    #[test]
    fn four_rows_are_those_of_one_by_one() {
        for channels in [3, 4] {
            check(channels, |i| ((i * 7_919) >> 3) as u8);
            check(channels, |i| (i * 7_919) as i16);
            check(channels, |i| (i as f32).sin());
        }
    }
}
