//! Conversion between element types by the rules that DALI's CPU operators follow when they store a result. It must
//! not know tensors' shapes, operators or devices.
//!
//! | from -> to | rule |
//! | --- | --- |
//! | float -> integer | round half away from zero, then saturate; [`convert_truncate`] drops the fraction instead |
//! | NaN -> integer | 0 for 8 and 16 bits and `u32`; the lowest value for `i32`, `i64`; 2^63 for `u64` |
//! | integer -> integer | saturate |
//! | any -> `f32`, `f64` | nearest |
//! | any -> `f16` | to `f32`, then nearest, ties **away from zero**; infinity from 65520 on, truncated: 65504 |
//! | integer -> bool | is not zero |
//! | float -> bool | is not zero *after rounding*: 0.3 is false, 0.5 and NaN are true |
//!
//! All of it was observed in DALI 2.4 on x86. Its GPU operators round to the even neighbour instead, also to `f16`.

use half::f16;
use multiversion::multiversion;

use crate::tensor::Bool;

/// Conversion of one value to `T` by the rules of this module.
///
/// There is an implementation for every pair of the twelve element types; `ConvertSat<f64>` and `ConvertSat<i64>` read
/// an argument of any type.
pub trait ConvertSat<T>: Copy {
    /// Rounds half away from zero where a fraction is lost, then saturates.
    fn convert_sat(self) -> T;

    /// Drops a fraction towards zero, then saturates: what `Slice` and `Crop` do.
    fn convert_trunc(self) -> T;
}

/// Converts `src` into `dst` element by element, rounding. Both have the same length; of unequal ones the shorter
/// counts.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub fn convert_slice<S: ConvertSat<T>, T>(src: &[S], dst: &mut [T]) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to = from.convert_sat();
    }
}

/// Converts `src` into `dst` element by element, dropping fractions. Lengths as for [`convert_slice`].
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub fn convert_truncate<S: ConvertSat<T>, T>(src: &[S], dst: &mut [T]) {
    for (to, from) in dst.iter_mut().zip(src) {
        *to = from.convert_trunc();
    }
}

/// Both methods of the trait by one expression, given a macro variable for `self`.
macro_rules! convert {
    ($from:ty => $to:ty, |$value:ident| $result:expr) => {
        convert!($from => $to, |$value| $result, $result);
    };
    ($from:ty => $to:ty, |$value:ident| $rounded:expr, $truncated:expr) => {
        impl ConvertSat<$to> for $from {
            #[inline(always)]
            fn convert_sat(self) -> $to {
                let $value = self;
                $rounded
            }
            #[inline(always)]
            fn convert_trunc(self) -> $to {
                let $value = self;
                $truncated
            }
        }
    };
}

macro_rules! between_integers {
    ($from:ty => $($to:ty),*) => { $(
        convert!($from => $to, |x| <$to>::try_from(x).unwrap_or(if x > 0 { <$to>::MAX } else { <$to>::MIN }));
    )* };
}

#[expect(
    clippy::cast_lossless,
    reason = "one macro for integers that floats hold exactly and for wider ones"
)]
mod integers {
    use super::{Bool, ConvertSat, f16, finite_half_from_f32, half_from_f32};

    macro_rules! integers {
        ($($int:ty),*) => { $(
            between_integers!($int => u8, u16, u32, u64, i8, i16, i32, i64);
            convert!($int => f32, |x| x as f32);
            convert!($int => f64, |x| x as f64);
            convert!($int => f16, |x| half_from_f32(x as f32), finite_half_from_f32(x as f32));
            convert!($int => Bool, |x| Bool::new(x != 0));
            convert!(Bool => $int, |x| <$int>::from(x.get()));
        )* };
    }
    integers!(u8, u16, u32, u64, i8, i16, i32, i64);
}

/// `f16`, `f32` and `f64` to integers of 8 and 16 bits.
macro_rules! from_floats_small {
    ($($int:ty),*) => { $(
        convert!(f32 => $int, |x| round_small(x.clamp(<$int>::MIN.into(), <$int>::MAX.into())) as $int, x as $int);
        convert!(f64 => $int, |x| x.round() as $int, x as $int);
        convert!(f16 => $int, |x| half_to_f32(x).convert_sat(), half_to_f32(x).convert_trunc());
    )* };
}
from_floats_small!(u8, u16, i8, i16);

