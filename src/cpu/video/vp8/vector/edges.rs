//! The normal filter over the edges of a macroblock, 16 places along an edge at a time. Upright edges are turned: the
//! macroblock's columns become rows, are filtered and turned back, and stay at hand for the level edges.

use super::*;

/// Limits of [`normal`]: at most 255 each.
#[derive(Clone, Copy)]
pub(in super::super) struct Limits {
    pub(in super::super) outer: u8,
    pub(in super::super) inner: u8,
    pub(in super::super) interior: u8,
    pub(in super::super) sharp: u8,
}

/// Which edges are filtered.
#[derive(Clone, Copy)]
pub(in super::super) struct Which {
    pub(in super::super) left: bool,
    pub(in super::super) above: bool,
    pub(in super::super) inner: bool,
}

/// A macroblock in the planes of a frame: the first samples of luma and of chroma, and how far rows are apart there.
pub(in super::super) struct Place {
    pub(in super::super) at: [usize; 2],
    pub(in super::super) strides: [usize; 2],
}

/// Filters one macroblock: its left edge, those inside from left to right, its upper edge, those inside from above.
pub(in super::super) fn filter(
    _: Avx2,
    [luma_samples, blue, red]: [&mut [u8]; 3],
    Place { at, strides }: Place,
    limits: Limits,
    which: Which,
) {
    // SAFETY: the processor has AVX2.
    unsafe { luma(luma_samples, at[0], strides[0], limits, which) };
    // SAFETY: as above.
    unsafe { chroma(blue, red, at[1], strides[1], limits, which) };
}

#[target_feature(enable = "avx2")]
fn luma(samples: &mut [u8], at: usize, stride: usize, limits: Limits, which: Which) {
    let limits = Splat::new(limits);
    let mut rows = [_mm_setzero_si128(); 20];
    let Some(mut area) = Area::<16, 16>::new(samples, at, stride) else { return };
    for y in 0..16 {
        rows[4 + y] = load(area.row(y));
    }
    if which.left || which.inner {
        let mut columns = [_mm_setzero_si128(); 20];
        let mut inside = [_mm_setzero_si128(); 16];
        inside.copy_from_slice(&rows[4..]);
        // Of a sample's number the upper four bits are its row and the lower four its column: they change places.
        for _ in 0..4 {
            inside = interleaved(inside);
        }
        columns[4..].copy_from_slice(&inside);
        if which.left
            && let Some(mut beside) = Area::<16, 4>::new(samples, at - 4, stride)
        {
            let mut left = [_mm_setzero_si128(); 4];
            for (i, left) in left.iter_mut().enumerate() {
                let of = |row: &mut [u8; 4]| i32::from_le_bytes(*row);
                let [a, b, c, d] = [0, 1, 2, 3].map(|y| of(beside.row(4 * i + y)));
                *left = _mm_setr_epi32(a, b, c, d);
            }
            for _ in 0..4 {
                left = interleaved(left);
            }
            columns[..4].copy_from_slice(&left);
            outer(&mut columns, 0, &limits);
            left.copy_from_slice(&columns[..4]);
            left = interleaved(interleaved(left));
            for (i, left) in left.into_iter().enumerate() {
                for (y, bytes) in fourths(left).into_iter().enumerate() {
                    *beside.row(4 * i + y) = bytes;
                }
            }
        }
        if which.inner {
            [4, 8, 12].into_iter().for_each(|x| inner(&mut columns, x, &limits));
        }
        inside.copy_from_slice(&columns[4..]);
        for _ in 0..4 {
            inside = interleaved(inside);
        }
        rows[4..].copy_from_slice(&inside);
    }
    if which.above
        && let Some(mut area) = Area::<4, 16>::new(samples, at - 4 * stride, stride)
    {
        rows[..4].copy_from_slice(&[0, 1, 2, 3].map(|y| load(area.row(y))));
        outer(&mut rows, 0, &limits);
        [1, 2, 3].into_iter().for_each(|y| store(rows[y], area.row(y)));
    }
    if which.inner {
        [4, 8, 12].into_iter().for_each(|y| inner(&mut rows, y, &limits));
    }
    let Some(mut area) = Area::<16, 16>::new(samples, at, stride) else { return };
    for y in 0..16 {
        store(rows[4 + y], area.row(y));
    }
}

