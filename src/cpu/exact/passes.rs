//! The two passes over pixels of bytes: sums of integer weights, of rows or of columns, each rounded to a byte. Sums
//! are exact, so their order does not matter. They must not know where weights come from.

use multiversion::multiversion;

use super::axis::Axis;
use super::rows::Rows;
use super::turn::{LINES, turn, turn_back};
use crate::deadline::Watch;
use crate::error::Result;

/// Elements of a row that are summed up together.
const LANES: usize = 64;

/// A sum in fixed point as a byte.
#[inline(always)]
fn byte(sum: i32, bits: u32) -> u8 {
    (sum >> bits).clamp(0, 255) as u8
}

/// Sums as bytes. A loop, not `map`: that one is a function of its own, which takes no wide vectors.
#[inline(always)]
fn bytes<const N: usize>(sums: &[i32; N], bits: u32) -> [u8; N] {
    let mut made = [0; N];
    for i in 0..N {
        made[i] = byte(sums[i], bits);
    }
    made
}

/// Makes each row of `dst`, as long as those of `src`, of the rows that `axis` names.
///
/// # Errors
/// When nobody waits any more.
///
/// # Panics
/// When a row is not in `src`.
pub(super) fn down(
    src: &Rows<'_>,
    axis: &Axis<i32>,
    bits: u32,
    dst: &mut [u8],
    watch: &Watch<'_>,
) -> Result<()> {
    for (y, dst) in dst.chunks_exact_mut(src.len).enumerate() {
        let (first, weights) = axis.at(y);
        weigh_rows(&src.from(first), weights, bits, dst);
        watch.charge(dst.len() * weights.len())?;
    }
    Ok(())
}

#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn weigh_rows(src: &Rows<'_>, weights: &[i32], bits: u32, dst: &mut [u8]) {
    let whole = dst.len() / LANES * LANES;
    let (lanes, rest) = dst.split_at_mut(whole);
    for (i, dst) in lanes.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut sums = [1_i32 << (bits - 1); LANES];
        for (k, &weight) in weights.iter().enumerate() {
            let Some(row) = src.row(k)[i * LANES..].first_chunk::<LANES>() else { continue };
            add(&mut sums, row, weight);
        }
        *dst = bytes(&sums, bits);
    }
    let mut sums = [1_i32 << (bits - 1); LANES];
    for (k, &weight) in weights.iter().enumerate() {
        for (sum, &value) in sums.iter_mut().zip(&src.row(k)[whole..]) {
            *sum = sum.wrapping_add(weight.wrapping_mul(i32::from(value)));
        }
    }
    for (to, sum) in rest.iter_mut().zip(sums) {
        *to = byte(sum, bits);
    }
}

/// Memory of [`across`] that can be used again.
#[derive(Default)]
pub(super) struct Turned {
    source: Vec<[u8; LINES]>,
    made: Vec<[u8; LINES]>,
}

impl Turned {
    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        (self.source.capacity() + self.made.capacity()) * LINES
    }
}

/// Makes of each of `rows` rows of `src` a row of `dst`, with pixels of `channels` elements as `axis` says.
///
/// Some rows at a time are turned, so that the same element of all of them lies together. Then all numbers of channels
/// are alike, and a weight is one for all lanes of a vector.
///
/// # Errors
/// When nobody waits any more.
///
/// # Panics
/// When a pixel is not in `src`.
pub(super) fn across(
    src: &Rows<'_>,
    channels: usize,
    axis: &Axis<i32>,
    bits: u32,
    dst: &mut [u8],
    turned: &mut Turned,
    watch: &Watch<'_>,
) -> Result<()> {
    let row_len = axis.len() * channels;
    let Turned { source, made } = turned;
    source.resize(src.len, [0; LINES]);
    made.resize(row_len, [0; LINES]);
    for (block, dst) in dst.chunks_mut(LINES * row_len).enumerate() {
        let rows = dst.len() / row_len;
        turn(&src.from(block * LINES), source);
        weigh_columns(source, channels, axis, bits, made);
        turn_back(made, rows, dst);
        watch.charge(dst.len())?;
    }
    Ok(())
}

#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn weigh_columns(
    source: &[[u8; LINES]],
    channels: usize,
    axis: &Axis<i32>,
    bits: u32,
    made: &mut [[u8; LINES]],
) {
    match channels {
        1 => pixels::<LINES>(source, axis, bits, made),
        2 => pixels::<{ 2 * LINES }>(source, axis, bits, made),
        3 => pixels::<{ 3 * LINES }>(source, axis, bits, made),
        4 => pixels::<{ 4 * LINES }>(source, axis, bits, made),
        _ => many(source, channels, axis, bits, made),
    }
}

/// Pixels of `N` bytes in all lines together. One flat array of sums, since compilers keep nested ones in memory.
#[inline(always)]
fn pixels<const N: usize>(source: &[[u8; LINES]], axis: &Axis<i32>, bits: u32, made: &mut [[u8; LINES]]) {
    let source = source.as_flattened().as_chunks::<N>().0;
    for (x, made) in made.as_flattened_mut().as_chunks_mut::<N>().0.iter_mut().enumerate() {
        let (first, weights) = axis.at(x);
        let mut sums = [1_i32 << (bits - 1); N];
        for (pixel, &weight) in source[first..].iter().zip(weights) {
            add(&mut sums, pixel, weight);
        }
        *made = bytes(&sums, bits);
    }
}

/// Pixels of any number of elements.
#[inline(always)]
fn many(source: &[[u8; LINES]], channels: usize, axis: &Axis<i32>, bits: u32, made: &mut [[u8; LINES]]) {
    for (x, made) in made.chunks_exact_mut(channels).enumerate() {
        let (first, weights) = axis.at(x);
        for (c, made) in made.iter_mut().enumerate() {
            let mut sums = [1_i32 << (bits - 1); LINES];
            for (pixel, &weight) in source[first * channels..].chunks_exact(channels).zip(weights) {
                add(&mut sums, &pixel[c], weight);
            }
            *made = bytes(&sums, bits);
        }
    }
}

#[inline(always)]
fn add<const N: usize>(sums: &mut [i32; N], values: &[u8; N], weight: i32) {
    for i in 0..N {
        sums[i] = sums[i].wrapping_add(weight.wrapping_mul(i32::from(values[i])));
    }
}
