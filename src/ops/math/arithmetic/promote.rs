//! Element types of arithmetic expressions: what type a function gives for the types of its operands, and in what type
//! it is computed. The rules are DALI's; they were measured with DALI 2.4 for every pair of types.
//!
//! | operands | result of arithmetic |
//! | --- | --- |
//! | one float | the float; of two the wider |
//! | both unsigned or both signed | the wider |
//! | signed and unsigned | signed, wide enough for both, at most 64 bits |
//! | bool and another | the other |
//!
//! DALI's CPU operators refuse float16. Here it is computed in float32.

use crate::error::{Error, Result};
use crate::ops::math::arithmetic::functions::{Binary, Bits, Compare, Function, Real, RealBinary, Same};
use crate::tensor::DType;

/// How one function is computed for operands of known types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Typed {
    /// The loop that computes it.
    pub(super) kernel: Kernel,
    /// Whether the loop takes two operands in the other order.
    pub(super) swapped: bool,
    /// Types that the operands, in the loop's order, are converted to before.
    pub(super) operands: [DType; 3],
    /// Type that the loop writes.
    pub(super) computed: DType,
    /// Type of the result, into which that is converted.
    pub(super) result: DType,
}

/// A loop of `loops`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kernel {
    Same(Same),
    /// Every bit flipped.
    Not,
    /// 1 becomes 0 and 0 becomes 1.
    LogicalNot,
    Real(Real),
    Binary(Binary),
    Atan2,
    Compare(Compare),
    /// `uint64` on the left, `int64` on the right.
    CompareSigns(Compare),
    /// `int64` on the left, a float on the right.
    CompareReal(Compare),
    Bits(Bits),
    Clamp,
}

/// The type of `function` for operands of `types`, as far as it follows from those that are known.
///
/// # Errors
/// As [`typed`].
pub(super) fn result(function: Function, types: &[Option<DType>]) -> Result<Option<DType>> {
    let known: Option<Vec<DType>> = types.iter().copied().collect();
    match (known, function) {
        (Some(types), _) => typed(function, &types).map(|typed| Some(typed.result)),
        (None, Function::Compare(_)) => Ok(Some(DType::Bool)),
        _ => Ok(None),
    }
}

/// How `function` is computed for operands of `types`.
///
/// # Errors
/// Invalid when DALI does not define it for them: arithmetic on nothing but bools, bits of floats.
pub(super) fn typed(function: Function, types: &[DType]) -> Result<Typed> {
    let &[first, ..] = types else { return Err(Error::internal("a function has no operands")) };
    let promoted = types.iter().copied().reduce(promote).unwrap_or(first);
    check(function, types, promoted)?;
    let real = if promoted.is_float() { promoted } else { DType::F32 };
    let uniform = |kernel, dtype, result| Typed {
        kernel,
        swapped: false,
        operands: [dtype; 3],
        computed: dtype,
        result,
    };
    Ok(match function {
        Function::Same(same) => uniform(Kernel::Same(same), loop_type(first), first),
        Function::Not if first == DType::Bool => uniform(Kernel::LogicalNot, DType::U8, first),
        Function::Not => uniform(Kernel::Not, first, first),
        Function::Real(function) => uniform(Kernel::Real(function), loop_type(real), real),
        Function::Binary(Binary::Mul) if promoted == DType::Bool => {
            uniform(Kernel::Bits(Bits::And), DType::U8, promoted)
        }
        // C++ computes the remainder of a float and an integer in float64.
        Function::Binary(Binary::Mod) if promoted.is_float() => {
            uniform(Kernel::Binary(Binary::Mod), DType::F64, promoted)
        }
        Function::Binary(function) => uniform(Kernel::Binary(function), loop_type(promoted), promoted),
        Function::RealBinary(RealBinary::Div) => uniform(Kernel::Binary(Binary::Div), loop_type(real), real),
        Function::RealBinary(RealBinary::Pow) => uniform(Kernel::Binary(Binary::Pow), loop_type(real), real),
        Function::RealBinary(RealBinary::Atan2) => uniform(Kernel::Atan2, loop_type(real), real),
        Function::Compare(function) => return Ok(comparison(function, types, promoted)),
        Function::Bits(function) => uniform(Kernel::Bits(function), loop_type(promoted), promoted),
        Function::Clamp => uniform(Kernel::Clamp, loop_type(promoted), promoted),
    })
}