#[target_feature(enable = "avx2")]
fn chroma(blue: &mut [u8], red: &mut [u8], at: usize, stride: usize, limits: Limits, which: Which) {
    let limits = Splat::new(limits);
    let mut rows = [_mm_setzero_si128(); 12];
    let of = |plane| Area::<8, 8>::new(plane, at, stride);
    let (Some(mut blue_area), Some(mut red_area)) = (of(blue), of(red)) else { return };
    for y in 0..8 {
        rows[4 + y] = load_two(blue_area.row(y), red_area.row(y));
    }
    if which.left || which.inner {
        let mut columns = [_mm_setzero_si128(); 12];
        let mut inside = [_mm_setzero_si128(); 8];
        inside.copy_from_slice(&rows[4..]);
        // The upper four bits of a sample's number are its row and its plane, the lower three its column.
        for _ in 0..4 {
            inside = interleaved(inside);
        }
        columns[4..].copy_from_slice(&inside);
        let beside = |plane| Area::<8, 4>::new(plane, at - 4, stride);
        if which.left
            && let (Some(mut blue), Some(mut red)) = (beside(blue), beside(red))
        {
            let mut left = [_mm_setzero_si128(); 4];
            for (i, left) in left.iter_mut().enumerate() {
                let of = |row: &mut [u8; 4]| i32::from_le_bytes(*row);
                let (y, behind) = (2 * i, 2 * i + 1);
                *left = _mm_setr_epi32(
                    of(blue.row(y)),
                    of(red.row(y)),
                    of(blue.row(behind)),
                    of(red.row(behind)),
                );
            }
            for _ in 0..4 {
                left = interleaved(left);
            }
            columns[..4].copy_from_slice(&left);
            outer(&mut columns, 0, &limits);
            left.copy_from_slice(&columns[..4]);
            left = interleaved(interleaved(left));
            for (i, left) in left.into_iter().enumerate() {
                let (y, [a, b, c, d]) = (2 * i, fourths(left));
                (*blue.row(y), *red.row(y)) = (a, b);
                (*blue.row(y + 1), *red.row(y + 1)) = (c, d);
            }
        }
        if which.inner {
            inner(&mut columns, 4, &limits);
        }
        inside.copy_from_slice(&columns[4..]);
        for _ in 0..3 {
            inside = interleaved(inside);
        }
        rows[4..].copy_from_slice(&inside);
    }
    let above = |plane| Area::<4, 8>::new(plane, at - 4 * stride, stride);
    if which.above
        && let (Some(mut blue), Some(mut red)) = (above(blue), above(red))
    {
        rows[..4].copy_from_slice(&[0, 1, 2, 3].map(|y| load_two(blue.row(y), red.row(y))));
        outer(&mut rows, 0, &limits);
        for (y, row) in [(1, rows[1]), (2, rows[2]), (3, rows[3])] {
            (*blue.row(y), *red.row(y)) = (low(row), high(row));
        }
    }
    if which.inner {
        inner(&mut rows, 4, &limits);
    }
    let of = |plane| Area::<8, 8>::new(plane, at, stride);
    let (Some(mut blue), Some(mut red)) = (of(blue), of(red)) else { return };
    for y in 0..8 {
        (*blue.row(y), *red.row(y)) = (low(rows[4 + y]), high(rows[4 + y]));
    }
}

