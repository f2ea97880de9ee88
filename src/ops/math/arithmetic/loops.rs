//! The loops that compute functions on slices of numbers: one loop per function and type, without a decision inside, so
//! that the compiler makes vector code of it. All slices of a call have one length. What an operation means, `numbers`
//! says.

use multiversion::multiversion;

use crate::error::{Error, Result};
use crate::ops::math::arithmetic::functions::{Binary, Bits, Compare, Same};
use crate::ops::math::arithmetic::numbers::{Float, Integer, Number, map};
use crate::tensor::Bool;

#[inline(always)]
fn zip<L: Copy, R: Copy, O>(left: &[L], right: &[R], out: &mut [O], f: impl Fn(L, R) -> O) {
    for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
        *out = f(left, right);
    }
}

/// Functions that keep the type of their operand.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub(super) fn same<N: Number>(function: Same, values: &[N], out: &mut [N]) {
    match function {
        Same::Plus => out.copy_from_slice(values),
        Same::Minus => map(values, out, N::minus),
        Same::Abs => map(values, out, N::abs),
    }
}

/// Functions of two numbers.
///
/// # Errors
/// Invalid when an integer is divided by zero.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub(super) fn binary<N: Number>(function: Binary, left: &[N], right: &[N], out: &mut [N]) -> Result<()> {
    if matches!(function, Binary::Div | Binary::Mod) && N::CHECKS_DIVISOR && right.contains(&N::default()) {
        return Err(Error::invalid("an integer is divided by zero"));
    }
    match function {
        Binary::Add => zip(left, right, out, N::add),
        Binary::Sub => zip(left, right, out, N::sub),
        Binary::Mul => zip(left, right, out, N::mul),
        Binary::Div => zip(left, right, out, N::div),
        Binary::Mod => zip(left, right, out, N::rem),
        // With something that is not a number, the right operand.
        Binary::Min => zip(left, right, out, |l, r| if l < r { l } else { r }),
        Binary::Max => zip(left, right, out, |l, r| if l > r { l } else { r }),
        Binary::Pow => zip(left, right, out, N::pow),
    }
    Ok(())
}

/// The angle of a point, from its y and x.
pub(super) fn atan2<F: Float>(y: &[F], x: &[F], out: &mut [F]) {
    zip(y, x, out, F::atan2);
}

/// `values` between `low` and `high`. The upper bound counts when they cross; what is not a number stays.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub(super) fn clamp<N: Number>(values: &[N], low: &[N], high: &[N], out: &mut [N]) {
    zip(values, low, out, |value, low| if value < low { low } else { value });
    for (out, &high) in out.iter_mut().zip(high) {
        *out = if *out > high { high } else { *out };
    }
}

/// Functions of the bits of two integers.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub(super) fn bits<I: Integer>(function: Bits, left: &[I], right: &[I], out: &mut [I]) {
    match function {
        Bits::And => zip(left, right, out, I::and),
        Bits::Or => zip(left, right, out, I::or),
        Bits::Xor => zip(left, right, out, I::xor),
        Bits::ShiftLeft => zip(left, right, out, I::shift_left),
        Bits::ShiftRight => zip(left, right, out, I::shift_right),
    }
}

/// Every bit flipped.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub(super) fn not<I: Integer>(values: &[I], out: &mut [I]) {
    map(values, out, I::not);
}

/// Of 0 and 1 the other.
pub(super) fn logical_not(values: &[u8], out: &mut [u8]) {
    map(values, out, |value| value ^ 1);
}

/// Calls `$run!(operator, answer)` for a comparison; the answer is the one for a right operand below everything.
macro_rules! by_operator {
    ($function:expr, $run:ident) => {
        match $function {
            Compare::Eq => $run!(==, false),
            Compare::Neq => $run!(!=, true),
            Compare::Lt => $run!(<, false),
            Compare::Leq => $run!(<=, false),
            Compare::Gt => $run!(>, true),
            Compare::Geq => $run!(>=, true),
        }
    };
}

/// Comparisons of two numbers of one type.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
pub(super) fn compare<N: Number>(function: Compare, left: &[N], right: &[N], out: &mut [Bool]) {
    macro_rules! run {
        ($op:tt, $below:expr) => { zip(left, right, out, |l, r| Bool::new(l $op r)) };
    }
    by_operator!(function, run);
}

/// Comparisons of numbers that no type of 64 bits holds both.
pub(super) fn compare_signs(function: Compare, left: &[u64], right: &[i64], out: &mut [Bool]) {
    macro_rules! run {
        ($op:tt, $below:expr) => { zip(left, right, out, |l, r| Bool::new(i128::from(l) $op i128::from(r))) };
    }
    by_operator!(function, run);
}

