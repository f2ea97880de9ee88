//! Vectors of AVX-512 with BW, VBMI and VNNI: four parts of 128 bits.

use std::arch::x86_64::*;

use super::{Vector, Work};

/// Thirty-two lanes of 16 bits. Exists only within [`run`].
#[derive(Clone, Copy)]
pub(super) struct Avx512(__m512i);

/// Does the work with these vectors.
#[target_feature(enable = "avx512bw,avx512vbmi,avx512vnni,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<W: Work>(work: W) -> W::Out {
    work.run::<Avx512>()
}

/// Methods that are one instruction each.
macro_rules! instructions {
    ($($name:ident = $instruction:ident;)*) => { $(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            // SAFETY: the processor has AVX-512 BW and VBMI, or there were no vectors of this kind.
            Self(unsafe { $instruction(self.0, other.0) })
        }
    )* };
}

macro_rules! shifts {
    ($($name:ident = $instruction:ident;)*) => { $(
        #[inline(always)]
        fn $name<const N: u32>(self) -> Self {
            // SAFETY: as above.
            Self(unsafe { $instruction::<N>(self.0) })
        }
    )* };
}

/// How 64 of 192 bytes of pixels are picked: which byte of the first two channels, which one of the third, and where
/// the third one goes.
struct Pick {
    two: [u8; 64],
    third: [u8; 64],
    mask: u64,
}

const fn pick(row: usize) -> Pick {
    let mut pick = Pick { two: [0; 64], third: [0; 64], mask: 0 };
    let mut i = 0;
    while i < 64 {
        let byte = row * 64 + i;
        let (pixel, channel) = (byte / 3, byte % 3);
        // Part by part, the even pixels first.
        let at = (pixel / 16 * 16 + pixel % 2 * 8 + pixel % 16 / 2) as u8;
        if channel == 2 {
            pick.third[i] = at;
            pick.mask |= 1 << i;
        } else {
            pick.two[i] = at + 64 * channel as u8;
        }
        i += 1;
    }
    pick
}

