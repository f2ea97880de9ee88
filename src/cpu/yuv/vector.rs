//! Eight bits with chroma of half the columns and rows, which most videos have, by AVX2: the same integers as in
//! `yuv.rs`. All of those are multiples of 32 here, so that 16 bits do for what is multiplied.
#![expect(
    unsafe_code,
    reason = "intrinsics that read and write memory; each is behind a safe function, and each block says what it relies on"
)]

use std::arch::x86_64::*;

use super::{Factors, Layout, Planes};

/// Pixels that are made at a time, and their samples of chroma.
const AT_ONCE: usize = 16;
const SAMPLES: usize = AT_ONCE / 2;

/// [`super::to_rgb`], where it is for such pictures and the processor has AVX2. Whether it was done.
pub(super) fn to_rgb(planes: &dyn Planes, layout: Layout, factors: Factors, out: &mut [u8]) -> bool {
    let Layout { width, height, depth, halved, spread } = layout;
    // Each sample of chroma lies in the middle of four pixels.
    let is_central = !spread || width.is_multiple_of(2) && height.is_multiple_of(2);
    if depth != 8 || halved != Some([1, 1]) || !is_central || !is_x86_feature_detected!("avx2") {
        return false;
    }
    let Some(weights) = Weights::new(factors) else { return false };
    let blocks = width.div_ceil(AT_ONCE);
    let mut rows = Rows {
        size: [width.div_ceil(2), height.div_ceil(2)],
        kept: [(); 3].map(|()| Row { y: usize::MAX, samples: [(); 2].map(|()| vec![0; blocks * SAMPLES]) }),
        mixed: [(); 2].map(|()| vec![0; blocks * SAMPLES + 2]),
    };
    let mut luma = vec![0; blocks * AT_ONCE];
    for (y, out) in out.chunks_exact_mut(width * 3).take(height).enumerate() {
        let Some(samples) = luma.get_mut(..width) else { return false };
        planes.read(0, y, samples);
        rows.mix(planes, y);
        // SAFETY: the processor has AVX2.
        unsafe { convert(&luma, &rows.mixed, &weights, out) };
    }
    true
}

/// How much luma and chroma count, in pairs that are multiplied together.
struct Weights {
    /// What 16 times luma is less by.
    black: i16,
    red: [i16; 2],
    blue: [i16; 2],
    /// Of red and blue chroma.
    green: [i16; 2],
    /// Of luma, and of a number that makes sums round.
    luma: [i16; 2],
}

/// The number, and what it counts: half of what sums are divided by.
const HALF: [i16; 2] = [1 << 14, 1 << 2];
/// Bits that sums have more than levels.
const SHIFT: i32 = 17;

impl Weights {
    /// `None` where one has more than 16 bits.
    fn new(factors: Factors) -> Option<Self> {
        let of = |factor: i32| i16::try_from(factor).ok();
        let luma = of(factors.luma)?;
        Some(Self {
            black: of(factors.black >> 5)?,
            red: [of(factors.red_of_red)?, luma],
            blue: [of(factors.blue_of_blue)?, luma],
            green: [of(factors.green_of_red)?, of(factors.green_of_blue)?],
            luma: [luma, HALF[1]],
        })
    }
}

/// A row of blue and red as it is read.
struct Row {
    y: usize,
    samples: [Vec<u16>; 2],
}

/// Rows of chroma.
struct Rows {
    /// Columns and rows.
    size: [usize; 2],
    /// Of three rows beside one another each at its number's place.
    kept: [Row; 3],
    /// Four times the chroma of a row of pixels, with a sample more on each side.
    mixed: [Vec<u16>; 2],
}

impl Rows {
    /// Mixes the chroma of row `y` of the pixels: three parts of its own row, and one of the row on the other side.
    fn mix(&mut self, planes: &dyn Planes, y: usize) {
        let [columns, rows] = self.size;
        let near = y / 2;
        let far =
            if y.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(rows.saturating_sub(1)) };
        for wanted in [near, far] {
            let Some(kept) = self.kept.get_mut(wanted % 3).filter(|kept| kept.y != wanted) else { continue };
            kept.y = wanted;
            for (plane, samples) in [1, 2].into_iter().zip(&mut kept.samples) {
                planes.read(plane, wanted, samples.get_mut(..columns).unwrap_or_default());
            }
        }
        let [near, far] = [near, far].map(|row| &self.kept[row % 3].samples);
        for ((mixed, near), far) in self.mixed.iter_mut().zip(near).zip(far) {
            let Some(inside) = mixed.get_mut(1..=columns) else { continue };
            for ((mixed, near), far) in inside.iter_mut().zip(near).zip(far) {
                *mixed = near * 3 + far;
            }
            // Beyond the ends their samples go on.
            let ends = [inside.first(), inside.last()].map(|end| end.copied().unwrap_or_default());
            (mixed[0], mixed[columns + 1]) = (ends[0], ends[1]);
        }
    }
}

/// Makes one row of pixels.
#[target_feature(enable = "avx2")]
fn convert(luma: &[u16], [blue, red]: &[Vec<u16>; 2], weights: &Weights, out: &mut [u8]) {
    let luma = luma.as_chunks::<AT_ONCE>().0;
    let samples = blue.windows(SAMPLES + 2).zip(red.windows(SAMPLES + 2)).step_by(SAMPLES);
    let mut pixels = out.chunks_mut(3 * AT_ONCE);
    for ((luma, (blue, red)), out) in luma.iter().zip(samples).zip(&mut pixels) {
        let (Some(blue), Some(red)) = (blue.first_chunk(), red.first_chunk()) else { return };
        let made = block(luma, blue, red, weights);
        match out.first_chunk_mut() {
            Some(out) => store(made, out),
            None => {
                let mut whole = [0; 3 * AT_ONCE];
                store(made, &mut whole);
                out.copy_from_slice(&whole[..out.len()]);
            }
        }
    }
}

