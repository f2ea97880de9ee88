//! The inverse cosine transform of two blocks at a time, in numbers of 16 bits.

use super::*;

/// Adds the inverse cosine transform of two blocks to 4 rows of 8 samples, `stride` apart from sample `at` on. Not done
/// where numbers are too large for 16 bits, as only damaged files have them, or where there are no such samples.
pub(in super::super) fn add_two(
    _: Avx2,
    samples: &mut [u8],
    at: usize,
    stride: usize,
    [first, second]: [&[i16; 16]; 2],
) -> bool {
    // SAFETY: the processor has AVX2.
    unsafe { to_two(samples, at, stride, first, second) }
}

/// [`add_two`] of blocks that have means alone.
pub(in super::super) fn add_two_means(
    _: Avx2,
    samples: &mut [u8],
    at: usize,
    stride: usize,
    means: [i16; 2],
) -> bool {
    // SAFETY: the processor has AVX2.
    unsafe { means_to_two(samples, at, stride, means) }
}

/// [`add_two`] of one block, to 4 rows of 4 samples.
pub(in super::super) fn add_one(
    _: Avx2,
    samples: &mut [u8],
    at: usize,
    stride: usize,
    block: &[i16; 16],
) -> bool {
    // SAFETY: the processor has AVX2.
    unsafe { to_one(samples, at, stride, block) }
}

#[target_feature(enable = "avx2")]
fn to_two(samples: &mut [u8], at: usize, stride: usize, first: &[i16; 16], second: &[i16; 16]) -> bool {
    let Some(mut area) = Area::<4, 8>::new(samples, at, stride) else { return false };
    let Some(residue) = residue(halves(first), halves(second)) else { return false };
    for (y, residue) in residue.into_iter().enumerate() {
        let row = area.row(y);
        *row = low(added(load_two(row, &[0; 8]), residue));
    }
    true
}

#[target_feature(enable = "avx2")]
fn means_to_two(samples: &mut [u8], at: usize, stride: usize, [first, second]: [i16; 2]) -> bool {
    let Some(mut area) = Area::<4, 8>::new(samples, at, stride) else { return false };
    let means = _mm_unpacklo_epi64(_mm_set1_epi16(first), _mm_set1_epi16(second));
    // Where the sum saturates, so does every sample.
    let residue = _mm_srai_epi16::<3>(_mm_adds_epi16(means, _mm_set1_epi16(4)));
    for y in 0..4 {
        let row = area.row(y);
        *row = low(added(load_two(row, &[0; 8]), residue));
    }
    true
}

#[target_feature(enable = "avx2")]
fn to_one(samples: &mut [u8], at: usize, stride: usize, block: &[i16; 16]) -> bool {
    let Some(mut area) = Area::<4, 4>::new(samples, at, stride) else { return false };
    let Some(residue) = residue(halves(block), [_mm_setzero_si128(); 2]) else { return false };
    for (y, residue) in residue.into_iter().enumerate() {
        let row = area.row(y);
        let sum = added(_mm_cvtsi32_si128(i32::from_le_bytes(*row)), residue);
        *row = _mm_cvtsi128_si32(sum).to_le_bytes();
    }
    true
}

/// Two rows each.
#[inline]
#[target_feature(enable = "avx2")]
fn halves(block: &[i16; 16]) -> [Half; 2] {
    let half = |at: usize| {
        let [a, b, c, d, e, f, g, h] = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| block[at + i]);
        _mm_setr_epi16(a, b, c, d, e, f, g, h)
    };
    [half(0), half(8)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn added(samples: Half, residue: Half) -> Half {
    let sum = _mm_add_epi16(_mm_unpacklo_epi8(samples, _mm_setzero_si128()), residue);
    _mm_packus_epi16(sum, sum)
}

/// What is added to each of four rows of eight samples; `None` where a number between the dimensions is too large.
#[inline]
#[target_feature(enable = "avx2")]
fn residue(first: [Half; 2], second: [Half; 2]) -> Option<[Half; 4]> {
    let rows = [
        _mm_unpacklo_epi64(first[0], second[0]),
        _mm_unpackhi_epi64(first[0], second[0]),
        _mm_unpacklo_epi64(first[1], second[1]),
        _mm_unpackhi_epi64(first[1], second[1]),
    ];
    // Wraps around as the twin does, which keeps 16 bits here.
    let kept = cosine(rows);
    // From -8192 to 8191 the second dimension does not overflow: 2 of even and less than 2 of odd ones.
    let beyond = kept
        .map(|row| _mm_srli_epi16::<14>(_mm_add_epi16(row, _mm_set1_epi16(8_192))))
        .into_iter()
        .fold(_mm_setzero_si128(), |all, row| _mm_or_si128(all, row));
    if _mm_movemask_epi8(_mm_cmpeq_epi16(beyond, _mm_setzero_si128())) != 0xFFFF {
        return None;
    }
    let residue = transposed(cosine(transposed(kept)));
    Some(residue.map(|row| _mm_srai_epi16::<3>(_mm_add_epi16(row, _mm_set1_epi16(4)))))
}

/// By the root of 2 times the cosine of pi/8, and times its sine, of which an instruction takes the signed factor.
#[inline]
#[target_feature(enable = "avx2")]
fn by_cosine(value: Half) -> Half {
    _mm_add_epi16(value, _mm_mulhi_epi16(value, _mm_set1_epi16(20_091)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn by_sine(value: Half) -> Half {
    _mm_add_epi16(value, _mm_mulhi_epi16(value, _mm_set1_epi16((35_468 - 65_536) as i16)))
}

/// One dimension, of eight columns.
#[inline]
#[target_feature(enable = "avx2")]
fn cosine([a, b, c, d]: [Half; 4]) -> [Half; 4] {
    let (even, odd) = (_mm_add_epi16(a, c), _mm_sub_epi16(a, c));
    let low = _mm_sub_epi16(by_sine(b), by_cosine(d));
    let high = _mm_add_epi16(by_cosine(b), by_sine(d));
    [_mm_add_epi16(even, high), _mm_add_epi16(odd, low), _mm_sub_epi16(odd, low), _mm_sub_epi16(even, high)]
}

/// Rows and columns of both blocks exchanged.
#[inline]
#[target_feature(enable = "avx2")]
fn transposed([a, b, c, d]: [Half; 4]) -> [Half; 4] {
    let (first, behind) = (_mm_unpacklo_epi16(a, b), _mm_unpacklo_epi16(c, d));
    let (second, last) = (_mm_unpackhi_epi16(a, b), _mm_unpackhi_epi16(c, d));
    // Columns 0 and 1, 2 and 3 of each block.
    let (first, behind) = (_mm_unpacklo_epi32(first, behind), _mm_unpackhi_epi32(first, behind));
    let (second, last) = (_mm_unpacklo_epi32(second, last), _mm_unpackhi_epi32(second, last));
    [
        _mm_unpacklo_epi64(first, second),
        _mm_unpackhi_epi64(first, second),
        _mm_unpacklo_epi64(behind, last),
        _mm_unpackhi_epi64(behind, last),
    ]
}
