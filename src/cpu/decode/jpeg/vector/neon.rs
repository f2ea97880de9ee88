//! Vectors of NEON: one part of 128 bits.

use std::arch::aarch64::*;

use super::Vector;

/// Eight lanes of 16 bits. Every processor of this architecture has the instructions.
#[derive(Clone, Copy)]
pub(super) struct Neon(int16x8_t);

/// Methods that are one instruction on 16-bit lanes.
macro_rules! on16 {
    ($($name:ident = $instruction:ident;)*) => { $(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            // SAFETY: NEON is part of the architecture.
            Self(unsafe { $instruction(self.0, other.0) })
        }
    )* };
}

/// Methods that are one instruction on 32-bit lanes.
macro_rules! on32 {
    ($($name:ident = $instruction:ident;)*) => { $(
        #[inline(always)]
        fn $name(self, other: Self) -> Self {
            // SAFETY: as above.
            Self::of32(unsafe { $instruction(self.as32(), other.as32()) })
        }
    )* };
}

impl Neon {
    #[inline(always)]
    fn as32(self) -> int32x4_t {
        // SAFETY: as above.
        unsafe { vreinterpretq_s32_s16(self.0) }
    }
    #[inline(always)]
    fn of32(value: int32x4_t) -> Self {
        // SAFETY: as above.
        Self(unsafe { vreinterpretq_s16_s32(value) })
    }
    #[inline(always)]
    fn as8(self) -> uint8x16_t {
        // SAFETY: as above.
        unsafe { vreinterpretq_u8_s16(self.0) }
    }
    #[inline(always)]
    fn of8(value: uint8x16_t) -> Self {
        // SAFETY: as above.
        Self(unsafe { vreinterpretq_s16_u8(value) })
    }
    /// The even pixels of a channel and the odd ones in turn.
    #[inline(always)]
    fn in_order(self) -> uint8x16_t {
        // SAFETY: as above.
        let swapped = unsafe { vextq_u8::<8>(self.as8(), self.as8()) };
        // SAFETY: as above.
        unsafe { vzip1q_u8(self.as8(), swapped) }
    }
}

/// Where the bytes of 4 x 4 go when rows and columns are exchanged.
static TURNED: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

impl Vector for Neon {
    const PARTS: usize = 1;

    on16! {
        and = vandq_s16;
        or = vorrq_s16;
        add16 = vaddq_s16;
        sub16 = vsubq_s16;
        mul16 = vmulq_s16;
        mulround16 = vqrdmulhq_s16;
        low16 = vzip1q_s16;
        high16 = vzip2q_s16;
    }

    on32! {
        add32 = vaddq_s32;
        sub32 = vsubq_s32;
        low32 = vzip1q_s32;
        high32 = vzip2q_s32;
        even32 = vuzp1q_s32;
        odd32 = vuzp2q_s32;
    }

