//! Several filtered rows of a PNG at a time, by vectors of AVX2. It must not know files.
//!
//! A pixel of filters `Sub`, `Average` and `Paeth` needs the one to its left first, so that a row alone waits for each
//! of its pixels. Four rows are made at a time, each a pixel behind the one above it: what the row above made one step
//! before is what lies above in this one. Two such groups are at work, the lower one some blocks of steps behind.
//!
//! ```text
//! step 7:  row 0   . . . . . . . x          vector: [ row 0's pixel 7 | row 1's 6 | row 2's 5 | row 3's 4 ]
//!          row 1   . . . . . . x
//!          row 2   . . . . . x
//!          row 3   . . . . x
//! ```
#![expect(
    unsafe_code,
    reason = "intrinsics; they are behind safe functions, and each block says what it relies on"
)]

use std::arch::x86_64::*;

use super::filter::Filter;

/// The most rows that are made at a time.
pub(super) const MOST: usize = 2 * ROWS;

/// Rows of a group.
const ROWS: usize = 4;

/// Steps of a block: so many pixels of four bytes are a vector of 16.
const STEPS: usize = 4;

/// Blocks that the lower group is behind the upper one: by then the samples that it reads have left the processor's
/// buffer of stores.
const BEHIND: usize = 6;

/// How many of `count` rows can be made at a time; `None` where that brings nothing, or the processor has no AVX2.
pub(super) fn together<const N: usize>(count: usize, stride: usize) -> Option<usize> {
    let wide = stride / N >= 4 * STEPS * BEHIND;
    if !is_x86_feature_detected!("avx2") {
        return None;
    }
    match count {
        MOST.. if wide => Some(MOST),
        ROWS.. if stride / N >= 4 * STEPS => Some(ROWS),
        _ => None,
    }
}

/// Makes 4 or 8 rows, one for each filter: `filtered` and `rows` are as in [`super::unfilter::unfilter`].
///
/// # Panics
/// Where [`together`] did not say so many rows, or lengths do not fit.
pub(super) fn unfilter<const N: usize>(filters: &[Filter], filtered: &[u8], rows: &mut [u8], stride: usize) {
    assert!(is_x86_feature_detected!("avx2"));
    // SAFETY: the processor has AVX2, as was just asked.
    unsafe { groups::<N>(filters, filtered, rows, stride) }
}

/// The groups, by turns.
#[target_feature(enable = "avx2")]
fn groups<const N: usize>(filters: &[Filter], filtered: &[u8], rows: &mut [u8], stride: usize) {
    let (upper, lower) = filters.split_at(ROWS);
    let upper = Group::new(upper);
    if lower.is_empty() {
        let mut upper = upper;
        for block in 0..blocks::<N>(stride) {
            upper.any_block::<N>(filtered, rows, stride, block);
        }
        return;
    }
    two::<N>(upper, Group::new(lower), filtered, rows, stride);
}

/// Blocks in which a group is done.
fn blocks<const N: usize>(stride: usize) -> usize {
    (stride / N + ROWS - 1).div_ceil(STEPS)
}

/// Two groups.
#[target_feature(enable = "avx2")]
fn two<const N: usize>(mut upper: Group, mut lower: Group, filtered: &[u8], rows: &mut [u8], stride: usize) {
    let all = blocks::<N>(stride);
    let inner = inner::<N>(stride);
    let below = &filtered[ROWS * (stride + 1)..];
    for block in 0..BEHIND + 1 {
        upper.any_block::<N>(filtered, rows, stride, block);
    }
    lower.any_block::<N>(below, &mut rows[ROWS * stride..], stride, 0);
    for block in BEHIND + 1..inner {
        upper.block::<N, false>(filtered, rows, stride, block);
        lower.block::<N, false>(below, &mut rows[ROWS * stride..], stride, block - BEHIND);
    }
    for block in inner..all + BEHIND {
        if block < all {
            upper.any_block::<N>(filtered, rows, stride, block);
        }
        lower.any_block::<N>(below, &mut rows[ROWS * stride..], stride, block - BEHIND);
    }
}

/// Blocks up to this one, but for the first, have all their pixels, and so many bytes behind them as a vector has.
fn inner<const N: usize>(stride: usize) -> usize {
    (stride - 16) / (STEPS * N) + 1
}

