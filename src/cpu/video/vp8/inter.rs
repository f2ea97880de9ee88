//! Prediction from other frames (RFC 6386, section 18). Beyond its sides a frame goes on with its outermost samples.

use multiversion::multiversion;

use super::frame::{Frame, Plane};
use super::macroblock::{Luma, Macroblock, MacroblockPosition, Vector};
use super::tables::TAPS;
#[cfg(target_arch = "x86_64")]
use super::vector::{
    Avx2,
    taps::{self, Source, Target},
};

/// The widest block, and the rows and columns that filters read besides: two ahead and three behind.
const SIDE: usize = 16;
const AHEAD: usize = 2;
const MORE: usize = 5;

/// Samples from one row to the next of what is around a block that does not lie in the frame with it.
const AROUND: usize = 32;
type Around = [u8; AROUND * (SIDE + MORE)];

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
#[inline(never)]
pub(super) fn macroblock(
    frame: &mut Frame,
    reference: &Frame,
    made: &Macroblock,
    place: MacroblockPosition,
    filters: Filters,
) {
    let ([luma, blue, red], [from_luma, from_blue, from_red]) = (&mut frame.planes, &reference.planes);
    let (x, y) = (place.column * 16, place.row * 16);
    let doubled = |vector: Vector| Vector { x: vector.x * 2, y: vector.y * 2 };
    let (side, chroma_side) = match made.luma {
        Luma::Sixteenths => (4, 4),
        Luma::Quarters => (8, 4),
        _ => (16, 8),
    };
    for i in (0..16).step_by(side / 4).filter(|i| i / 4 % (side / 4) == 0) {
        let (x, y) = (x + i % 4 * 4, y + i / 4 * 4);
        let block = Block { x, y, side, vector: doubled(made.vectors[i]) };
        predict([luma], [from_luma], block, filters.is_linear);
    }
    let (x, y) = (x / 2, y / 2);
    for i in 0..(8 / chroma_side) * (8 / chroma_side) {
        let mut vector = mean(made, i);
        if filters.has_whole_chroma {
            vector = Vector { x: vector.x & !7, y: vector.y & !7 };
        }
        let block = Block { x: x + i % 2 * 4, y: y + i / 2 * 4, side: chroma_side, vector };
        predict([blue, red], [from_blue, from_red], block, filters.is_linear);
    }
}

/// The mean of the vectors of four blocks of luma, rounded away from zero: a quarter of a sample of luma is an eighth
/// of one of chroma.
fn mean(made: &Macroblock, quarter: usize) -> Vector {
    if !made.luma.is_split() {
        return made.vector();
    }
    let first = quarter / 2 * 8 + quarter % 2 * 2;
    let of = |side: fn(&Vector) -> i32| {
        let sum: i32 = [0, 1, 4, 5].iter().map(|block| side(&made.vectors[first + block])).sum();
        (sum.abs() + 2) / 4 * sum.signum()
    };
    Vector { x: of(|vector| vector.x), y: of(|vector| vector.y) }
}

/// Predicts one block of a plane, or of planes of one size.
fn predict<const N: usize>(to: [&mut Plane; N], from: [&Plane; N], block: Block, is_linear: bool) {
    let Block { x, y, side, vector } = block;
    let (left, top) = (x as i32 + (vector.x >> 3) - AHEAD as i32, y as i32 + (vector.y >> 3) - AHEAD as i32);
    let end = (side + MORE) as i32;
    let is_inside = |from: &Plane| {
        left >= 0 && top >= 0 && left + end <= from.width as i32 && top + end <= from.height as i32
    };
    let width = from.first().map_or(0, |from| from.width);
    if from.into_iter().all(is_inside) {
        let first = top as usize * width + left as usize;
        let samples = from.map(|from| from.samples.get(first..).unwrap_or_default());
        return filtered(to, samples, width, block, is_linear);
    }
    let around = from.map(|from| surroundings(from, left, top, side + MORE));
    filtered(to, around.each_ref().map(|around| &around[..]), AROUND, block, is_linear);
}

