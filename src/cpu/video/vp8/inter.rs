//! Prediction from other frames (RFC 6386, section 18). Beyond its sides a frame goes on with its outermost samples.

use multiversion::multiversion;

use super::frame::{Frame, Plane};
use super::macroblock::{Luma, Macroblock, MacroblockPosition, Vector};
use super::tables::TAPS;

/// The widest block, and the rows and columns that filters read besides: two ahead and three behind.
const SIDE: usize = 16;
const AHEAD: usize = 2;
const MORE: usize = 5;

/// How samples between samples are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filters {
    /// Of two samples; else of six.
    pub(super) is_linear: bool,
    /// Whether chroma moves by whole samples.
    pub(super) has_whole_chroma: bool,
}

impl Filters {
    pub(super) fn of_version(version: u8) -> Self {
        Self { is_linear: version > 0, has_whole_chroma: version == 3 }
    }
}

/// A square of samples, and how far from it it is predicted.
#[derive(Debug, Clone, Copy)]
struct Block {
    x: usize,
    y: usize,
    side: usize,
    /// In eighths of a sample.
    vector: Vector,
}

/// Predicts a macroblock of `frame` from `reference`.
pub(super) fn macroblock(
    frame: &mut Frame,
    reference: &Frame,
    made: &Macroblock,
    place: MacroblockPosition,
    filters: Filters,
) {
    let ([luma, chroma @ ..], [from_luma, from_chroma @ ..]) = (&mut frame.planes, &reference.planes);
    let (x, y) = (place.column * 16, place.row * 16);
    let doubled = |vector: Vector| Vector { x: vector.x * 2, y: vector.y * 2 };
    let (side, chroma_side) = match made.luma {
        Luma::Sixteenths => (4, 4),
        Luma::Quarters => (8, 4),
        _ => (16, 8),
    };
    for i in (0..16).step_by(side / 4).filter(|i| i / 4 % (side / 4) == 0) {
        let (x, y) = (x + i % 4 * 4, y + i / 4 * 4);
        predict(luma, from_luma, Block { x, y, side, vector: doubled(made.vectors[i]) }, filters.is_linear);
    }
    let (x, y) = (x / 2, y / 2);
    for (plane, from) in chroma.iter_mut().zip(from_chroma) {
        for i in 0..(8 / chroma_side) * (8 / chroma_side) {
            let mut vector = mean(made, i);
            if filters.has_whole_chroma {
                vector = Vector { x: vector.x & !7, y: vector.y & !7 };
            }
            let (x, y) = (x + i % 2 * 4, y + i / 2 * 4);
            predict(plane, from, Block { x, y, side: chroma_side, vector }, filters.is_linear);
        }
    }
}

/// The mean of the vectors of four blocks of luma, rounded away from zero: a quarter of a sample of luma is an eighth
/// of one of chroma.
fn mean(made: &Macroblock, quarter: usize) -> Vector {
    let first = quarter / 2 * 8 + quarter % 2 * 2;
    let of = |side: fn(&Vector) -> i32| {
        let sum: i32 = [0, 1, 4, 5].iter().map(|block| side(&made.vectors[first + block])).sum();
        (sum.abs() + 2) / 4 * sum.signum()
    };
    Vector { x: of(|vector| vector.x), y: of(|vector| vector.y) }
}

/// Predicts one block.
fn predict(to: &mut Plane, from: &Plane, block: Block, is_linear: bool) {
    let Block { x, y, side, vector } = block;
    let (stride, first) = (to.width, y * to.width + x);
    let Some(out) = to.samples.get_mut(first..) else { return };
    let (left, top) = (x as i32 + (vector.x >> 3) - AHEAD as i32, y as i32 + (vector.y >> 3) - AHEAD as i32);
    let (across, down) = ((vector.x & 7) as usize, (vector.y & 7) as usize);
    let end = (side + MORE) as i32;
    let is_inside =
        left >= 0 && top >= 0 && left + end <= from.width as i32 && top + end <= from.height as i32;
    let mut around = [0; (SIDE + MORE) * (SIDE + MORE)];
    let (samples, width) = if is_inside {
        (from.samples.get(top as usize * from.width + left as usize..).unwrap_or_default(), from.width)
    } else {
        surroundings(from, left, top, side + MORE, &mut around);
        (&around[..], SIDE + MORE)
    };
    let source = Reference { samples, width, across, down };
    match (side, is_linear) {
        (16, false) => six_taps_16(source, out, stride),
        (8, false) => six_taps_8(source, out, stride),
        (_, false) => six_taps_4(source, out, stride),
        (16, true) => two_taps_16(source, out, stride),
        (8, true) => two_taps_8(source, out, stride),
        (_, true) => two_taps_4(source, out, stride),
    }
}