/// Comparisons of a float with a signed integer, as DALI does them: a negative integer is below every float, whatever
/// that is, and below what is not a number.
pub(super) fn compare_real<F: Float>(function: Compare, left: &[F], right: &[i64], out: &mut [Bool]) {
    macro_rules! run {
        ($op:tt, $below:expr) => {
            zip(left, right, out, |l, r| Bool::new(if r < 0 { $below } else { l $op F::from_integer(r) }))
        };
    }
    by_operator!(function, run);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two<N: Number>(function: Binary, left: &[N], right: &[N]) -> Vec<N> {
        let mut out = vec![N::default(); left.len()];
        binary(function, left, right, &mut out).unwrap();
        out
    }

    // Expected values: DALI 2.4 on x86, where it does not crash.

    #[test]
    fn integers_wrap_around() {
        assert_eq!(two(Binary::Add, &[200u8, 255], &[200, 1]), [144, 0]);
        assert_eq!(
            two(Binary::Pow, &[2i32, -2, 1, 3, 7, 0, 0, 5, -1], &[31, -1, -5, 40, -2, 0, -1, 0, 3]),
            [i32::MIN, 0, 0, 689_956_897, 0, 1, 0, 1, -1]
        );
        assert_eq!(two(Binary::Pow, &[2u8, 3, 15], &[8, 6, 3]), [0, 217, 47]);
        let mut out = [0i8; 2];
        same(Same::Abs, &[-128, -1], &mut out);
        assert_eq!(out, [-128, 1]);
    }

    /// DALI's process dies of these in 32 and 64 bits.
    #[test]
    fn the_lowest_integer_divided_by_minus_one_wraps() {
        assert_eq!(two(Binary::Div, &[i32::MIN, -7, 7], &[-1, 3, -2]), [i32::MIN, -2, -3]);
        assert_eq!(two(Binary::Mod, &[i64::MIN, -7, 7], &[-1, 3, -3]), [0, -1, 1]);
        assert_eq!(two(Binary::Div, &[-128i8], &[-1]), [-128]);
    }

    /// A client may write the zero after it was looked for.
    #[test]
    fn a_divisor_of_zero_that_was_not_seen_does_not_panic() {
        let mut out = [1; 2];
        zip(&[1i64, -7], &[0, 2], &mut out, Number::div);
        assert_eq!(out, [0, -3]);
        zip(&[1i64, -7], &[0, 2], &mut out, Number::rem);
        assert_eq!(out, [0, -1]);
    }

    #[test]
    fn only_integers_mind_a_divisor_of_zero() {
        let mut out = [0; 3];
        for function in [Binary::Div, Binary::Mod] {
            let error = binary(function, &[1, 2, 3], &[1, 0, 1], &mut out).unwrap_err();
            assert_eq!(error.to_string(), "an integer is divided by zero");
        }
        assert_eq!(two(Binary::Div, &[1.0f32, -1.0], &[0.0, 0.0]), [f32::INFINITY, f32::NEG_INFINITY]);
        assert!(two(Binary::Mod, &[1.0f64], &[0.0])[0].is_nan());
    }

    #[test]
    fn shifts_count_modulo_the_width() {
        let shift = |function, left: i8, right| {
            let mut out = [0];
            bits(function, &[left], &[right], &mut out);
            out[0]
        };
        assert_eq!(
            [1, 7, 8, 31, 32, 33, -1].map(|n| shift(Bits::ShiftLeft, -3, n)),
            [-6, -128, 0, 0, -3, -6, 0]
        );
        assert_eq!([1, 7, 31, 32, 33, -1].map(|n| shift(Bits::ShiftRight, -3, n)), [-2, -1, -1, -3, -2, -1]);
        let mut wide = [0u64; 3];
        bits(Bits::ShiftLeft, &[1; 3], &[32, 63, 65], &mut wide);
        assert_eq!(wide, [1 << 32, 1 << 63, 2]);
    }

    #[test]
    fn what_is_not_a_number_follows_the_right_operand() {
        let nan = f32::NAN;
        for function in [Binary::Min, Binary::Max] {
            let found = two(function, &[nan, 1.0], &[1.0, nan]);
            assert!(found[0] == 1.0 && found[1].is_nan());
        }
        let mut out = [0.0f32; 4];
        clamp(&[nan, -5.0, 5.0, 1.7], &[2.0; 4], &[1.5; 4], &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [1.5; 3]);
    }

    #[test]
    fn comparisons_across_types() {
        let mut out = [Bool::default(); 4];
        compare_signs(Compare::Gt, &[u64::MAX, 0, 5, 5], &[-1, -1, 5, 6], &mut out);
        assert_eq!(out.map(Bool::get), [true, true, false, false]);
        compare_real(Compare::Lt, &[-2.0f32, -1.5, -1.0, 2.5], &[-1, -2, 0, 3], &mut out);
        assert_eq!(out.map(Bool::get), [false, false, true, true]);
        compare_real(Compare::Neq, &[-2.0f64, f64::NAN, 3.0, f64::NAN], &[-2, -1, 3, 1], &mut out);
        assert_eq!(out.map(Bool::get), [true, true, false, true]);
    }
}