/// Makes a block of samples of each plane, which begin two rows and columns ahead of it, in rows of `width`.
#[inline(always)]
fn filtered<const N: usize>(
    to: [&mut Plane; N],
    from: [&[u8]; N],
    width: usize,
    Block { x, y, side, vector }: Block,
    is_linear: bool,
) {
    let stride = to.first().map_or(0, |plane| plane.width);
    let to = to.map(|plane| plane.samples.get_mut(y * stride + x..).unwrap_or_default());
    let (across, down) = ((vector.x & 7) as usize, (vector.y & 7) as usize);
    #[cfg(target_arch = "x86_64")]
    let mut to = to;
    #[cfg(target_arch = "x86_64")]
    if !is_linear && by_vectors(&mut to, from, width, side, [across, down], stride) {
        return;
    }
    for (out, samples) in to.into_iter().zip(from) {
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
}

/// The filter of six taps by vectors, where the processor has them.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn by_vectors<const N: usize>(
    to: &mut [&mut [u8]; N],
    from: [&[u8]; N],
    width: usize,
    side: usize,
    moved: [usize; 2],
    stride: usize,
) -> bool {
    let Some(avx2) = Avx2::find() else { return false };
    let [across, down] = moved.map(|eighths| {
        let [a, b, c, d, e, f] = TAPS[eighths & 7].map(|tap| tap as i8);
        (eighths > 0).then_some([a, -b, c, d, -e, f])
    });
    match (&mut to[..], &from[..], side) {
        ([out], [from], 16) => {
            let blocks = [from, from.get(8..).unwrap_or_default()];
            taps::predict::<16, 8>(avx2, Source { blocks, width, across, down }, Target::Beside(out), stride)
        }
        ([out], [from], 8) => taps::predict::<8, 8>(
            avx2,
            Source { blocks: [from; 2], width, across, down },
            Target::First(out),
            stride,
        ),
        ([out], [from], _) => taps::predict::<4, 4>(
            avx2,
            Source { blocks: [from; 2], width, across, down },
            Target::First(out),
            stride,
        ),
        ([blue, red], [from_blue, from_red], side) => {
            let source = Source { blocks: [from_blue, from_red], width, across, down };
            let target = Target::Each([blue, red]);
            match side {
                8 => taps::predict::<8, 8>(avx2, source, target, stride),
                _ => taps::predict::<4, 4>(avx2, source, target, stride),
            }
        }
        _ => false,
    }
}