    #[inline(always)]
    fn splat16(value: i16) -> Self {
        // SAFETY: as above.
        Self(unsafe { vdupq_n_s16(value) })
    }
    #[inline(always)]
    fn splat32(value: i32) -> Self {
        // SAFETY: as above.
        Self::of32(unsafe { vdupq_n_s32(value) })
    }
    #[inline(always)]
    fn load(from: &[i16]) -> Self {
        let from = &from[..8];
        // SAFETY: the slice has 16 bytes.
        Self(unsafe { vld1q_s16(from.as_ptr()) })
    }
    #[inline(always)]
    fn load_each(from: &[i16; 8]) -> Self {
        Self::load(from)
    }
    #[inline(always)]
    fn load_bytes(from: &[u8]) -> Self {
        let from = &from[..16];
        // SAFETY: the slice has 16 bytes.
        Self::of8(unsafe { vld1q_u8(from.as_ptr()) })
    }
    #[inline(always)]
    fn widen(from: &[u8]) -> Self {
        let from = &from[..8];
        // SAFETY: the slice has 8 bytes.
        let bytes = unsafe { vld1_u8(from.as_ptr()) };
        // SAFETY: as above.
        let wide = unsafe { vmovl_u8(bytes) };
        // SAFETY: as above.
        Self(unsafe { vreinterpretq_s16_u16(wide) })
    }
    #[inline(always)]
    fn store(self, to: &mut [i16]) {
        let to = &mut to[..8];
        // SAFETY: the slice has 16 bytes.
        unsafe { vst1q_s16(to.as_mut_ptr(), self.0) };
    }
    #[inline(always)]
    fn store_halves(self, a: &mut [u8], b: &mut [u8]) {
        let (a, b) = (&mut a[..8], &mut b[..8]);
        // SAFETY: as above.
        let low = unsafe { vget_low_u8(self.as8()) };
        // SAFETY: as above.
        let high = unsafe { vget_high_u8(self.as8()) };
        // SAFETY: the slice has 8 bytes.
        unsafe { vst1_u8(a.as_mut_ptr(), low) };
        // SAFETY: the slice has 8 bytes.
        unsafe { vst1_u8(b.as_mut_ptr(), high) };
    }
    #[inline(always)]
    fn store_pixels([r, g, b]: [Self; 3], to: &mut [u8]) {
        let to = &mut to[..48];
        let channels = uint8x16x3_t(r.in_order(), g.in_order(), b.in_order());
        // SAFETY: the slice has 48 bytes.
        unsafe { vst3q_u8(to.as_mut_ptr(), channels) };
    }
    #[inline(always)]
    fn is_zero(self) -> bool {
        // SAFETY: as above.
        unsafe { vmaxvq_u8(self.as8()) == 0 }
    }
    #[inline(always)]
    fn madd(self, other: Self) -> Self {
        // SAFETY: as above.
        let a = unsafe { vget_low_s16(self.0) };
        // SAFETY: as above.
        let b = unsafe { vget_low_s16(other.0) };
        // SAFETY: as above.
        let low = unsafe { vmull_s16(a, b) };
        // SAFETY: as above.
        let high = unsafe { vmull_high_s16(self.0, other.0) };
        // SAFETY: as above.
        Self::of32(unsafe { vpaddq_s32(low, high) })
    }
    #[inline(always)]
    fn sra16<const N: u32>(self) -> Self {
        // A shift to the left by less than nothing is one to the right.
        // SAFETY: as above.
        Self(unsafe { vshlq_s16(self.0, Self::splat16(-(N as i16)).0) })
    }
    #[inline(always)]
    fn srl16<const N: u32>(self) -> Self {
        let count = Self::splat16(-(N as i16));
        // SAFETY: as above.
        let bits = unsafe { vreinterpretq_u16_s16(self.0) };
        // SAFETY: as above.
        let moved = unsafe { vshlq_u16(bits, count.0) };
        // SAFETY: as above.
        Self(unsafe { vreinterpretq_s16_u16(moved) })
    }
    #[inline(always)]
    fn sra32<const N: u32>(self) -> Self {
        let count = Self::splat32(-(N as i32));
        // SAFETY: as above.
        Self::of32(unsafe { vshlq_s32(self.as32(), count.as32()) })
    }
    #[inline(always)]
    fn packs32(self, other: Self) -> Self {
        // SAFETY: as above.
        let low = unsafe { vqmovn_s32(self.as32()) };
        // SAFETY: as above.
        Self(unsafe { vqmovn_high_s32(low, other.as32()) })
    }
    #[inline(always)]
    fn packus16(self, other: Self) -> Self {
        // SAFETY: as above.
        let low = unsafe { vqmovun_s16(self.0) };
        // SAFETY: as above.
        Self::of8(unsafe { vqmovun_high_s16(low, other.0) })
    }
    #[inline(always)]
    fn samples8(self, other: Self) -> Self {
        // SAFETY: as above.
        let low = unsafe { vqmovn_s16(self.0) };
        // SAFETY: as above.
        let packed = unsafe { vqmovn_high_s16(low, other.0) };
        // SAFETY: as above.
        let offset = unsafe { vdupq_n_s8(-128) };
        // SAFETY: as above.
        let moved = unsafe { veorq_s8(packed, offset) };
        // SAFETY: as above.
        Self(unsafe { vreinterpretq_s16_s8(moved) })
    }
    #[inline(always)]
    fn turned8(self) -> Self {
        // SAFETY: 16 bytes are read.
        let places = unsafe { vld1q_u8(TURNED.as_ptr()) };
        // SAFETY: as above.
        Self::of8(unsafe { vqtbl1q_u8(self.as8(), places) })
    }
}
