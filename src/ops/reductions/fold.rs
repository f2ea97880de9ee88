//! Folds of a dense tensor along some of its dimensions, for every element type that reductions take. Which values are folded,
//! this module does not know.
#![expect(clippy::cast_lossless, reason = "one macro makes all numbers")]

use crate::tensor::{DType, Element};

/// A number that can be reduced.
pub(super) trait Number: Element + PartialOrd {
    /// The lowest finite one.
    const LEAST: Self;
    /// The highest finite one.
    const MOST: Self;

    /// As a double.
    fn real(self) -> f64;

    /// Its square as a double, as DALI computes it: where C++ does, integers wrap.
    fn square(self) -> f64;

    /// As bits of an integer, for sums that wrap.
    fn bits(self) -> i64;

    /// The number with the low bits of `bits`.
    fn of_bits(bits: i64) -> Self;

    /// Without its fraction.
    fn from_real(value: f64) -> Self;
}

macro_rules! numbers {
    ($($T:ty: $square:expr),*) => {
        $(impl Number for $T {
            const LEAST: Self = <$T>::MIN;
            const MOST: Self = <$T>::MAX;

            fn real(self) -> f64 {
                self as f64
            }

            fn square(self) -> f64 {
                let square: fn($T) -> f64 = $square;
                square(self)
            }

            fn bits(self) -> i64 {
                self as i64
            }

            fn of_bits(bits: i64) -> Self {
                bits as $T
            }

            fn from_real(value: f64) -> Self {
                value as $T
            }
        })*
    };
}
numbers!(
    u8: |x| f64::from(x) * f64::from(x),
    u16: |x| f64::from(i32::from(x).wrapping_mul(i32::from(x))),
    u32: |x| f64::from(x) * f64::from(x),
    u64: |x| x.wrapping_mul(x) as f64,
    i8: |x| f64::from(x) * f64::from(x),
    i16: |x| f64::from(x) * f64::from(x),
    i32: |x| f64::from(x) * f64::from(x),
    i64: |x| x.wrapping_mul(x) as f64,
    f32: |x| f64::from(x) * f64::from(x)
);

/// Runs `$body` with `$T` bound to the [`Number`] of type `$dtype`, or `$other` where there is none.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr, _ => $other:expr) => {
        with_number!(@ $dtype, $T, $body, $other, U8 u8, U16 u16, U32 u32, U64 u64, I8 i8, I16 i16, I32 i32, I64 i64, F32 f32)
    };
    (@ $dtype:expr, $T:ident, $body:expr, $other:expr, $($name:ident $rust:ty),*) => {
        match $dtype {
            $($crate::tensor::DType::$name => {
                type $T = $rust;
                $body
            })*
            _ => $other,
        }
    };
}
pub(super) use with_number;

/// Whether elements of this type can be reduced.
pub(super) fn is_number(dtype: DType) -> bool {
    with_number!(dtype, T => T::DTYPE == dtype, _ => false)
}

/// Folds `values`, a tensor of shape `shape`, along the dimensions that `reduced` names: `step` takes every element into the
/// one of `folds` that belongs to it. There is one for each position of the other dimensions.
pub(super) fn fold<T: Copy, A>(
    values: &[T],
    shape: &[usize],
    reduced: &[bool],
    folds: &mut [A],
    step: &impl Fn(&mut A, T),
) {
    // Neighbours that are both reduced, or neither, are one dimension.
    let mut dims: Vec<(usize, bool)> = Vec::with_capacity(shape.len());
    for (&extent, &reduced) in shape.iter().zip(reduced) {
        match dims.last_mut() {
            Some((size, same)) if *same == reduced => *size *= extent,
            _ => dims.push((extent, reduced)),
        }
    }
    if !values.is_empty() {
        walk(values, &dims, folds, step);
    }
}

fn walk<T: Copy, A>(values: &[T], dims: &[(usize, bool)], folds: &mut [A], step: &impl Fn(&mut A, T)) {
    match dims {
        [] | [(_, true)] => {
            if let Some(fold) = folds.first_mut() {
                values.iter().for_each(|&value| step(fold, value));
            }
        }
        [(_, false)] => folds.iter_mut().zip(values).for_each(|(fold, &value)| step(fold, value)),
        [(extent, reduced), rest @ ..] => {
            let parts = values.chunks_exact(values.len() / extent);
            if *reduced {
                parts.for_each(|part| walk(part, rest, folds, step));
            } else {
                let size = folds.len() / extent;
                parts
                    .zip(folds.chunks_exact_mut(size))
                    .for_each(|(part, folds)| walk(part, rest, folds, step));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along every set of dimensions, against indices worked out one by one.
    #[test]
    fn elements_belong_to_their_folds() {
        for shape in [vec![2, 3, 4, 5], vec![3, 1, 7], vec![5], vec![]] {
            let count: usize = shape.iter().product();
            let values: Vec<u64> = (0..count as u64).map(|i| i * 7919 % 1013).collect();
            for mask in 0..1 << shape.len() {
                let reduced: Vec<bool> = (0..shape.len()).map(|d| mask >> d & 1 == 1).collect();
                let place = |mut i: usize| {
                    let (mut at, mut stride) = (0, 1);
                    for (&extent, &reduced) in shape.iter().zip(&reduced).rev() {
                        if !reduced {
                            at += i % extent * stride;
                            stride *= extent;
                        }
                        i /= extent;
                    }
                    at
                };
                let folds =
                    shape.iter().zip(&reduced).filter(|(_, reduced)| !**reduced).map(|(&d, _)| d).product();
                let (mut found, mut expected) = (vec![0; folds], vec![0; folds]);
                fold(&values, &shape, &reduced, &mut found, &|sum: &mut u64, value| *sum += value);
                values.iter().enumerate().for_each(|(i, value)| expected[place(i)] += value);
                assert_eq!(found, expected, "{shape:?} {reduced:?}");
            }
        }
    }
}