/// The first half of the bytes between the second: the highest bit of a byte's number becomes the lowest.
#[inline]
#[target_feature(enable = "avx2")]
fn interleaved<const N: usize>(from: [Half; N]) -> [Half; N] {
    let mut to = from;
    for i in 0..N / 2 {
        to[2 * i] = _mm_unpacklo_epi8(from[i], from[i + N / 2]);
        to[2 * i + 1] = _mm_unpackhi_epi8(from[i], from[i + N / 2]);
    }
    to
}

/// Four bytes each.
#[inline]
#[target_feature(enable = "avx2")]
fn fourths(value: Half) -> [[u8; 4]; 4] {
    [value, _mm_shuffle_epi32::<1>(value), _mm_shuffle_epi32::<2>(value), _mm_shuffle_epi32::<3>(value)]
        .map(|value| _mm_cvtsi128_si32(value).to_le_bytes())
}

/// [`Limits`] in all lanes.
struct Splat {
    outer: Half,
    inner: Half,
    interior: Half,
    sharp: Half,
}

impl Splat {
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(limits: Limits) -> Self {
        let of = |limit: u8| _mm_set1_epi8(limit as i8);
        Self {
            outer: of(limits.outer),
            inner: of(limits.inner),
            interior: of(limits.interior),
            sharp: of(limits.sharp),
        }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn distance(a: Half, b: Half) -> Half {
    _mm_or_si128(_mm_subs_epu8(a, b), _mm_subs_epu8(b, a))
}

/// All ones where `value` is not above `limit`.
#[inline]
#[target_feature(enable = "avx2")]
fn within(value: Half, limit: Half) -> Half {
    _mm_cmpeq_epi8(_mm_subs_epu8(value, limit), _mm_setzero_si128())
}

/// Signed bytes by 8, rounded down, and 16 more: 0 to 31.
#[inline]
#[target_feature(enable = "avx2")]
fn eighth(value: Half) -> Half {
    let shifted = _mm_srli_epi16::<3>(_mm_xor_si128(value, _mm_set1_epi8(i8::MIN)));
    _mm_and_si128(shifted, _mm_set1_epi8(31))
}

/// Where there is an edge that coding made, and where it is no sharp one.
#[inline]
#[target_feature(enable = "avx2")]
fn marks(lanes: &[Half; 8], edge: Half, limits: &Splat) -> (Half, Half) {
    let [p3, p2, p1, p0, q0, q1, q2, q3] = *lanes;
    let near = _mm_max_epu8(distance(p1, p0), distance(q1, q0));
    let far = _mm_max_epu8(
        _mm_max_epu8(distance(p3, p2), distance(p2, p1)),
        _mm_max_epu8(distance(q3, q2), distance(q2, q1)),
    );
    let half = _mm_and_si128(_mm_srli_epi16::<1>(distance(p1, q1)), _mm_set1_epi8(127));
    let step = distance(p0, q0);
    // Saturates above every limit.
    let at_edge = _mm_adds_epu8(_mm_adds_epu8(step, step), half);
    let soft = _mm_and_si128(within(_mm_max_epu8(near, far), limits.interior), within(at_edge, edge));
    (soft, within(near, limits.sharp))
}

/// `outward`, and three times the step from `p` to `q`, saturated.
#[inline]
#[target_feature(enable = "avx2")]
fn change(outward: Half, p: Half, q: Half) -> Half {
    let step = _mm_subs_epi8(q, p);
    _mm_adds_epi8(_mm_adds_epi8(_mm_adds_epi8(outward, step), step), step)
}

/// The eight rows from `first` on.
#[inline]
#[target_feature(enable = "avx2")]
fn eight<const N: usize>(rows: &[Half; N], first: usize) -> [Half; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|i| rows[first + i])
}

/// Filters an edge between macroblocks, in the middle of the eight rows from `first` on.
#[inline]
#[target_feature(enable = "avx2")]
fn outer<const N: usize>(rows: &mut [Half; N], first: usize, limits: &Splat) {
    let lanes = eight(rows, first);
    let (soft, level) = marks(&lanes, limits.outer, limits);
    let sign = _mm_set1_epi8(i8::MIN);
    let [_, p2, p1, p0, q0, q1, q2, _] = lanes.map(|lane| _mm_xor_si128(lane, sign));
    let change = _mm_and_si128(change(_mm_subs_epi8(p1, q1), p0, q0), soft);
    let (near, far) = (_mm_andnot_si128(level, change), _mm_and_si128(level, change));
    let sixteen = _mm_set1_epi8(16);
    let add = _mm_sub_epi8(eighth(_mm_adds_epi8(near, _mm_set1_epi8(3))), sixteen);
    let subtract = _mm_sub_epi8(eighth(_mm_adds_epi8(near, _mm_set1_epi8(4))), sixteen);
    // Nine times each, which is exact: both factors are 256 times what they stand for.
    let (zero, nine) = (_mm_setzero_si128(), _mm_set1_epi16(9 << 8));
    let nine =
        [_mm_unpacklo_epi8(zero, far), _mm_unpackhi_epi8(zero, far)].map(|far| _mm_mulhi_epi16(far, nine));
    let third = nine.map(|nine| _mm_add_epi16(nine, _mm_set1_epi16(63)));
    let second = [_mm_add_epi16(third[0], nine[0]), _mm_add_epi16(third[1], nine[1])];
    let first_step = [_mm_add_epi16(second[0], nine[0]), _mm_add_epi16(second[1], nine[1])];
    let [third, second, first_step] = [third, second, first_step]
        .map(|[low, high]| _mm_packs_epi16(_mm_srai_epi16::<7>(low), _mm_srai_epi16::<7>(high)));
    // Where there are far steps there are no near ones.
    let made = [
        _mm_adds_epi8(p2, third),
        _mm_adds_epi8(p1, second),
        _mm_adds_epi8(p0, _mm_add_epi8(first_step, add)),
        _mm_subs_epi8(q0, _mm_add_epi8(first_step, subtract)),
        _mm_subs_epi8(q1, second),
        _mm_subs_epi8(q2, third),
    ];
    for (i, made) in made.into_iter().enumerate() {
        rows[first + 1 + i] = _mm_xor_si128(made, sign);
    }
}

/// Filters an edge inside a macroblock.
#[inline]
#[target_feature(enable = "avx2")]
fn inner<const N: usize>(rows: &mut [Half; N], first: usize, limits: &Splat) {
    let lanes = eight(rows, first);
    let (soft, level) = marks(&lanes, limits.inner, limits);
    let sign = _mm_set1_epi8(i8::MIN);
    let [_, _, p1, p0, q0, q1, _, _] = lanes.map(|lane| _mm_xor_si128(lane, sign));
    let change = _mm_and_si128(change(_mm_andnot_si128(level, _mm_subs_epi8(p1, q1)), p0, q0), soft);
    let sixteen = _mm_set1_epi8(16);
    let add = _mm_sub_epi8(eighth(_mm_adds_epi8(change, _mm_set1_epi8(3))), sixteen);
    let more = eighth(_mm_adds_epi8(change, _mm_set1_epi8(4)));
    let subtract = _mm_sub_epi8(more, sixteen);
    // Half of what is subtracted, rounded up: 16 more of it are 8 more here.
    let next = _mm_sub_epi8(_mm_avg_epu8(more, _mm_setzero_si128()), _mm_set1_epi8(8));
    let next = _mm_and_si128(next, level);
    let made = [
        _mm_adds_epi8(p1, next),
        _mm_adds_epi8(p0, add),
        _mm_subs_epi8(q0, subtract),
        _mm_subs_epi8(q1, next),
    ];
    for (i, made) in made.into_iter().enumerate() {
        rows[first + 2 + i] = _mm_xor_si128(made, sign);
    }
}