/// The type of the numbers that stand for elements of `dtype` in a loop.
fn loop_type(dtype: DType) -> DType {
    match dtype {
        DType::Bool => DType::U8,
        DType::F16 => DType::F32,
        other => other,
    }
}

fn check(function: Function, types: &[DType], promoted: DType) -> Result<()> {
    let names = || types.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    match function {
        Function::Not | Function::Bits(_) if promoted.is_float() => Err(Error::invalid(format!(
            "function `{}` takes integers or bools, found {}",
            function.name(),
            names()
        ))),
        Function::Not | Function::Bits(_) | Function::Compare(_) | Function::Binary(Binary::Mul) => Ok(()),
        _ if promoted == DType::Bool => Err(Error::invalid(format!(
            "function `{}` takes at least one number, found {}",
            function.name(),
            names()
        ))),
        _ => Ok(()),
    }
}

/// A comparison compares numbers, not their bits: -1 is less than every unsigned integer. But DALI takes a negative
/// integer as less than every float too, even than a more negative one.
fn comparison(function: Compare, types: &[DType], promoted: DType) -> Typed {
    let (left, right) = (types[0], types[types.len() - 1]);
    let typed = |kernel, swapped, [left, right]: [DType; 2]| Typed {
        kernel,
        swapped,
        operands: [left, right, right],
        computed: DType::Bool,
        result: DType::Bool,
    };
    let needs_signed = |dtype: DType| dtype == DType::U64 || dtype.is_float();
    let swapped = left.is_signed() && needs_signed(right);
    let (function, signed, other) = match (left, right) {
        _ if swapped => (function.mirrored(), left, right),
        _ => (function, right, left),
    };
    if !signed.is_signed() || !needs_signed(other) {
        return typed(Kernel::Compare(function), false, [loop_type(promoted); 2]);
    }
    let kernel =
        if other == DType::U64 { Kernel::CompareSigns(function) } else { Kernel::CompareReal(function) };
    typed(kernel, swapped, [loop_type(other), DType::I64])
}

