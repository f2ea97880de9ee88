//! The numbers that `loops` compute with: what an operation means for one of each type. It must not know expressions.
//!
//! They follow C++ as DALI compiles it for x86: integers wrap around, the amount of a shift counts modulo 32 or 64,
//! nothing saturates.

use multiversion::multiversion;

use crate::cpu::elementary;
use crate::ops::math::arithmetic::functions::Real;
use crate::tensor::Element;

/// `out[i] = f(values[i])`.
#[inline(always)]
pub(super) fn map<T: Copy, R>(values: &[T], out: &mut [R], f: impl Fn(T) -> R) {
    for (out, &value) in out.iter_mut().zip(values) {
        *out = f(value);
    }
}

/// A number that loops compute with.
pub(super) trait Number: Element + PartialOrd {
    /// Whether a divisor of zero is an error: integers.
    const CHECKS_DIVISOR: bool;

    fn minus(self) -> Self;
    fn abs(self) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Towards zero. An integer by zero is zero: a divisor is looked at before, but a client may change it since.
    fn div(self, other: Self) -> Self;
    /// With the sign of `self`. An integer by zero is zero, as for [`Number::div`].
    fn rem(self, other: Self) -> Self;
    fn pow(self, exponent: Self) -> Self;
}

/// An integer that loops compute with.
pub(super) trait Integer: Number {
    fn not(self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_left(self, amount: Self) -> Self;
    fn shift_right(self, amount: Self) -> Self;
}

macro_rules! integers {
    ($($int:ty, $shifted:ty, |$value:ident| $abs:expr);* $(;)?) => { $(
        impl Number for $int {
            const CHECKS_DIVISOR: bool = true;

            #[inline(always)]
            fn minus(self) -> Self {
                self.wrapping_neg()
            }
            #[inline(always)]
            fn abs(self) -> Self {
                let $value = self;
                $abs
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            /// Zero for every negative exponent, as DALI has it.
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                if exponent.cmp(&0).is_lt() {
                    return 0;
                }
                let (mut base, mut rest, mut result) = (self, exponent, 1 as $int);
                while rest > 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                result
            }
        }

        impl Integer for $int {
            #[inline(always)]
            fn not(self) -> Self {
                !self
            }
            #[inline(always)]
            fn and(self, other: Self) -> Self {
                self & other
            }
            #[inline(always)]
            fn or(self, other: Self) -> Self {
                self | other
            }
            #[inline(always)]
            fn xor(self, other: Self) -> Self {
                self ^ other
            }
            /// C++ shifts small integers as 32 bits, and x86 takes the amount modulo the width.
            #[inline(always)]
            fn shift_left(self, amount: Self) -> Self {
                <$shifted>::from(self).wrapping_shl(<$shifted>::from(amount) as u32) as $int
            }
            #[inline(always)]
            fn shift_right(self, amount: Self) -> Self {
                <$shifted>::from(self).wrapping_shr(<$shifted>::from(amount) as u32) as $int
            }
        }
    )* };
}

integers! {
    u8, u32, |x| x;
    u16, u32, |x| x;
    u32, u32, |x| x;
    u64, u64, |x| x;
    i8, i32, |x| x.wrapping_abs();
    i16, i32, |x| x.wrapping_abs();
    i32, i32, |x| x.wrapping_abs();
    i64, i64, |x| x.wrapping_abs();
}

/// A real number that loops compute with.
pub(super) trait Float: Number {
    fn atan2(self, other: Self) -> Self;
    fn from_integer(value: i64) -> Self;

