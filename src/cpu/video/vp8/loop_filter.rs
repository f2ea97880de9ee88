//! The filter over the edges of blocks (RFC 6386, section 15). Sixteen samples along an edge are filtered at a time: of
//! luma those of one edge, of chroma eight of blue and eight of red.

use multiversion::multiversion;

use super::frame::{Frame, Plane};
use super::header::{Filter, Segments};
use super::macroblock::{Luma, Macroblock};
use super::simple_filter;
#[cfg(target_arch = "x86_64")]
use super::vector::{Avx2, edges};

/// What the filter needs to know of a macroblock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strength {
    /// 0: it is not filtered.
    level: i32,
    /// Whether the edges inside are filtered.
    has_inner: bool,
}

impl Strength {
    pub(super) fn new(
        made: &Macroblock,
        has_coefficients: bool,
        filter: &Filter,
        segments: &Segments,
    ) -> Self {
        let own = segments.filter_level[made.segment & 3];
        let base = match (segments.is_enabled, segments.is_absolute) {
            (false, _) => filter.level,
            (true, true) => own,
            (true, false) => filter.level + own,
        };
        let mut level = base.clamp(0, 63);
        if filter.has_deltas {
            level += filter.reference_deltas[made.reference as usize];
            level += match made.luma {
                Luma::Whole(_) => 0,
                Luma::Blocks => filter.mode_deltas[0],
                Luma::Still => filter.mode_deltas[1],
                Luma::Moved => filter.mode_deltas[2],
                Luma::Quarters | Luma::Sixteenths => filter.mode_deltas[3],
            };
        }
        Self { level: level.clamp(0, 63), has_inner: has_coefficients || !made.luma.has_second() }
    }
}

/// Differences up to which edges are taken for ones that coding made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Across an edge of macroblocks, and one inside.
    outer: i16,
    inner: i16,
    /// Between two samples on one side.
    interior: i16,
    /// Beyond this one between the two samples at the edge it is a sharp one.
    sharp: i16,
}

impl Limits {
    fn new(level: i32, sharpness: i32, is_key: bool) -> Self {
        let mut interior = level;
        if sharpness > 0 {
            interior = (interior >> if sharpness > 4 { 2 } else { 1 }).min(9 - sharpness);
        }
        let interior = interior.max(1);
        let sharp = match (level, is_key) {
            (40.., false) => 3,
            (40.., true) | (20.., false) => 2,
            (15.., _) => 1,
            _ => 0,
        };
        let [outer, inner, interior] =
            [2 * level + 4 + interior, 2 * level + interior, interior].map(|limit| limit as i16);
        Self { outer, inner, interior, sharp }
    }
}