/// Red, green and blue of sixteen pixels, in 16 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn block(
    luma: &[u16; AT_ONCE],
    blue: &[u16; SAMPLES + 2],
    red: &[u16; SAMPLES + 2],
    weights: &Weights,
) -> [__m256i; 3] {
    let pair = |[a, b]: [i16; 2]| _mm256_set1_epi32(i32::from(b) << 16 | i32::from(a as u16));
    // SAFETY: 16 numbers of 16 bits are read.
    let luma = unsafe { _mm256_loadu_si256(luma.as_ptr().cast()) };
    let luma = _mm256_sub_epi16(_mm256_slli_epi16::<4>(luma), _mm256_set1_epi16(weights.black));
    let (blue, red) = (spread(blue), spread(red));
    // Sums of two products each, divided: of the lower and the upper halves of both parts.
    let sums = |a: __m256i, b: __m256i, by: __m256i| {
        [
            _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), by),
            _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), by),
        ]
    };
    let levels = |[low, high]: [__m256i; 2], [more_low, more_high]: [__m256i; 2]| {
        let (low, high) = (_mm256_add_epi32(low, more_low), _mm256_add_epi32(high, more_high));
        _mm256_packs_epi32(_mm256_srai_epi32::<SHIFT>(low), _mm256_srai_epi32::<SHIFT>(high))
    };
    let half = [_mm256_set1_epi32(i32::from(HALF[0]) * i32::from(HALF[1])); 2];
    let with_luma = |chroma: __m256i, by: [i16; 2]| levels(sums(chroma, luma, pair(by)), half);
    let level = sums(luma, _mm256_set1_epi16(HALF[0]), pair(weights.luma));
    let green = levels(sums(red, blue, pair(weights.green)), level);
    [with_luma(red, weights.red), green, with_luma(blue, weights.blue)]
}

/// Chroma of sixteen pixels, as 16 times its distance from gray: three parts of a sample, and one of that beside it.
#[inline]
#[target_feature(enable = "avx2")]
fn spread(samples: &[u16; SAMPLES + 2]) -> __m256i {
    let at = |first: usize| {
        assert!(first <= 2, "eight of ten samples");
        // SAFETY: 8 of the 10 numbers are read, from at most the third on.
        unsafe { _mm_loadu_si128(samples.as_ptr().wrapping_add(first).cast()) }
    };
    let here = at(1);
    let here = _mm_sub_epi16(_mm_add_epi16(here, _mm_add_epi16(here, here)), _mm_set1_epi16(128 << 4));
    let (first, second) = (_mm_add_epi16(here, at(0)), _mm_add_epi16(here, at(2)));
    _mm256_set_m128i(_mm_unpackhi_epi16(first, second), _mm_unpacklo_epi16(first, second))
}

/// Which of eight reds, then eight greens, byte `at` of eight pixels is; of blue ones none.
const fn red_or_green(at: usize) -> i8 {
    if at < 24 && at % 3 < 2 { (at % 3 * 8 + at / 3) as i8 } else { -1 }
}

/// Which of eight blues it is; of others none.
const fn only_blue(at: usize) -> i8 {
    if at < 24 && at % 3 == 2 { (at / 3) as i8 } else { -1 }
}

const fn places(of_blue: bool, first: usize) -> [i8; 16] {
    let (mut places, mut at) = ([-1; 16], 0);
    while at < 16 {
        places[at] = if of_blue { only_blue(first + at) } else { red_or_green(first + at) };
        at += 1;
    }
    places
}

static RED_AND_GREEN: [[i8; 16]; 2] = [places(false, 0), places(false, 16)];
static BLUE: [[i8; 16]; 2] = [places(true, 0), places(true, 16)];

/// Writes sixteen pixels, saturated.
#[inline]
#[target_feature(enable = "avx2")]
fn store([red, green, blue]: [__m256i; 3], out: &mut [u8; 3 * AT_ONCE]) {
    let (others, blue) = (_mm256_packus_epi16(red, green), _mm256_packus_epi16(blue, blue));
    let places = |places: &[i8; 16]| {
        // SAFETY: 16 bytes are read.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(places.as_ptr().cast()) })
    };
    let made = [0, 1].map(|part| {
        let others = _mm256_shuffle_epi8(others, places(&RED_AND_GREEN[part]));
        _mm256_or_si256(others, _mm256_shuffle_epi8(blue, places(&BLUE[part])))
    });
    let halves = made.map(|made| (_mm256_castsi256_si128(made), _mm256_extracti128_si256::<1>(made)));
    let [(first, third), (second, last)] = halves;
    for (out, (whole, rest)) in out.as_chunks_mut::<24>().0.iter_mut().zip([(first, second), (third, last)]) {
        let (start, end) = out.split_at_mut(16);
        // SAFETY: 16 bytes are written, which `start` has.
        unsafe { _mm_storeu_si128(start.as_mut_ptr().cast(), whole) };
        // SAFETY: 8 bytes are written, which `end` has.
        unsafe { _mm_storel_epi64(end.as_mut_ptr().cast(), rest) };
    }
}