/// Places of the bytes of pixels of `n` when each becomes four bytes; -1 gives zero.
const fn spread(n: usize) -> [i8; 32] {
    let mut places = [-1; 32];
    let mut i = 0;
    while i < 32 {
        if i % 4 < n {
            places[i] = (i % 16 / 4 * n + i % 4) as i8;
        }
        i += 1;
    }
    places
}

/// Places of the bytes of pixels of four bytes when each becomes `n`.
const fn gather(n: usize) -> [i8; 32] {
    let mut places = [-1; 32];
    let mut i = 0;
    while i < 32 {
        if i % 16 < 4 * n {
            places[i] = (i % 16 / n * 4 + i % 16 % n) as i8;
        }
        i += 1;
    }
    places
}

struct Places<const N: usize>;

impl<const N: usize> Places<N> {
    const SPREAD: [i8; 32] = spread(N);
    const GATHER: [i8; 32] = gather(N);
}

/// Four rows on their way.
struct Group {
    /// The pixels made last, and those above them.
    left: __m256i,
    corner: __m256i,
    /// Which rows are of which filter.
    sub: __m256i,
    up: __m256i,
    average: __m256i,
    paeth: __m256i,
}

impl Group {
    #[target_feature(enable = "avx2")]
    fn new(filters: &[Filter]) -> Self {
        let mask = |wanted: Filter| {
            let [a, b, c, d] = std::array::from_fn(|r| if filters[r] == wanted { -1 } else { 0 });
            _mm256_set_epi64x(d, c, b, a)
        };
        Self {
            left: _mm256_setzero_si256(),
            corner: _mm256_setzero_si256(),
            sub: mask(Filter::Sub),
            up: mask(Filter::Up),
            average: mask(Filter::Average),
            paeth: mask(Filter::Paeth),
        }
    }

    /// A block, at an edge or not.
    #[target_feature(enable = "avx2")]
    fn any_block<const N: usize>(&mut self, filtered: &[u8], rows: &mut [u8], stride: usize, block: usize) {
        if block > 0 && block < inner::<N>(stride) {
            self.block::<N, false>(filtered, rows, stride, block);
        } else {
            self.block::<N, true>(filtered, rows, stride, block);
        }
    }