/// Filters a row of macroblocks, of which `strengths` has one each.
pub(super) fn row(frame: &mut Frame, row: usize, strengths: &[Strength], filter: &Filter, is_key: bool) {
    #[cfg(target_arch = "x86_64")]
    let avx2 = Avx2::find();
    for (column, strength) in strengths.iter().enumerate().filter(|(_, strength)| strength.level > 0) {
        let limits = Limits::new(strength.level, filter.sharpness, is_key);
        if filter.is_simple {
            let limits = [limits.outer, limits.inner];
            simple_filter::macroblock(&mut frame.planes[0], column, row, limits, strength.has_inner);
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = avx2 {
            by_vectors(avx2, frame, column, row, limits, strength.has_inner);
            continue;
        }
        normal(frame, column, row, limits, strength.has_inner);
    }
}

/// [`normal`] by vectors.
#[cfg(target_arch = "x86_64")]
fn by_vectors(avx2: Avx2, frame: &mut Frame, column: usize, row: usize, limits: Limits, has_inner: bool) {
    let [luma, blue, red] = &mut frame.planes;
    let strides @ [width, half] = [luma.width, blue.width];
    // At most 193.
    let [outer, inner, interior, sharp] =
        [limits.outer, limits.inner, limits.interior, limits.sharp].map(|limit| limit.clamp(0, 255) as u8);
    let place = edges::Place { at: [row * 16 * width + column * 16, row * 8 * half + column * 8], strides };
    edges::filter(
        avx2,
        [&mut luma.samples, &mut blue.samples, &mut red.samples],
        place,
        edges::Limits { outer, inner, interior, sharp },
        edges::Which { left: column > 0, above: row > 0, inner: has_inner },
    );
}

/// Four samples on each side of an edge, at 16 places along it.
type Lanes = [[u8; 16]; 8];

/// Filters one macroblock: its left edge, those inside from left to right, its upper edge, those inside from above.
fn normal(frame: &mut Frame, column: usize, row: usize, limits: Limits, has_inner: bool) {
    let [luma, blue, red] = &mut frame.planes;
    let (width, half) = (luma.width, blue.width);
    let (at, chroma_at) = (row * 16 * width + column * 16, row * 8 * half + column * 8);
    let mut lanes = [[0; 16]; 8];
    if column > 0 {
        across(luma, at - 4, &mut lanes, limits, true);
        chroma_across(blue, red, chroma_at - 4, &mut lanes, limits, true);
    }
    if has_inner {
        for x in [0, 4, 8] {
            across(luma, at + x, &mut lanes, limits, false);
        }
        chroma_across(blue, red, chroma_at, &mut lanes, limits, false);
    }
    if row > 0 {
        down(luma, at - 4 * width, &mut lanes, limits, true);
        chroma_down(blue, red, chroma_at - 4 * half, &mut lanes, limits, true);
    }
    if has_inner {
        for y in [0, 4, 8] {
            down(luma, at + y * width, &mut lanes, limits, false);
        }
        chroma_down(blue, red, chroma_at, &mut lanes, limits, false);
    }
}

/// Filters across an upright edge: the four columns from `at` on, and four more.
fn across(plane: &mut Plane, at: usize, lanes: &mut Lanes, limits: Limits, is_outer: bool) {
    let width = plane.width;
    let Some(samples) = plane.samples.get_mut(at..) else { return };
    let mut rows = [[0; 8]; 16];
    load(samples, width, &mut rows);
    if upright(&mut rows, lanes, limits, is_outer) {
        store(samples, width, &rows);
    }
}

fn chroma_across(
    blue: &mut Plane,
    red: &mut Plane,
    at: usize,
    lanes: &mut Lanes,
    limits: Limits,
    is_outer: bool,
) {
    let width = blue.width;
    let (Some(blue), Some(red)) = (blue.samples.get_mut(at..), red.samples.get_mut(at..)) else { return };
    let mut rows = [[0; 8]; 16];
    load(blue, width, &mut rows[..8]);
    load(red, width, &mut rows[8..]);
    if upright(&mut rows, lanes, limits, is_outer) {
        store(blue, width, &rows[..8]);
        store(red, width, &rows[8..]);
    }
}

/// Eight samples of each row.
fn load(samples: &[u8], width: usize, rows: &mut [[u8; 8]]) {
    for (row, samples) in rows.iter_mut().zip(samples.chunks(width)) {
        *row = samples.first_chunk().copied().unwrap_or_default();
    }
}

fn store(samples: &mut [u8], width: usize, rows: &[[u8; 8]]) {
    for (row, samples) in rows.iter().zip(samples.chunks_mut(width)) {
        if let Some(samples) = samples.first_chunk_mut() {
            *samples = *row;
        }
    }
}

/// Filters across the middle of 16 rows of eight samples. Whether any is another now.
#[multiversion(targets("x86_64+avx+avx2"))]
fn upright(rows: &mut [[u8; 8]; 16], lanes: &mut Lanes, limits: Limits, is_outer: bool) -> bool {
    // Of a sample's number the upper four bits are its row and the lower three its column: they change places in as
    // many steps.
    let (mut turned, mut other) = ([0; 128], [0; 128]);
    turned.copy_from_slice(rows.as_flattened());
    for _ in 0..2 {
        interleave(&turned, &mut other);
        interleave(&other, &mut turned);
    }
    lanes.as_flattened_mut().copy_from_slice(&turned);
    if !filtered(lanes, limits, is_outer) {
        return false;
    }
    turned.copy_from_slice(lanes.as_flattened());
    interleave(&turned, &mut other);
    interleave(&other, &mut turned);
    interleave(&turned, &mut other);
    rows.as_flattened_mut().copy_from_slice(&other);
    true
}

/// The first half between the second: the highest bit of a sample's number becomes the lowest.
#[inline(always)]
fn interleave(from: &[u8; 128], to: &mut [u8; 128]) {
    let (first, second) = from.split_at(64);
    for (i, to) in to.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        *to = [first[i], second[i]];
    }
}