/// Where the bytes of 4 x 4 go when rows and columns are exchanged.
static TURNED: [i8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

static PICKS: [Pick; 3] = [pick(0), pick(1), pick(2)];

impl Avx512 {
    /// Two lanes of `self` and two of `other`, part by part.
    #[inline(always)]
    fn lanes32<const WHICH: i32>(self, other: Self) -> Self {
        // SAFETY: AVX-512 is there, as above.
        let a = unsafe { _mm512_castsi512_ps(self.0) };
        // SAFETY: as above.
        let b = unsafe { _mm512_castsi512_ps(other.0) };
        // SAFETY: as above.
        let lanes = unsafe { _mm512_shuffle_ps::<WHICH>(a, b) };
        // SAFETY: as above.
        Self(unsafe { _mm512_castps_si512(lanes) })
    }

    #[inline(always)]
    fn of(bytes: &[u8; 64]) -> __m512i {
        // SAFETY: 64 bytes are read; AVX-512 is there, as above.
        unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store_bytes(value: __m512i, to: &mut [u8]) {
        let to = &mut to[..64];
        // SAFETY: the slice has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), value) };
    }

    #[inline(always)]
    fn store_half(value: __m256i, to: &mut [u8]) {
        let to = &mut to[..32];
        // SAFETY: the slice has 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), value) };
    }
}

impl Vector for Avx512 {
    const PARTS: usize = 4;

    #[inline(always)]
    fn deposit(bits: u64, places: u64) -> u64 {
        // SAFETY: the processor has BMI2: only `run` asks for vectors of this kind.
        unsafe { _pdep_u64(bits, places) }
    }

    instructions! {
        and = _mm512_and_si512;
        or = _mm512_or_si512;
        add16 = _mm512_add_epi16;
        sub16 = _mm512_sub_epi16;
        mul16 = _mm512_mullo_epi16;
        mulround16 = _mm512_mulhrs_epi16;
        madd = _mm512_madd_epi16;
        add32 = _mm512_add_epi32;
        sub32 = _mm512_sub_epi32;
        packs32 = _mm512_packs_epi32;
        packus16 = _mm512_packus_epi16;
        low16 = _mm512_unpacklo_epi16;
        high16 = _mm512_unpackhi_epi16;
        low32 = _mm512_unpacklo_epi32;
        high32 = _mm512_unpackhi_epi32;
    }

    #[inline(always)]
    fn madd_to(self, other: Self, sum: Self) -> Self {
        // SAFETY: AVX-512 VNNI is there: only `run` asks for vectors of this kind.
        Self(unsafe { _mm512_dpwssd_epi32(sum.0, self.0, other.0) })
    }

    shifts! {
        sra16 = _mm512_srai_epi16;
        srl16 = _mm512_srli_epi16;
        sra32 = _mm512_srai_epi32;
    }

    #[inline(always)]
    fn splat16(value: i16) -> Self {
        // SAFETY: the processor has AVX-512: only `run` asks for vectors of this kind.
        Self(unsafe { _mm512_set1_epi16(value) })
    }
    #[inline(always)]
    fn splat32(value: i32) -> Self {
        // SAFETY: as above.
        Self(unsafe { _mm512_set1_epi32(value) })
    }
    #[inline(always)]
    fn load(from: &[i16]) -> Self {
        let from = &from[..32];
        // SAFETY: the slice has 64 bytes.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn load_each(from: &[i16; 8]) -> Self {
        // SAFETY: 16 bytes are read; AVX-512 is there, as above.
        let part = unsafe { _mm_loadu_si128(from.as_ptr().cast()) };
        // SAFETY: as above.
        Self(unsafe { _mm512_broadcast_i32x4(part) })
    }
    #[inline(always)]
    fn load_bytes(from: &[u8]) -> Self {
        let from = &from[..64];
        // SAFETY: the slice has 64 bytes.
        Self(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn widen(from: &[u8]) -> Self {
        let from = &from[..32];
        // SAFETY: the slice has 32 bytes.
        let bytes = unsafe { _mm256_loadu_si256(from.as_ptr().cast()) };
        // SAFETY: AVX-512 is there, as above.
        Self(unsafe { _mm512_cvtepu8_epi16(bytes) })
    }
    #[inline(always)]
    fn store(self, to: &mut [i16]) {
        let to = &mut to[..32];
        // SAFETY: the slice has 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) };
    }
    #[inline(always)]
    fn store_halves(self, a: &mut [u8], b: &mut [u8]) {
        // SAFETY: AVX-512 is there, as above.
        let order = unsafe { _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7) };
        // SAFETY: as above.
        let sorted = unsafe { _mm512_permutexvar_epi64(order, self.0) };
        // SAFETY: as above.
        Self::store_half(unsafe { _mm512_castsi512_si256(sorted) }, a);
        // SAFETY: as above.
        Self::store_half(unsafe { _mm512_extracti64x4_epi64::<1>(sorted) }, b);
    }
    #[inline(always)]
    fn store_pixels([r, g, b]: [Self; 3], to: &mut [u8]) {
        let to = &mut to[..192];
        for (row, pick) in PICKS.iter().enumerate() {
            // SAFETY: AVX-512 VBMI is there, as above.
            let two = unsafe { _mm512_permutex2var_epi8(r.0, Self::of(&pick.two), g.0) };
            // SAFETY: as above.
            let all = unsafe { _mm512_mask_permutexvar_epi8(two, pick.mask, Self::of(&pick.third), b.0) };
            Self::store_bytes(all, &mut to[64 * row..]);
        }
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: AVX-512 is there, as above.
        unsafe { _mm512_test_epi16_mask(self.0, self.0) == 0 }
    }
    #[inline(always)]
    fn samples8(self, other: Self) -> Self {
        // SAFETY: AVX-512 is there, as above.
        let packed = unsafe { _mm512_packs_epi16(self.0, other.0) };
        // SAFETY: as above.
        let offset = unsafe { _mm512_set1_epi8(-128) };
        // SAFETY: as above.
        Self(unsafe { _mm512_xor_si512(packed, offset) })
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
        // SAFETY: 16 bytes are read; AVX-512 is there, as above.
        let part = unsafe { _mm_loadu_si128(TURNED.as_ptr().cast()) };
        // SAFETY: as above.
        let places = unsafe { _mm512_broadcast_i32x4(part) };
        // SAFETY: as above.
        Self(unsafe { _mm512_shuffle_epi8(self.0, places) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_three_rows_is_one_sample_of_a_pixel() {
        for byte in 0..192 {
            let (pixel, channel, made) = (byte / 3, byte % 3, pick(byte / 64));
            let at = byte % 64;
            assert_eq!(made.mask >> at & 1 == 1, channel == 2, "byte {byte}");
            let place =
                usize::from(if channel == 2 { made.third[at] } else { made.two[at] }) - channel % 2 * 64;
            // In each part of sixteen, even pixels stand in the first half, odd ones in the second.
            assert_eq!(
                (place / 16, place % 16 / 8, place % 8),
                (pixel / 16, pixel % 2, pixel % 16 / 2),
                "byte {byte}"
            );
        }
    }
}