/// Copies `side` rows and columns of a plane from (`left`, `top`) on, which may lie outside.
fn surroundings(
    from: &Plane,
    left: i32,
    top: i32,
    side: usize,
    out: &mut [u8; (SIDE + MORE) * (SIDE + MORE)],
) {
    let (right, bottom) = (from.width as i32 - 1, from.height as i32 - 1);
    for (y, out) in (top..).zip(out.chunks_exact_mut(SIDE + MORE).take(side)) {
        let row = from.samples.get(y.clamp(0, bottom) as usize * from.width..).unwrap_or_default();
        for (x, out) in (left..).zip(&mut out[..side]) {
            *out = row.get(x.clamp(0, right) as usize).copied().unwrap_or(0);
        }
    }
}

/// Samples of a reference, from two rows and columns ahead of a block on, and how many eighths of a sample it lies
/// behind there.
#[derive(Clone, Copy)]
struct Reference<'a> {
    samples: &'a [u8],
    width: usize,
    across: usize,
    down: usize,
}

/// Rows of N samples for a block of N rows, and those around.
type Rows<const N: usize> = [[u8; N]; SIDE + MORE];

/// A sample between others. What is added stays below 2^16, and what is subtracted below that.
#[inline(always)]
fn tap([a, b, c, d, e, f]: [u8; 6], taps: &[u16; 6]) -> u8 {
    let by = |sample: u8, tap: usize| u16::from(sample) * taps[tap];
    let sum = by(a, 0) + by(c, 2) + by(d, 3) + by(f, 5) + 64;
    (sum.saturating_sub(by(b, 1) + by(e, 4)) >> 7).min(255) as u8
}

#[inline(always)]
fn six_taps<const N: usize>(source: Reference<'_>, out: &mut [u8], stride: usize) {
    let mut rows: Rows<N> = [[0; N]; SIDE + MORE];
    let lines = source.samples.chunks(source.width);
    let (across, down) = (&TAPS[source.across & 7], &TAPS[source.down & 7]);
    // Rows ahead and behind are needed only if samples lie between rows.
    let needed = if source.down == 0 { AHEAD..AHEAD + N } else { 0..N + MORE };
    for (row, line) in rows.iter_mut().zip(lines).take(needed.end).skip(needed.start) {
        if source.across == 0 {
            row.copy_from_slice(line.get(AHEAD..AHEAD + N).unwrap_or(&[0; N]));
            continue;
        }
        let Some(line) = line.get(..N + MORE) else { return };
        let from = |at: usize| line[at..].first_chunk::<N>().unwrap_or(&[0; N]);
        let (a, b, c, d, e, f) = (from(0), from(1), from(2), from(3), from(4), from(5));
        for i in 0..N {
            row[i] = tap([a[i], b[i], c[i], d[i], e[i], f[i]], across);
        }
    }
    for (y, out) in out.chunks_mut(stride).take(N).enumerate() {
        let Some(out) = out.first_chunk_mut::<N>() else { return };
        if source.down == 0 {
            *out = rows[y + AHEAD];
            continue;
        }
        let [a, b, c, d, e, f] = [0, 1, 2, 3, 4, 5].map(|i| &rows[y + i]);
        for i in 0..N {
            out[i] = tap([a[i], b[i], c[i], d[i], e[i], f[i]], down);
        }
    }
}

#[inline(always)]
fn two_taps<const N: usize>(source: Reference<'_>, out: &mut [u8], stride: usize) {
    let mut rows: Rows<N> = [[0; N]; SIDE + MORE];
    let mix = |a: u8, b: u8, part: u16| ((u16::from(a) * (8 - part) + u16::from(b) * part + 4) >> 3) as u8;
    let (across, down) = ((source.across & 7) as u16, (source.down & 7) as u16);
    let lines = source.samples.chunks(source.width);
    for (row, line) in rows.iter_mut().zip(lines).take(AHEAD + N + 1).skip(AHEAD) {
        let Some(line) = line.get(AHEAD..AHEAD + N + 1) else { return };
        for i in 0..N {
            row[i] = mix(line[i], line[i + 1], across);
        }
    }
    for (y, out) in out.chunks_mut(stride).take(N).enumerate() {
        let Some(out) = out.first_chunk_mut::<N>() else { return };
        let (first, second) = (&rows[y + AHEAD], &rows[y + AHEAD + 1]);
        for i in 0..N {
            out[i] = mix(first[i], second[i], down);
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn six_taps_16(source: Reference<'_>, out: &mut [u8], stride: usize) {
    six_taps::<16>(source, out, stride);
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn six_taps_8(source: Reference<'_>, out: &mut [u8], stride: usize) {
    six_taps::<8>(source, out, stride);
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn six_taps_4(source: Reference<'_>, out: &mut [u8], stride: usize) {
    six_taps::<4>(source, out, stride);
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn two_taps_16(source: Reference<'_>, out: &mut [u8], stride: usize) {
    two_taps::<16>(source, out, stride);
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn two_taps_8(source: Reference<'_>, out: &mut [u8], stride: usize) {
    two_taps::<8>(source, out, stride);
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn two_taps_4(source: Reference<'_>, out: &mut [u8], stride: usize) {
    two_taps::<4>(source, out, stride);
}
