//! What takes the time of a frame, in vectors of x86: the filter over edges, the samples between samples, the inverse
//! cosine transform. Each has a twin without vectors in the file that calls it, which says what is computed; tests
//! compare them. This folder owns all intrinsics and all `unsafe` of VP8; it must not know macroblocks.
#![expect(
    unsafe_code,
    reason = "intrinsics that read and write memory; each is behind a safe function, and each block says what it relies on"
)]

pub(super) mod cosine;
pub(super) mod edges;
pub(super) mod taps;

use std::arch::x86_64::*;

/// A processor that has AVX2, which all functions of this folder need.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// This processor, if it is one.
    #[inline]
    pub(super) fn find() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Sixteen bytes, or eight numbers of 16 bits.
type Half = __m128i;

/// Rows of a plane that were found to lie in it: `BYTES` bytes of each of `ROWS` rows.
struct Area<'a, const ROWS: usize, const BYTES: usize> {
    samples: &'a mut [u8],
    stride: usize,
}

impl<'a, const ROWS: usize, const BYTES: usize> Area<'a, ROWS, BYTES> {
    /// Those from sample `at` on; `None` where the plane has not so many.
    #[inline(always)]
    fn new(samples: &'a mut [u8], at: usize, stride: usize) -> Option<Self> {
        let samples = samples.get_mut(at..)?;
        (stride.checked_mul(ROWS - 1)?.checked_add(BYTES)? <= samples.len())
            .then_some(Self { samples, stride })
    }

    /// Row `y`, which must be one of them.
    #[inline(always)]
    fn row(&mut self, y: usize) -> &mut [u8; BYTES] {
        assert!(y < ROWS, "a row of the area");
        let row: *mut [u8; BYTES] = self.samples.as_mut_ptr().wrapping_add(y * self.stride).cast();
        // SAFETY: `new` found BYTES bytes from `(ROWS - 1) * stride` on in the samples, and `y` is at most ROWS - 1;
        // the samples are borrowed as long as the row.
        unsafe { &mut *row }
    }
}

#[inline(always)]
fn load(bytes: &[u8; 16]) -> Half {
    // SAFETY: 16 bytes are read, at any address.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline(always)]
fn store(value: Half, bytes: &mut [u8; 16]) {
    // SAFETY: 16 bytes are written, at any address.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) };
}

/// Eight bytes, and eight more.
#[inline]
#[target_feature(enable = "avx2")]
fn load_two(first: &[u8; 8], second: &[u8; 8]) -> Half {
    _mm_set_epi64x(i64::from_le_bytes(*second), i64::from_le_bytes(*first))
}

#[inline]
#[target_feature(enable = "avx2")]
fn low(value: Half) -> [u8; 8] {
    _mm_cvtsi128_si64(value).to_le_bytes()
}

#[inline]
#[target_feature(enable = "avx2")]
fn high(value: Half) -> [u8; 8] {
    low(_mm_unpackhi_epi64(value, value))
}