    /// Calls `function` for every element.
    fn real(function: Real, values: &[Self], out: &mut [Self]);
}

macro_rules! floats {
    ($($float:ident, $real:ident, $rsqrt:ident, [$exp:expr, $sin:expr, $cos:expr]);* $(;)?) => { $(
        impl Number for $float {
            const CHECKS_DIVISOR: bool = false;

            #[inline(always)]
            fn minus(self) -> Self {
                -self
            }
            /// Unlike `fabs`, keeps the sign of a zero.
            #[inline(always)]
            fn abs(self) -> Self {
                if self < 0.0 { -self } else { self }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                self % other
            }
            #[inline(always)]
            fn pow(self, exponent: Self) -> Self {
                self.powf(exponent)
            }
        }

        impl Float for $float {
            fn atan2(self, other: Self) -> Self {
                $float::atan2(self, other)
            }
            #[inline(always)]
            fn from_integer(value: i64) -> Self {
                value as $float
            }
            fn real(function: Real, values: &[Self], out: &mut [Self]) {
                $real(function, values, out);
            }
        }

        #[multiversion(targets("x86_64+avx+avx2+f16c"))]
        fn $real(function: Real, values: &[$float], out: &mut [$float]) {
            match function {
                Real::Sqrt => map(values, out, $float::sqrt),
                Real::Rsqrt => map(values, out, $rsqrt),
                Real::Cbrt => map(values, out, $float::cbrt),
                Real::Exp => ($exp)(values, out),
                Real::Log => map(values, out, $float::ln),
                Real::Log2 => map(values, out, $float::log2),
                Real::Log10 => map(values, out, $float::log10),
                Real::Fabs => map(values, out, $float::abs),
                Real::Floor => map(values, out, $float::floor),
                Real::Ceil => map(values, out, $float::ceil),
                Real::Sin => ($sin)(values, out),
                Real::Cos => ($cos)(values, out),
                Real::Tan => map(values, out, $float::tan),
                Real::Asin => map(values, out, $float::asin),
                Real::Acos => map(values, out, $float::acos),
                Real::Atan => map(values, out, $float::atan),
                Real::Sinh => map(values, out, $float::sinh),
                Real::Cosh => map(values, out, $float::cosh),
                Real::Tanh => map(values, out, $float::tanh),
                Real::Asinh => map(values, out, |x| asinh(x.into()) as $float),
                Real::Acosh => map(values, out, |x| acosh(x.into()) as $float),
                Real::Atanh => map(values, out, |x| atanh(x.into()) as $float),
            }
        }
    )* };
}

floats! {
    f32, real_f32, rsqrt_f32, [elementary::exp, elementary::sin, elementary::cos];
    f64, real_f64, rsqrt_f64, [
        |values, out| map(values, out, f64::exp),
        |values, out| map(values, out, f64::sin),
        |values, out| map(values, out, f64::cos)
    ];
}

/// DALI refines an estimate of the processor by a step of Newton's method, which makes zero and infinity not a number.
/// The step changes nothing else here.
#[inline(always)]
fn rsqrt_f32(x: f32) -> f32 {
    let y = 1.0 / x.sqrt();
    y * (1.5 - x * 0.5 * y * y)
}

#[inline(always)]
fn rsqrt_f64(x: f64) -> f64 {
    1.0 / x.sqrt()
}

/// From here on, adding 1 to the square of a number does not change it.
const HUGE: f64 = (1u64 << 28) as f64;

// The standard library computes these three in the type of the operand and loses digits near zero and one.

fn asinh(x: f64) -> f64 {
    let a = x.abs();
    let magnitude = if a > HUGE {
        a.ln() + std::f64::consts::LN_2
    } else {
        (a + a * a / (1.0 + (a * a + 1.0).sqrt())).ln_1p()
    };
    magnitude.copysign(x)
}

fn acosh(x: f64) -> f64 {
    if x < 1.0 {
        f64::NAN
    } else if x > HUGE {
        x.ln() + std::f64::consts::LN_2
    } else {
        let t = x - 1.0;
        (t + (2.0 * t + t * t).sqrt()).ln_1p()
    }
}

fn atanh(x: f64) -> f64 {
    let a = x.abs();
    (0.5 * (2.0 * a / (1.0 - a)).ln_1p()).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(function: Real, x: f64) -> (f32, f64) {
        let (mut single, mut double) = ([0.0], [0.0]);
        f32::real(function, &[x as f32], &mut single);
        f64::real(function, &[x], &mut double);
        (single[0], double[0])
    }

    #[test]
    fn inverse_square_root_is_undefined_where_dali_has_it_so() {
        assert!(real(Real::Rsqrt, 0.0).0.is_nan() && real(Real::Rsqrt, f64::INFINITY).0.is_nan());
        assert_eq!(real(Real::Rsqrt, 0.0).1, f64::INFINITY);
        assert_eq!(real(Real::Rsqrt, 4.0), (0.5, 0.5));
    }

    /// Against identities and known values over the whole range: no digit is lost near 0, near 1 or far out.
    #[test]
    fn inverse_hyperbolic_functions_are_accurate() {
        let close =
            |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 4e-15, "{found} {expected}");
        for x in [1e-300f64, 1e-9, 0.3, 1.0, 5.0, 300.0] {
            close(asinh(x.sinh()), x);
            close(-asinh(-x.sinh()), x);
        }
        close(asinh(1e308), 709.889_355_822_726);
        for x in [1.0f64, 5.0, 300.0] {
            close(acosh(x.cosh()), x);
        }
        close(acosh(1.0 + 1e-10), 1.414_213_620_867_586e-5);
        close(acosh(1e308), 709.889_355_822_726);
        for x in [1e-300f64, 1e-9, 0.3, 1.0] {
            close(atanh(x.tanh()), x);
        }
        assert!(acosh(0.5).is_nan() && acosh(f64::NEG_INFINITY).is_nan() && atanh(-1.5).is_nan());
        assert!(asinh(f64::NAN).is_nan() && acosh(f64::NAN).is_nan() && atanh(f64::INFINITY).is_nan());
        assert_eq!((atanh(1.0), asinh(f64::NEG_INFINITY)), (f64::INFINITY, f64::NEG_INFINITY));
        assert!(asinh(-0.0).is_sign_negative() && atanh(-0.0).is_sign_negative());
    }
}