/// The same to wider integers, with their answer to NaN.
macro_rules! from_floats_wide {
    ($($int:ty, $nan:expr);*) => { $(
        convert!(f32 => $int, |x| if x.is_nan() { $nan } else { x.round() as $int }, x as $int);
        convert!(f64 => $int, |x| if x.is_nan() { $nan } else { x.round() as $int }, x as $int);
        convert!(f16 => $int, |x| half_to_f32(x).convert_sat(), half_to_f32(x).convert_trunc());
    )* };
}
from_floats_wide!(u32, 0; u64, 1 << 63; i32, i32::MIN; i64, i64::MIN);

convert!(f32 => f32, |x| x);
convert!(f32 => f64, |x| f64::from(x));
convert!(f32 => f16, |x| half_from_f32(x), finite_half_from_f32(x));
convert!(f32 => Bool, |x| Bool::new(x.round() != 0.0));
convert!(f64 => f32, |x| x as f32);
convert!(f64 => f64, |x| x);
convert!(f64 => f16, |x| half_from_f32(x as f32), finite_half_from_f32(x as f32));
convert!(f64 => Bool, |x| Bool::new(x.round() != 0.0));
convert!(f16 => f32, |x| half_to_f32(x));
convert!(f16 => f64, |x| f64::from(half_to_f32(x)));
convert!(f16 => f16, |x| x);
convert!(f16 => Bool, |x| half_to_f32(x).convert_sat());
convert!(Bool => f32, |x| f32::from(u8::from(x.get())));
convert!(Bool => f64, |x| f64::from(u8::from(x.get())));
convert!(Bool => f16, |x| if x.get() { f16::ONE } else { f16::ZERO });
convert!(Bool => Bool, |x| Bool::new(x.get()));

/// `value`, of a magnitude below 2^22, to the nearest integer, ties away from zero; NaN gives a multiple of 2^16. Plain
/// additions, which become vector code where `round` and a saturating cast do not.
#[inline(always)]
fn round_small(value: f32) -> i32 {
    // 1.5 * 2^23: the sum has no bits for a fraction, so the addition rounds to even, into the lowest bits.
    const TO_INTEGER: f32 = 12_582_912.0;
    let sum = value + TO_INTEGER;
    let rest = value - (sum - TO_INTEGER);
    let up = i32::from(rest == 0.5 && value > 0.0);
    let down = i32::from(rest == -0.5 && value < 0.0);
    (sum.to_bits() as i32).wrapping_sub(TO_INTEGER.to_bits() as i32) + up - down
}

/// Nearest `f16`, ties away from zero. Free of branches and calls, so that a loop over it becomes vector code.
#[inline(always)]
fn half_from_f32(value: f32) -> f16 {
    const SMALLEST_NORMAL: u32 = 113 << 23; // 2^-14
    const OVERFLOW: u32 = 143 << 23; // 2^16
    const INFINITY: u32 = 255 << 23;
    const STEPS: f32 = 16_777_216.0; // 2^24: subnormals are multiples of 2^-24

    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let small = f32::from_bits(magnitude.min(SMALLEST_NORMAL));
    let subnormal = round_small(small * STEPS) as u32;
    let normal = (magnitude.min(OVERFLOW) + 0x1000).wrapping_sub(112 << 23) >> 13;
    let finite = if magnitude < SMALLEST_NORMAL { subnormal } else { normal };
    let result = if magnitude > INFINITY { 0x7e00 } else { finite.min(0x7c00) };
    f16::from_bits((sign | result) as u16)
}

/// [`half_from_f32`] that stays finite unless `value` is NaN.
#[inline(always)]
fn finite_half_from_f32(value: f32) -> f16 {
    half_from_f32(value.clamp(-65_504.0, 65_504.0))
}

