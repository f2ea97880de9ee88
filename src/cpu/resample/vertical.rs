//! The vertical pass: one output row as a weighted sum of source rows. It must not know where rows come from.

use multiversion::multiversion;

use crate::cpu::convert::ConvertSat;

/// Writes to `dst` the sum of the rows of `src` that start at `starts`, each as long as `dst` and multiplied by its
/// weight; added in order, every product and sum rounded to float32.
///
/// # Panics
/// When a row does not lie inside of `src`.
#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
pub(super) fn weigh_rows<S: ConvertSat<f32>>(src: &[S], starts: &[usize], weights: &[f32], dst: &mut [f32]) {
    let mut fresh = true;
    for (starts, weights) in starts.chunks(4).zip(weights.chunks(4)) {
        match (starts, weights) {
            (&[a, b, c, d], &[e, f, g, h]) => add(src, [a, b, c, d], [e, f, g, h], dst, fresh),
            (&[a, b, c], &[e, f, g]) => add(src, [a, b, c], [e, f, g], dst, fresh),
            (&[a, b], &[e, f]) => add(src, [a, b], [e, f], dst, fresh),
            (&[a, ..], &[e, ..]) => add(src, [a], [e], dst, fresh),
            _ => {}
        }
        fresh = false;
    }
}

/// Adds `N` weighted rows to `dst`, or starts with them when `fresh`. Four rows at once halve the traffic to `dst`.
#[inline(always)]
fn add<S: ConvertSat<f32>, const N: usize>(
    src: &[S],
    starts: [usize; N],
    weights: [f32; N],
    dst: &mut [f32],
    fresh: bool,
) {
    let n = dst.len();
    let rows: [&[S]; N] = starts.map(|start| &src[start..][..n]);
    if fresh {
        for i in 0..n {
            dst[i] = (1..N).fold(weights[0] * rows[0][i].convert_sat(), |sum, k| {
                sum + weights[k] * rows[k][i].convert_sat()
            });
        }
    } else {
        for i in 0..n {
            dst[i] = (0..N).fold(dst[i], |sum, k| sum + weights[k] * rows[k][i].convert_sat());
        }
    }
}
