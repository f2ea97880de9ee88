//! Vectors of AVX2: two parts of 128 bits.

use std::arch::x86_64::*;

use super::{Vector, Work};

/// Sixteen lanes of 16 bits. Exists only within [`run`].
#[derive(Clone, Copy)]
pub(super) struct Avx2(__m256i);

/// Does the work with these vectors.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<W: Work>(work: W) -> W::Out {
    work.run::<Avx2>()
}

/// Methods that are one instruction each.
macro_rules! instructions {
    ($($name:ident = $instruction:ident;)*) => { $(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            // SAFETY: the processor has AVX2, or there were no vectors of this kind.
            Self(unsafe { $instruction(self.0, other.0) })
        }
    )* };
}

/// Where the bytes of a channel's 16 pixels go in three rows of 16 bytes, all at once: those for another row lie at
/// places that this row has no use for.
const fn scatter(channel: usize) -> [i8; 16] {
    let mut places = [0; 16];
    let mut byte = 0;
    while byte < 48 {
        if byte % 3 == channel {
            let pixel = byte / 3;
            places[byte % 16] = (pixel % 2 * 8 + pixel / 2) as i8;
        }
        byte += 1;
    }
    places
}

/// Which bytes of a row of 16 belong to a channel.
const fn belongs(row: usize, channel: usize) -> [i8; 16] {
    let mut mask = [0; 16];
    let mut byte = 0;
    while byte < 16 {
        if (row * 16 + byte) % 3 == channel {
            mask[byte] = -1;
        }
        byte += 1;
    }
    mask
}