/// Filters across a level edge: the four rows from `at` on, and four more.
fn down(plane: &mut Plane, at: usize, lanes: &mut Lanes, limits: Limits, is_outer: bool) {
    let width = plane.width;
    let Some(samples) = plane.samples.get_mut(at..) else { return };
    for (lane, row) in lanes.iter_mut().zip(samples.chunks(width)) {
        *lane = row.first_chunk().copied().unwrap_or(*lane);
    }
    if level(lanes, limits, is_outer) {
        for (lane, row) in lanes.iter().zip(samples.chunks_mut(width)).skip(1).take(6) {
            row[..16].copy_from_slice(lane);
        }
    }
}

fn chroma_down(
    blue: &mut Plane,
    red: &mut Plane,
    at: usize,
    lanes: &mut Lanes,
    limits: Limits,
    is_outer: bool,
) {
    let width = blue.width;
    let (Some(blue), Some(red)) = (blue.samples.get_mut(at..), red.samples.get_mut(at..)) else { return };
    for (lane, (blue, red)) in lanes.iter_mut().zip(blue.chunks(width).zip(red.chunks(width))) {
        lane[..8].copy_from_slice(&blue[..8]);
        lane[8..].copy_from_slice(&red[..8]);
    }
    if level(lanes, limits, is_outer) {
        let rows = blue.chunks_mut(width).zip(red.chunks_mut(width));
        for (lane, (blue, red)) in lanes.iter().zip(rows).skip(1).take(6) {
            blue[..8].copy_from_slice(&lane[..8]);
            red[..8].copy_from_slice(&lane[8..]);
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn level(lanes: &mut Lanes, limits: Limits, is_outer: bool) -> bool {
    filtered(lanes, limits, is_outer)
}

/// The normal filter. Whether it did anything.
#[inline(always)]
fn filtered(lanes: &mut Lanes, limits: Limits, is_outer: bool) -> bool {
    let edge = if is_outer { limits.outer } else { limits.inner };
    let [mut is_soft, mut is_sharp] = [[0_i16; 16]; 2];
    let mut any = 0;
    for i in 0..16 {
        let of = |lane: usize| i16::from(lanes[lane][i]);
        let step = |a: usize| (of(a) - of(a + 1)).abs();
        let at_edge = 2 * step(3) + (of(2) - of(5)).abs() / 2;
        let inside = step(0).max(step(1)).max(step(2)).max(step(4)).max(step(5)).max(step(6));
        is_soft[i] = i16::from(at_edge <= edge) & i16::from(inside <= limits.interior);
        is_sharp[i] = i16::from(step(2).max(step(4)) > limits.sharp);
        any |= is_soft[i];
    }
    if any == 0 {
        return false;
    }
    let clipped = |value: i16| value.clamp(-128, 127);
    let level = |value: i16| value.clamp(0, 255) as u8;
    // Copies, as the compiler makes vectors of what is read and written apart.
    let [_, p2, p1, p0, q0, q1, q2, _] = *lanes;
    let mut made = [[0; 16]; 6];
    if is_outer {
        for i in 0..16 {
            let [a2, a1, a0, b0, b1, b2] = [
                i16::from(p2[i]),
                i16::from(p1[i]),
                i16::from(p0[i]),
                i16::from(q0[i]),
                i16::from(q1[i]),
                i16::from(q2[i]),
            ];
            // All ones where something is done, so that what is not is 0. Sharp edges are changed at the edge alone,
            // others up to three samples far.
            let change = clipped(clipped(a1 - b1) + 3 * (b0 - a0)) & -is_soft[i];
            let (near, far) = (change & -is_sharp[i], change & !-is_sharp[i]);
            let (first, second, third) = ((27 * far + 63) >> 7, (18 * far + 63) >> 7, (9 * far + 63) >> 7);
            let (add, subtract) = (clipped(near + 3) >> 3, clipped(near + 4) >> 3);
            made[0][i] = level(a2 + third);
            made[1][i] = level(a1 + second);
            made[2][i] = level(a0 + first + add);
            made[3][i] = level(b0 - first - subtract);
            made[4][i] = level(b1 - second);
            made[5][i] = level(b2 - third);
        }
        lanes[1..7].copy_from_slice(&made);
    } else {
        for i in 0..16 {
            let [a1, a0, b0, b1] = [i16::from(p1[i]), i16::from(p0[i]), i16::from(q0[i]), i16::from(q1[i])];
            let change = clipped((clipped(a1 - b1) & -is_sharp[i]) + 3 * (b0 - a0)) & -is_soft[i];
            let (add, subtract) = (clipped(change + 3) >> 3, clipped(change + 4) >> 3);
            let next = ((subtract + 1) >> 1) & !-is_sharp[i];
            made[1][i] = level(a1 + next);
            made[2][i] = level(a0 + add);
            made[3][i] = level(b0 - subtract);
            made[4][i] = level(b1 - next);
        }
        lanes[2..6].copy_from_slice(&made[1..5]);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::macroblock::Mode;
    use super::*;

    #[test]
    fn upright_edges_are_filtered_as_level_ones() {
        let limits = Limits { outer: 90, inner: 86, interior: 30, sharp: 2 };
        for is_outer in [false, true] {
            let mut lanes = [[0; 16]; 8];
            for (x, lane) in lanes.iter_mut().enumerate() {
                *lane = std::array::from_fn(|y| {
                    (100 + 7 * y + (x * x + y) % 5 + if x > 3 { 2 * y } else { 0 }) as u8
                });
            }
            let mut rows: [[u8; 8]; 16] = std::array::from_fn(|y| std::array::from_fn(|x| lanes[x][y]));
            let before = rows;
            assert!(upright(&mut rows, &mut [[0; 16]; 8], limits, is_outer));
            assert!(level(&mut lanes, limits, is_outer) && rows != before);
            assert_eq!(rows, std::array::from_fn(|y| std::array::from_fn(|x| lanes[x][y])));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn vectors_filter_as_what_has_none() {
        let Some(avx2) = Avx2::find() else { return };
        let mut seed = 7_u32;
        let mut number = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            seed >> 8
        };
        for round in 0..3_000_usize {
            let mut frame = Frame::new([2, 2]);
            // From flat to noisy, so that limits are met on both sides.
            let (base, noise) = (number() % 256, 1 << (round % 9));
            for plane in &mut frame.planes {
                plane
                    .samples
                    .iter_mut()
                    .for_each(|sample| *sample = (base + number() % noise).min(255) as u8);
            }
            let level = (number() % 63 + 1) as i32;
            let limits = Limits::new(level, (number() % 8) as i32, round % 2 == 0);
            let (column, row, has_inner) = (round / 2 % 2, round / 4 % 2, round % 3 > 0);
            let mut other = frame.clone();
            normal(&mut frame, column, row, limits, has_inner);
            by_vectors(avx2, &mut other, column, row, limits, has_inner);
            for (plane, other) in frame.planes.iter().zip(&other.planes) {
                assert!(plane.samples == other.samples, "{limits:?}, {column}, {row}, {has_inner}");
            }
        }
    }

    #[test]
    fn limits_are_those_of_the_format() {
        let of = |level, sharpness, is_key| {
            let Limits { outer, inner, interior, sharp } = Limits::new(level, sharpness, is_key);
            [outer, inner, interior, sharp]
        };
        assert_eq!(of(20, 0, false), [64, 60, 20, 2]);
        assert_eq!(of(40, 3, true), [90, 86, 6, 2]);
        assert_eq!(of(1, 7, true), [7, 3, 1, 0]);
    }

    #[test]
    fn a_strength_follows_from_segment_reference_and_mode() {
        let filter = Filter {
            level: 30,
            has_deltas: true,
            reference_deltas: [2, 0, -2, -40],
            mode_deltas: [4, -2, 2, 4],
            ..Filter::default()
        };
        let whole = Macroblock { luma: Luma::Whole(Mode::Dc), ..Macroblock::default() };
        let level =
            |made: &Macroblock, segments: &Segments| Strength::new(made, false, &filter, segments).level;
        assert_eq!(level(&whole, &Segments::default()), 32);
        assert_eq!(level(&Macroblock { luma: Luma::Blocks, ..whole }, &Segments::default()), 36);
        let segments = Segments { is_enabled: true, filter_level: [60, 0, 0, 0], ..Segments::default() };
        assert_eq!(level(&whole, &segments), 63);
    }
}