/// The value of an `f16`, exactly. Free of branches, see [`half_from_f32`].
#[inline(always)]
fn half_to_f32(value: f16) -> f32 {
    const REBIAS: f32 = f32::from_bits(239 << 23); // 2^112, the difference of the exponents' biases
    let bits = u32::from(value.to_bits());
    let sign = (bits & 0x8000) << 16;
    let shifted = (bits & 0x7fff) << 13;
    let finite = (f32::from_bits(shifted) * REBIAS).to_bits();
    let special = shifted | (255 << 23);
    let magnitude = if bits & 0x7c00 == 0x7c00 { special } else { finite };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<S: ConvertSat<T>, T: Default + Clone>(src: &[S]) -> Vec<T> {
        let mut dst = vec![T::default(); src.len()];
        convert_slice(src, &mut dst);
        dst
    }

    // The expected values of the tests below are DALI 2.4's answers to `fn.cast` on its CPU.

    const FLOATS: [f32; 14] = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        -0.5,
        0.5,
        1.5,
        2.5,
        -2.5,
        0.499_999_97,
        8_388_609.0,
        2_147_483_648.0,
        4_294_967_296.0,
        1e19,
        -1e19,
    ];

    #[test]
    fn floats_round_half_away_and_saturate() {
        assert_eq!(all::<_, u8>(&FLOATS), [0, 255, 0, 0, 1, 2, 3, 0, 0, 255, 255, 255, 255, 0]);
        assert_eq!(all::<_, i8>(&FLOATS), [0, 127, -128, -1, 1, 2, 3, -3, 0, 127, 127, 127, 127, -128]);
        assert_eq!(all::<_, u16>(&FLOATS), [0, 65535, 0, 0, 1, 2, 3, 0, 0, 65535, 65535, 65535, 65535, 0]);
        let (low, high) = (i16::MIN, i16::MAX);
        assert_eq!(all::<_, i16>(&FLOATS), [0, high, low, -1, 1, 2, 3, -3, 0, high, high, high, high, low]);
        let max = u32::MAX;
        assert_eq!(all::<_, u32>(&FLOATS), [0, max, 0, 0, 1, 2, 3, 0, 0, 8_388_609, 1 << 31, max, max, 0]);
        let (low, high) = (i32::MIN, i32::MAX);
        assert_eq!(
            all::<_, i32>(&FLOATS),
            [low, high, low, -1, 1, 2, 3, -3, 0, 8_388_609, high, high, high, low]
        );
        let ten = 9_999_999_980_506_447_872;
        assert_eq!(
            all::<_, u64>(&FLOATS),
            [1 << 63, u64::MAX, 0, 0, 1, 2, 3, 0, 0, 8_388_609, 1 << 31, 1 << 32, ten, 0]
        );
        let (low, high) = (i64::MIN, i64::MAX);
        assert_eq!(
            all::<_, i64>(&FLOATS),
            [low, high, low, -1, 1, 2, 3, -3, 0, 8_388_609, 1 << 31, 1 << 32, high, low]
        );
    }

    #[test]
    fn small_integers_round_like_the_standard_library() {
        for step in -1_100_000..=1_100_000 {
            let tie = step as f32 * 0.5;
            for value in [tie.next_down(), tie, tie.next_up(), tie + 0.25] {
                assert_eq!(ConvertSat::<u8>::convert_sat(value), value.round() as u8, "{value}");
                assert_eq!(ConvertSat::<i8>::convert_sat(value), value.round() as i8, "{value}");
                assert_eq!(ConvertSat::<u16>::convert_sat(value), value.round() as u16, "{value}");
                assert_eq!(ConvertSat::<i16>::convert_sat(value), value.round() as i16, "{value}");
            }
        }
    }

    #[test]
    fn doubles_and_halves_follow_the_same_rule() {
        let doubles = [f64::NAN, 0.499_999_999_999_999_94, 2.5, -2.5, 1e300, -1e300];
        assert_eq!(all::<_, u8>(&doubles), [0, 0, 3, 0, 255, 0]);
        assert_eq!(all::<_, i32>(&doubles), [i32::MIN, 0, 3, -3, i32::MAX, i32::MIN]);
        let halves =
            [f16::NAN, f16::INFINITY, f16::from_f32(2.5), f16::from_f32(-0.5), f16::from_f32(60000.0)];
        assert_eq!(all::<_, i16>(&halves), [0, i16::MAX, 3, -1, i16::MAX]);
        assert_eq!(all::<_, i64>(&halves), [i64::MIN, i64::MAX, 3, -1, 60000]);
        assert_eq!(all::<_, u64>(&halves), [1 << 63, u64::MAX, 3, 0, 60000]);
    }

    #[test]
    fn integers_saturate() {
        let wide = [i64::MAX, i64::MIN, 65_519, -1, 300, 16_777_217];
        assert_eq!(all::<_, u8>(&wide), [255, 0, 255, 0, 255, 255]);
        assert_eq!(all::<_, i8>(&wide), [127, -128, 127, -1, 127, 127]);
        assert_eq!(all::<_, u64>(&wide), [i64::MAX as u64, 0, 65_519, 0, 300, 16_777_217]);
        assert_eq!(all::<_, f32>(&wide)[5], 16_777_216.0);
        assert_eq!(all::<_, i64>(&[u64::MAX, 1 << 63]), [i64::MAX, i64::MAX]);
        assert_eq!(all::<u8, i8>(&[0, 127, 128, 255]), [0, 127, 127, 127]);
    }

    #[test]
    fn bools_are_made_after_rounding() {
        let floats = [0.3, -0.3, 1e-30, 0.49, -0.5, 0.5, f32::NAN];
        let bools: Vec<bool> = all::<_, Bool>(&floats).iter().map(|b| b.get()).collect();
        assert_eq!(bools, [false, false, false, false, true, true, true]);
        assert_eq!(all::<_, Bool>(&[0i32, -7]), [Bool::new(false), Bool::new(true)]);
        assert_eq!(all::<_, u16>(&[Bool::new(true), Bool::new(false)]), [1, 0]);
        assert_eq!(all::<_, f16>(&[Bool::new(true), Bool::new(false)]), [f16::ONE, f16::ZERO]);
    }

    #[test]
    fn truncation_drops_the_fraction_and_saturates() {
        let floats = [0.3f32, 0.9, 1.5, -0.9, 300.0, 254.9, f32::NAN, f32::INFINITY, -1e9];
        let mut bytes = [9u8; 9];
        convert_truncate(&floats, &mut bytes);
        assert_eq!(bytes, [0, 0, 1, 0, 255, 254, 0, 255, 0]);
        let mut halves = [f16::ZERO; 3];
        convert_truncate(&[65_520.0f32, f32::NEG_INFINITY, 1.0 + 1.0 / 2048.0], &mut halves);
        assert_eq!(halves, [f16::MAX, f16::MIN, f16::ONE + f16::EPSILON]);
    }

    #[test]
    fn every_half_survives_the_way_to_f32_and_back() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            let single: f32 = half.convert_sat();
            let back: f16 = single.convert_sat();
            if half.is_nan() {
                assert!(single.is_nan() && back.is_nan());
            } else {
                assert_eq!(single, half.to_f32_const());
                assert_eq!(back.to_bits(), bits);
            }
        }
    }

    #[test]
    fn halves_round_ties_away_from_zero() {
        let half = |value: f32| -> f16 { value.convert_sat() };
        // Around every midpoint between neighbours, subnormal ones and the overflow to infinity included.
        for bits in 0..0x7c00u16 {
            let (low, high) = (f16::from_bits(bits), f16::from_bits(bits + 1));
            let above = if high.is_infinite() { 65_536.0 } else { high.to_f32_const() };
            let middle = (low.to_f32_const() + above) / 2.0;
            assert_eq!(half(middle.next_down()).to_bits(), low.to_bits(), "{bits:#x}");
            assert_eq!(half(middle), high, "{bits:#x}");
            assert_eq!(half(middle.next_up()), high, "{bits:#x}");
            assert_eq!(half(-middle), -high, "{bits:#x}");
        }
        assert_eq!(
            all::<_, f16>(&[f32::INFINITY, 1e9, -1e9]),
            [f16::INFINITY, f16::INFINITY, f16::NEG_INFINITY]
        );
        // DALI goes through `f32`, so a double just below a tie rounds up too.
        assert_eq!(all::<_, f16>(&[1.0 + 2f64.powi(-11) - 2f64.powi(-40)]), [f16::ONE + f16::EPSILON]);
        assert_eq!(all::<_, f16>(&[2049i64, 2051, 65_519]), [2050.0, 2052.0, 65_504.0].map(f16::from_f32));
    }
}