/// Where the bytes of 4 x 4 go when rows and columns are exchanged.
static TURNED: [i8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

static SCATTER: [[i8; 16]; 3] = [scatter(0), scatter(1), scatter(2)];
static SECOND: [[i8; 16]; 3] = [belongs(0, 1), belongs(1, 1), belongs(2, 1)];
static THIRD: [[i8; 16]; 3] = [belongs(0, 2), belongs(1, 2), belongs(2, 2)];

impl Avx2 {
    /// Two lanes of `self` and two of `other`, part by part.
    #[inline(always)]
    fn lanes32<const WHICH: i32>(self, other: Self) -> Self {
        // SAFETY: AVX2 is there, as above.
        let a = unsafe { _mm256_castsi256_ps(self.0) };
        // SAFETY: as above.
        let b = unsafe { _mm256_castsi256_ps(other.0) };
        // SAFETY: as above.
        let lanes = unsafe { _mm256_shuffle_ps::<WHICH>(a, b) };
        // SAFETY: as above.
        Self(unsafe { _mm256_castps_si256(lanes) })
    }

    /// The same 16 bytes in both parts.
    #[inline(always)]
    fn both(bytes: &[i8; 16]) -> __m256i {
        // SAFETY: 16 bytes are read; AVX2 is there, as above.
        let part = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        // SAFETY: as above.
        unsafe { _mm256_broadcastsi128_si256(part) }
    }

    /// One part to the first 16 bytes of each slice.
    #[inline(always)]
    fn store_parts(value: __m256i, a: &mut [u8], b: &mut [u8]) {
        let (a, b) = (&mut a[..16], &mut b[..16]);
        // SAFETY: AVX2 is there, as above.
        let low = unsafe { _mm256_castsi256_si128(value) };
        // SAFETY: as above.
        let high = unsafe { _mm256_extracti128_si256::<1>(value) };
        // SAFETY: the slice has 16 bytes.
        unsafe { _mm_storeu_si128(a.as_mut_ptr().cast(), low) };
        // SAFETY: the slice has 16 bytes.
        unsafe { _mm_storeu_si128(b.as_mut_ptr().cast(), high) };
    }
}

impl Vector for Avx2 {
    const PARTS: usize = 2;

    #[inline(always)]
    fn deposit(bits: u64, places: u64) -> u64 {
        // SAFETY: the processor has BMI2: only `run` asks for vectors of this kind.
        unsafe { _pdep_u64(bits, places) }
    }

    instructions! {
        and = _mm256_and_si256;
        or = _mm256_or_si256;
        add16 = _mm256_add_epi16;
        sub16 = _mm256_sub_epi16;
        mul16 = _mm256_mullo_epi16;
        mulround16 = _mm256_mulhrs_epi16;
        madd = _mm256_madd_epi16;
        add32 = _mm256_add_epi32;
        sub32 = _mm256_sub_epi32;
        packs32 = _mm256_packs_epi32;
        packus16 = _mm256_packus_epi16;
        low16 = _mm256_unpacklo_epi16;
        high16 = _mm256_unpackhi_epi16;
        low32 = _mm256_unpacklo_epi32;
        high32 = _mm256_unpackhi_epi32;
    }

    #[inline(always)]
    fn splat16(value: i16) -> Self {
        // SAFETY: the processor has AVX2: only `run` asks for vectors of this kind.
        Self(unsafe { _mm256_set1_epi16(value) })
    }
    #[inline(always)]
    fn splat32(value: i32) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm256_set1_epi32(value) })
    }
    #[inline(always)]
    fn load(from: &[i16]) -> Self {
        let from = &from[..16];
        // SAFETY: the slice has 32 bytes.
        Self(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_each(from: &[i16; 8]) -> Self {
        Self(Self::both(bytemuck::cast_ref(from)))
    }
    #[inline(always)]
    fn load_bytes(from: &[u8]) -> Self {
        let from = &from[..32];
        // SAFETY: the slice has 32 bytes.
        Self(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn widen(from: &[u8]) -> Self {
        let from = &from[..16];
        // SAFETY: the slice has 16 bytes.
        let bytes = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        // SAFETY: AVX2 is there, as above.
        Self(unsafe { _mm256_cvtepu8_epi16(bytes) })
    }
    #[inline(always)]
    fn store(self, to: &mut [i16]) {
        let to = &mut to[..16];
        // SAFETY: the slice has 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), self.0) };
    }
    #[inline(always)]
    fn store_halves(self, a: &mut [u8], b: &mut [u8]) {
        // SAFETY: AVX2 is there, as above.
        let sorted = unsafe { _mm256_permute4x64_epi64::<0b11_01_10_00>(self.0) };
        Self::store_parts(sorted, a, b);
    }
    #[inline(always)]
    fn store_pixels(channels: [Self; 3], to: &mut [u8]) {
        let (first, second) = to[..96].split_at_mut(48);
        let mut scattered = channels;
        for (channel, places) in scattered.iter_mut().zip(&SCATTER) {
            // SAFETY: AVX2 is there, as above.
            channel.0 = unsafe { _mm256_shuffle_epi8(channel.0, Self::both(places)) };
        }
        let [r, g, b] = scattered;
        for row in 0..3 {
            let (second_mask, third_mask) = (Self::both(&SECOND[row]), Self::both(&THIRD[row]));
            // SAFETY: AVX2 is there, as above.
            let two = unsafe { _mm256_blendv_epi8(r.0, g.0, second_mask) };
            // SAFETY: as above.
            let three = unsafe { _mm256_blendv_epi8(two, b.0, third_mask) };
            Self::store_parts(three, &mut first[16 * row..], &mut second[16 * row..]);
        }
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: AVX2 is there, as above.
        unsafe { _mm256_testz_si256(self.0, self.0) != 0 }
    }
    #[inline(always)]
    fn samples8(self, other: Self) -> Self {
        // SAFETY: AVX2 is there, as above.
        let packed = unsafe { _mm256_packs_epi16(self.0, other.0) };
        // SAFETY: as above.
        let offset = unsafe { _mm256_set1_epi8(-128) };
        // SAFETY: as above.
        Self(unsafe { _mm256_xor_si256(packed, offset) })
    }
    #[inline(always)]
    fn even32(self, other: Self) -> Self {
        self.lanes32::<0b10_00_10_00>(other)
    }
    #[inline(always)]
    fn odd32(self, other: Self) -> Self {
        self.lanes32::<0b11_01_11_01>(other)
    }
    #[inline(always)]
    fn turned8(self) -> Self {
        // SAFETY: AVX2 is there, as above.
        Self(unsafe { _mm256_shuffle_epi8(self.0, Self::both(&TURNED)) })
    }
    #[inline(always)]
    fn sra16<const N: u32>(self) -> Self {
        // SAFETY: AVX2 is there, as above.
        let count = unsafe { _mm_cvtsi32_si128(N as i32) };
        // SAFETY: as above.
        Self(unsafe { _mm256_sra_epi16(self.0, count) })
    }
    #[inline(always)]
    fn srl16<const N: u32>(self) -> Self {
        // SAFETY: AVX2 is there, as above.
        let count = unsafe { _mm_cvtsi32_si128(N as i32) };
        // SAFETY: as above.
        Self(unsafe { _mm256_srl_epi16(self.0, count) })
    }
    #[inline(always)]
    fn sra32<const N: u32>(self) -> Self {
        // SAFETY: AVX2 is there, as above.
        let count = unsafe { _mm_cvtsi32_si128(N as i32) };
        // SAFETY: as above.
        Self(unsafe { _mm256_sra_epi32(self.0, count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_three_rows_is_one_sample_of_a_pixel() {
        for byte in 0..48 {
            let (pixel, row) = (byte / 3, byte / 16);
            let owners: Vec<usize> =
                (0..3).filter(|&channel| belongs(row, channel)[byte % 16] == -1).collect();
            assert_eq!(owners, [byte % 3], "byte {byte}");
            // Even pixels stand in the first half of a vector, odd ones in the second.
            let place = scatter(byte % 3)[byte % 16] as usize;
            assert_eq!((place / 8, place % 8), (pixel % 2, pixel / 2), "byte {byte}");
        }
    }
}