    /// Makes four pixels of each row.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn block<const N: usize, const EDGE: bool>(
        &mut self,
        filtered: &[u8],
        rows: &mut [u8],
        stride: usize,
        block: usize,
    ) {
        let at = block * STEPS * N;
        let read = |row: usize| {
            if EDGE {
                load_edge(&filtered[row * (stride + 1) + 1..][..stride], at, row * N)
            } else {
                load(filtered, row * (stride + 1) + 1 + at - row * N)
            }
        };
        let (spread, zero) = (load_places(&Places::<N>::SPREAD), _mm256_setzero_si256());
        // From four pixels of a row each to four rows' pixel of a step each.
        let even = _mm256_shuffle_epi8(_mm256_set_m128i(read(2), read(0)), spread);
        let odd = _mm256_shuffle_epi8(_mm256_set_m128i(read(3), read(1)), spread);
        let (low, high) = (_mm256_unpacklo_epi32(even, odd), _mm256_unpackhi_epi32(even, odd));
        let coded = [
            _mm256_unpacklo_epi8(low, zero),
            _mm256_unpackhi_epi8(low, zero),
            _mm256_unpacklo_epi8(high, zero),
            _mm256_unpackhi_epi8(high, zero),
        ];
        let above = if EDGE { load_edge(&rows[..stride], at, 0) } else { load(rows, at) };
        let above = _mm_shuffle_epi8(above, _mm256_castsi256_si128(spread));
        let above = [
            _mm_cvtepu8_epi16(above),
            _mm_cvtepu8_epi16(_mm_srli_si128::<4>(above)),
            _mm_cvtepu8_epi16(_mm_srli_si128::<8>(above)),
            _mm_cvtepu8_epi16(_mm_srli_si128::<12>(above)),
        ];
        let mut made = [zero; STEPS];
        for step in 0..STEPS {
            made[step] = self.step(coded[step], above[step]);
        }
        // And back.
        let gather = load_places(&Places::<N>::GATHER);
        let low = _mm256_castsi256_ps(_mm256_packus_epi16(made[0], made[1]));
        let high = _mm256_castsi256_ps(_mm256_packus_epi16(made[2], made[3]));
        let even = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(low, high));
        let odd = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
        let (even, odd) = (_mm256_shuffle_epi8(even, gather), _mm256_shuffle_epi8(odd, gather));
        let made = [
            _mm256_castsi256_si128(even),
            _mm256_castsi256_si128(odd),
            _mm256_extracti128_si256::<1>(even),
            _mm256_extracti128_si256::<1>(odd),
        ];
        for (row, made) in made.into_iter().enumerate() {
            if EDGE {
                store_edge(&mut rows[(row + 1) * stride..][..stride], at, row * N, STEPS * N, made);
            } else {
                // Behind the four pixels lies room for the next ones.
                store(rows, (row + 1) * stride + at - row * N, made);
            }
        }
    }

    /// Makes one pixel of each row, samples in lanes of 16 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn step(&mut self, coded: __m256i, above: __m128i) -> __m256i {
        let (a, c) = (self.left, self.corner);
        let rows_above = _mm256_permute4x64_epi64::<0b10_01_00_00>(a);
        let b = _mm256_blend_epi32::<0b11>(rows_above, _mm256_castsi128_si256(above));
        let (low, high) = (_mm256_min_epi16(a, b), _mm256_max_epi16(a, b));
        let threshold = _mm256_sub_epi16(_mm256_add_epi16(c, c), _mm256_sub_epi16(a, c));
        let threshold = _mm256_sub_epi16(threshold, b);
        let nearest = _mm256_blendv_epi8(low, c, _mm256_cmpgt_epi16(high, threshold));
        let by_paeth = _mm256_blendv_epi8(high, nearest, _mm256_cmpgt_epi16(threshold, low));
        let average = _mm256_srli_epi16::<1>(_mm256_add_epi16(a, b));
        let sub_or_up = _mm256_or_si256(_mm256_and_si256(a, self.sub), _mm256_and_si256(b, self.up));
        let other = _mm256_or_si256(sub_or_up, _mm256_and_si256(average, self.average));
        let predicted = _mm256_blendv_epi8(other, by_paeth, self.paeth);
        // As bytes, which wrap; the upper ones of the lanes stay zero.
        self.left = _mm256_add_epi8(coded, predicted);
        self.corner = b;
        self.left
    }
}

/// 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
fn load(from: &[u8], at: usize) -> __m128i {
    let bytes = &from[at..at + 16];
    // SAFETY: there are 16 bytes.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// 32 bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn load_places(places: &[i8; 32]) -> __m256i {
    // SAFETY: there are 32 bytes.
    unsafe { _mm256_loadu_si256(places.as_ptr().cast()) }
}

/// Writes 16 bytes.
#[inline]
#[target_feature(enable = "sse2")]
fn store(to: &mut [u8], at: usize, bytes: __m128i) {
    let to = &mut to[at..at + 16];
    // SAFETY: there is room for 16 bytes.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), bytes) }
}

/// 16 bytes of a row from `at - behind` on; zeros in front of the row and behind it.
#[target_feature(enable = "sse2")]
fn load_edge(row: &[u8], at: usize, behind: usize) -> __m128i {
    let mut bytes = [0; 16];
    let (skipped, from) = (behind.saturating_sub(at), at.saturating_sub(behind));
    if let (Some(to), Some(from)) = (bytes.get_mut(skipped..), row.get(from..)) {
        let count = to.len().min(from.len());
        to[..count].copy_from_slice(&from[..count]);
    }
    load(&bytes, 0)
}

/// Writes the first `count` bytes to a row from `at - behind` on, but for those in front of the row and behind it.
#[target_feature(enable = "sse2")]
fn store_edge(row: &mut [u8], at: usize, behind: usize, count: usize, made: __m128i) {
    let mut bytes = [0; 16];
    store(&mut bytes, 0, made);
    let (skipped, from) = (behind.saturating_sub(at), at.saturating_sub(behind));
    if let (Some(from), Some(to)) = (bytes[..count].get(skipped..), row.get_mut(from..)) {
        let count = to.len().min(from.len());
        to[..count].copy_from_slice(&from[..count]);
    }
}
