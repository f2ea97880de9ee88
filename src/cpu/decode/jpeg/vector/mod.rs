//! Vectors of 16-bit lanes: the operations that the transform and the colours of JPEG are made of, for each kind of
//! processor. This folder owns all intrinsics and all `unsafe` of our JPEG decoder; it must not know what a JPEG is.
//!
//! Every kind computes the same bits: saturation, wrapping and rounding are those of SSE2, which libjpeg-turbo's own
//! vector code is defined by. Vectors are made of 128-bit parts that do not mix; a kind has one, two or four of them.
//!
//! What keeps it sound: vectors of a kind are made only in functions that [`Vectors::run`] calls, and it calls them
//! only on a processor that has the instructions.
#![expect(
    unsafe_code,
    reason = "intrinsics; each is behind a safe function, and each block says what it relies on"
)]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod plain;

/// The most 128-bit parts that a vector has.
pub(super) const MOST_PARTS: usize = 4;

/// Operations on vectors. `16`, `32` and `8` in a name are the bits of the lanes that it works on.
pub(super) trait Vector: Copy {
    /// 128-bit parts.
    const PARTS: usize;

    /// The lowest bits of `bits`, in their order, at the places where `places` has ones. No vectors, but one
    /// instruction where there are some.
    #[inline(always)]
    fn deposit(mut bits: u64, mut places: u64) -> u64 {
        let mut deposited = 0;
        while places != 0 {
            if bits & 1 != 0 {
                deposited |= places & places.wrapping_neg();
            }
            (bits, places) = (bits >> 1, places & (places - 1));
        }
        deposited
    }

    /// The same number in all lanes.
    fn splat16(value: i16) -> Self;
    fn splat32(value: i32) -> Self;
    /// The first lanes of `from`.
    fn load(from: &[i16]) -> Self;
    /// The same eight lanes in each part.
    fn load_each(from: &[i16; 8]) -> Self;
    /// Two bytes a lane, as they lie in memory.
    fn load_bytes(from: &[u8]) -> Self;
    /// One byte a lane.
    fn widen(from: &[u8]) -> Self;
    /// To the first lanes of `to`.
    fn store(self, to: &mut [i16]);
    /// The lower halves of all parts to `a`, the upper ones to `b`.
    fn store_halves(self, a: &mut [u8], b: &mut [u8]);
    /// Pixels of three bytes. A part of each channel holds its even pixels, then its odd ones, as `packus16` leaves
    /// them.
    fn store_pixels(channels: [Self; 3], to: &mut [u8]);
    /// Whether all bits are zero.
    fn is_zero(self) -> bool;

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn add16(self, other: Self) -> Self;
    fn sub16(self, other: Self) -> Self;
    fn mul16(self, other: Self) -> Self;
    /// Upper 16 bits of the doubled product, rounded.
    fn mulround16(self, other: Self) -> Self;
    /// Products of 16-bit lanes, pairs of them added up.
    fn madd(self, other: Self) -> Self;
    /// The same, added to `sum`.
    #[inline(always)]
    fn madd_to(self, other: Self, sum: Self) -> Self {
        self.madd(other).add32(sum)
    }
    fn add32(self, other: Self) -> Self;
    fn sub32(self, other: Self) -> Self;
    /// Shifts to the right; `sra` keeps the sign.
    fn sra16<const N: u32>(self) -> Self;
    fn srl16<const N: u32>(self) -> Self;
    fn sra32<const N: u32>(self) -> Self;
    /// Both vectors' lanes at half their width, saturated, part by part.
    fn packs32(self, other: Self) -> Self;
    fn packus16(self, other: Self) -> Self;
    /// Both vectors' 16-bit lanes to bytes of samples: saturated as signed numbers, plus 128.
    fn samples8(self, other: Self) -> Self;
    /// Lanes of both in turn, from the lower or the upper halves of the parts.
    fn low16(self, other: Self) -> Self;
    fn high16(self, other: Self) -> Self;
    fn low32(self, other: Self) -> Self;
    fn high32(self, other: Self) -> Self;
    /// The even (0, 2) or the odd (1, 3) lanes of `self`, then those of `other`, part by part.
    fn even32(self, other: Self) -> Self;
    fn odd32(self, other: Self) -> Self;
    /// Each part's bytes, rows and columns of 4 x 4 exchanged.
    fn turned8(self) -> Self;
}

/// Work that is written once for all kinds of vectors. `run` must be inlined, so that it is compiled for the kind.
pub(super) trait Work {
    type Out;
    fn run<V: Vector>(self) -> Self::Out;
}

/// Which vector instructions are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vectors(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Vectors {
    /// All kinds that this processor has, the best one last.
    pub fn available() -> Vec<Self> {
        let mut found = vec![Kind::Plain];
        #[cfg(target_arch = "aarch64")]
        found.push(Kind::Neon);
        #[cfg(target_arch = "x86_64")]
        let bits = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        #[cfg(target_arch = "x86_64")]
        if bits && is_x86_feature_detected!("avx2") {
            found.push(Kind::Avx2);
            let avx512 = is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vbmi")
                && is_x86_feature_detected!("avx512vnni");
            found.extend(avx512.then_some(Kind::Avx512));
        }
        found.into_iter().map(Self).collect()
    }

    /// The best kind that this processor has.
    pub fn best() -> Self {
        Self::available().last().copied().unwrap_or(Self(Kind::Plain))
    }

    /// Whether there are no vector instructions.
    pub fn are_plain(self) -> bool {
        self.0 == Kind::Plain
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Plain => "plain",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512",
        }
    }

    /// Does the work with vectors of this kind.
    pub(super) fn run<W: Work>(self, work: W) -> W::Out {
        match self.0 {
            Kind::Plain => work.run::<plain::Plain>(),
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => work.run::<neon::Neon>(),
            // SAFETY: this kind exists only where `available` found AVX2 and the instructions for bits.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => unsafe { avx2::run(work) },
            // SAFETY: this kind exists only where `available` found AVX-512 BW, VBMI and VNNI, and the instructions for
            // bits.
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => unsafe { avx512::run(work) },
        }
    }
}