/// Copies `side` rows and columns of a plane from (`left`, `top`) on, which may lie outside.
#[cold]
fn surroundings(from: &Plane, left: i32, top: i32, side: usize) -> Around {
    let mut around = [0; AROUND * (SIDE + MORE)];
    let (width, bottom) = (from.width as i32, from.height as i32 - 1);
    // Columns ahead of the plane, and in it.
    let before = (-left).clamp(0, side as i32) as usize;
    let inside = (width - left.max(0)).clamp(0, (side - before) as i32) as usize;
    for (y, out) in (top..).zip(around.chunks_exact_mut(AROUND).take(side)) {
        let first = y.clamp(0, bottom) as usize * from.width;
        let Some(row) = from.samples.get(first..first + from.width) else { continue };
        let (ahead, rest) = out[..side].split_at_mut(before);
        let (within, behind) = rest.split_at_mut(inside);
        ahead.fill(row.first().copied().unwrap_or(0));
        if let Some(samples) = row.get(left.max(0) as usize..).and_then(|row| row.get(..inside)) {
            within.copy_from_slice(samples);
        }
        behind.fill(row.last().copied().unwrap_or(0));
    }
    around
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A plane of noise, with levels far apart beside one another.
    fn noise(seed: u32) -> Plane {
        let mut frame = Frame::new([3, 3]);
        let mut state = seed;
        let [plane, ..] = &mut frame.planes;
        for sample in &mut plane.samples {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *sample = if state >> 30 == 0 { u8::MAX * (state >> 29 & 1) as u8 } else { (state >> 16) as u8 };
        }
        std::mem::take(plane)
    }

    /// What a sample is by the format, read where it is needed and no further.
    fn expected(from: &Plane, x: i32, y: i32, [across, down]: [usize; 2]) -> u8 {
        let at = |x: i32, y: i32| {
            let (x, y) = (x.clamp(0, from.width as i32 - 1), y.clamp(0, from.height as i32 - 1));
            from.samples[y as usize * from.width + x as usize]
        };
        let row = |y: i32| match across {
            0 => at(x, y),
            _ => tap([-2, -1, 0, 1, 2, 3].map(|by| at(x + by, y)), &TAPS[across]),
        };
        match down {
            0 => row(y),
            _ => tap([-2, -1, 0, 1, 2, 3].map(|by| row(y + by)), &TAPS[down]),
        }
    }

    #[test]
    fn blocks_of_all_sizes_are_what_the_format_says_inside_and_at_the_sides() {
        let (from, other) = (noise(1), noise(2));
        for (i, side) in [16, 8, 4].into_iter().cycle().take(2_000).enumerate() {
            let vector = Vector { x: (i * 37 % 640) as i32 - 320, y: (i * 53 % 640) as i32 - 320 };
            let (x, y) = (i % 3 * 16, i / 3 % 3 * 16);
            let block = Block { x, y, side, vector };
            let moved = [(vector.x & 7) as usize, (vector.y & 7) as usize];
            let mut planes = [(); 3].map(|()| Frame::new([3, 3]).planes[0].clone());
            let [alone, first, second] = &mut planes;
            predict([alone], [&from], block, false);
            if side < 16 {
                predict([first, second], [&from, &other], block, false);
            }
            for (plane, from) in planes.iter().zip([&from, &from, &other]).take(if side < 16 { 3 } else { 1 })
            {
                for (at, &sample) in plane.samples.iter().enumerate() {
                    let (column, row) = (at % 48, at / 48);
                    let is_in = (x..x + side).contains(&column) && (y..y + side).contains(&row);
                    let (left, top) = (column as i32 + (vector.x >> 3), row as i32 + (vector.y >> 3));
                    let expected = if is_in { expected(from, left, top, moved) } else { 0 };
                    assert_eq!(sample, expected, "{block:?} at {column}, {row}");
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn vectors_make_what_filters_without_them_do() {
        let (from, other) = (noise(3), noise(4));
        for (i, side) in [16, 8, 4].into_iter().cycle().take(192).enumerate() {
            let moved = [i / 3 % 8, i / 24 % 8];
            let first = i % 8 * 48 + i % 20;
            let samples = [&from.samples[first..], &other.samples[first..]];
            let mut made = [[0_u8; 48 * 16]; 2];
            let [one, two] = &mut made;
            let is_done = match side {
                16 => by_vectors(&mut [&mut one[..]], [samples[0]], 48, side, moved, 48),
                _ => by_vectors(&mut [&mut one[..], &mut two[..]], samples, 48, side, moved, 48),
            };
            if !is_done {
                assert!(Avx2::find().is_none());
                return;
            }
            for (made, samples) in made.iter().zip(samples).take(if side < 16 { 2 } else { 1 }) {
                let mut plain = [0_u8; 48 * 16];
                let source = Reference { samples, width: 48, across: moved[0], down: moved[1] };
                match side {
                    16 => six_taps_16(source, &mut plain, 48),
                    8 => six_taps_8(source, &mut plain, 48),
                    _ => six_taps_4(source, &mut plain, 48),
                }
                assert_eq!(*made, plain, "{side}, {moved:?}");
            }
        }
    }
}