/// The type in which two types meet.
fn promote(left: DType, right: DType) -> DType {
    let wider = |a: DType, b: DType| if a.size() >= b.size() { a } else { b };
    match (left, right) {
        (DType::Bool, other) | (other, DType::Bool) => other,
        _ if left.is_float() == right.is_float() && left.is_signed() == right.is_signed() => {
            wider(left, right)
        }
        _ if left.is_float() => left,
        _ if right.is_float() => right,
        _ => {
            let (signed, unsigned) = if left.is_signed() { (left, right) } else { (right, left) };
            match unsigned {
                _ if signed.size() > unsigned.size() => signed,
                DType::U8 => DType::I16,
                DType::U16 => DType::I32,
                _ => DType::I64,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: [(&str, DType); 12] = [
        ("u8", DType::U8),
        ("u16", DType::U16),
        ("u32", DType::U32),
        ("u64", DType::U64),
        ("i8", DType::I8),
        ("i16", DType::I16),
        ("i32", DType::I32),
        ("i64", DType::I64),
        ("f32", DType::F32),
        ("f64", DType::F64),
        ("b", DType::Bool),
        ("f16", DType::F16),
    ];

    /// What DALI 2.4 answers for `&0 + &1`: the left type by row, the right one by column, in the order above.
    const MEASURED: &str = "
        u8  u16 u32 u64 i16 i16 i32 i64 f32 f64 u8
        u16 u16 u32 u64 i32 i32 i32 i64 f32 f64 u16
        u32 u32 u32 u64 i64 i64 i64 i64 f32 f64 u32
        u64 u64 u64 u64 i64 i64 i64 i64 f32 f64 u64
        i16 i32 i64 i64 i8  i16 i32 i64 f32 f64 i8
        i16 i32 i64 i64 i16 i16 i32 i64 f32 f64 i16
        i32 i32 i64 i64 i32 i32 i32 i64 f32 f64 i32
        i64 i64 i64 i64 i64 i64 i64 i64 f32 f64 i64
        f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 f32
        f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
        u8  u16 u32 u64 i8  i16 i32 i64 f32 f64 b";

    #[test]
    fn promotion_is_as_measured() {
        let rows: Vec<&str> = MEASURED.trim().lines().collect();
        for (row, (_, left)) in rows.iter().zip(SHORT) {
            for (name, (_, right)) in row.split_whitespace().zip(SHORT) {
                let expected = SHORT.iter().find(|(short, _)| *short == name).unwrap().1;
                assert_eq!(promote(left, right), expected, "{left} {right}");
            }
        }
        assert_eq!(rows.len(), 11);
    }

    fn of(function: &str, types: &[DType]) -> Result<DType> {
        typed(Function::named(function).unwrap(), types).map(|typed| typed.result)
    }

    #[test]
    fn groups_have_their_own_results() {
        assert_eq!(of("fdiv", &[DType::I64, DType::U8]).unwrap(), DType::F32);
        assert_eq!(of("fdiv", &[DType::F64, DType::F32]).unwrap(), DType::F64);
        assert_eq!(of("fpow", &[DType::Bool, DType::I8]).unwrap(), DType::F32);
        assert_eq!(of("sqrt", &[DType::U8]).unwrap(), DType::F32);
        assert_eq!(of("sqrt", &[DType::F64]).unwrap(), DType::F64);
        assert_eq!(of("minus", &[DType::U8]).unwrap(), DType::U8);
        assert_eq!(of("bitnot", &[DType::Bool]).unwrap(), DType::Bool);
        assert_eq!(of("lshift", &[DType::Bool, DType::Bool]).unwrap(), DType::Bool);
        assert_eq!(of("lt", &[DType::F16, DType::I8]).unwrap(), DType::Bool);
        assert_eq!(of("clamp", &[DType::U8, DType::I32, DType::I32]).unwrap(), DType::I32);
        assert_eq!(of("clamp", &[DType::I8, DType::U8, DType::U64]).unwrap(), DType::I64);
        assert_eq!(of("mod", &[DType::F32, DType::I64]).unwrap(), DType::F32);
        assert_eq!(of("add", &[DType::F16, DType::I64]).unwrap(), DType::F16);
    }

    #[test]
    fn what_dali_refuses_is_an_error_with_the_types() {
        for function in ["add", "sub", "div", "mod", "min", "max", "pow", "fdiv", "fpow", "atan2"] {
            let error = of(function, &[DType::Bool, DType::Bool]).unwrap_err().to_string();
            assert!(error.contains(function) && error.contains("bool, bool"), "{error}");
        }
        assert_eq!(of("mul", &[DType::Bool, DType::Bool]).unwrap(), DType::Bool);
        for function in ["plus", "minus", "abs", "sqrt"] {
            assert!(of(function, &[DType::Bool]).is_err(), "{function}");
        }
        assert!(of("clamp", &[DType::Bool; 3]).is_err());
        for function in ["bitand", "bitxor", "lshift"] {
            assert!(of(function, &[DType::I8, DType::F32]).is_err(), "{function}");
        }
        assert!(of("bitnot", &[DType::F64]).is_err());
    }

    #[test]
    fn a_comparison_needs_no_types_to_be_a_bool() {
        let compare = Function::Compare(Compare::Lt);
        assert_eq!(result(compare, &[None, Some(DType::U8)]).unwrap(), Some(DType::Bool));
        assert_eq!(result(Function::Clamp, &[Some(DType::U8), None, None]).unwrap(), None);
    }
}
