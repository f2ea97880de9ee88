//! Folds of a dense tensor along some of its dimensions, for every element type that reductions take. Which values are
//! folded, this module does not know.
#![expect(clippy::cast_lossless, reason = "one macro makes all numbers")]

use multiversion::multiversion;

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

            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn square(self) -> f64 {
                let square = $square;
                square(self)
            }

            #[inline(always)]
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
    u8: |x: u8| f64::from(x) * f64::from(x),
    u16: |x: u16| f64::from(i32::from(x).wrapping_mul(i32::from(x))),
    u32: |x: u32| f64::from(x) * f64::from(x),
    u64: |x: u64| x.wrapping_mul(x) as f64,
    i8: |x: i8| f64::from(x) * f64::from(x),
    i16: |x: i16| f64::from(x) * f64::from(x),
    i32: |x: i32| f64::from(x) * f64::from(x),
    i64: |x: i64| x.wrapping_mul(x) as f64,
    f32: |x: f32| f64::from(x) * f64::from(x)
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

/// How elements are folded.
pub(super) struct Rule<Empty, Step, Join> {
    /// A fold like this one, without elements.
    pub(super) empty: Empty,
    /// Takes an element into a fold.
    pub(super) step: Step,
    /// Takes what is in another fold into a fold.
    pub(super) join: Join,
}

/// Folds `values`, a tensor of shape `shape`, along the dimensions that `reduced` names, into `folds`: there is one for
/// each position of the other dimensions. The elements of a fold join it in no particular order.
pub(super) fn fold<T: Copy, A: Copy>(
    values: &[T],
    shape: &[usize],
    reduced: &[bool],
    folds: &mut [A],
    rule: &Rule<impl Fn(A) -> A, impl Fn(&mut A, T), impl Fn(&mut A, A)>,
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
        walk(values, &dims, folds, rule);
    }
}

fn walk<T: Copy, A: Copy>(
    values: &[T],
    dims: &[(usize, bool)],
    folds: &mut [A],
    rule: &Rule<impl Fn(A) -> A, impl Fn(&mut A, T), impl Fn(&mut A, A)>,
) {
    match dims {
        [] | [_] | [(_, true), (_, false)] => onto(values, folds, rule),
        [(_, false), (extent, true)] => along(values, *extent, folds, rule),
        [(extent, reduced), rest @ ..] => {
            let parts = values.chunks_exact(values.len() / extent);
            if *reduced {
                parts.for_each(|part| walk(part, rest, folds, rule));
            } else {
                let size = folds.len() / extent;
                parts
                    .zip(folds.chunks_exact_mut(size))
                    .for_each(|(part, folds)| walk(part, rest, folds, rule));
            }
        }
    }
}

/// Folds that are taken into at once where neighbouring elements belong to fewer: then none has to wait for another.
const LANES: usize = 64;

/// Takes rows of `values`, each as long as `folds`, into `folds`.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn onto<T: Copy, A: Copy, Empty: Fn(A) -> A, Step: Fn(&mut A, T), Join: Fn(&mut A, A)>(
    values: &[T],
    folds: &mut [A],
    rule: &Rule<Empty, Step, Join>,
) {
    let Some(&first) = folds.first() else { return };
    let period = folds.len();
    let lanes = LANES / period * period;
    if lanes <= period || values.len() < 2 * lanes {
        for row in values.chunks_exact(period) {
            folds.iter_mut().zip(row).for_each(|(fold, &value)| (rule.step)(fold, value));
        }
        return;
    }
    let mut all = [first; LANES];
    let all = &mut all[..lanes];
    for (lane, &fold) in all.iter_mut().zip(folds.iter().cycle()) {
        *lane = (rule.empty)(fold);
    }
    for rows in values.chunks(lanes) {
        all.iter_mut().zip(rows).for_each(|(lane, &value)| (rule.step)(lane, value));
    }
    for lanes in all.chunks_exact(period) {
        folds.iter_mut().zip(lanes).for_each(|(fold, &lane)| (rule.join)(fold, lane));
    }
}

/// Takes `extent` neighbours of `values` at a time into one of `folds`.
#[multiversion(targets("x86_64+avx+avx2+f16c"))]
fn along<T: Copy, A: Copy, Empty: Fn(A) -> A, Step: Fn(&mut A, T), Join: Fn(&mut A, A)>(
    values: &[T],
    extent: usize,
    folds: &mut [A],
    rule: &Rule<Empty, Step, Join>,
) {
    for (fold, part) in folds.iter_mut().zip(values.chunks_exact(extent)) {
        if extent < 2 * LANES {
            part.iter().for_each(|&value| (rule.step)(fold, value));
        } else {
            onto(part, std::slice::from_mut(fold), rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Along every set of dimensions, against indices worked out one by one.
    #[test]
    fn elements_belong_to_their_folds() {
        for shape in
            [vec![2, 3, 4, 5], vec![3, 1, 7], vec![5], vec![], vec![70, 5, 3], vec![2, 131], vec![300, 2]]
        {
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
                let rule = Rule {
                    empty: |_| 0,
                    step: |sum: &mut u64, value| *sum += value,
                    join: |sum: &mut u64, other| *sum += other,
                };
                fold(&values, &shape, &reduced, &mut found, &rule);
                values.iter().enumerate().for_each(|(i, value)| expected[place(i)] += value);
                assert_eq!(found, expected, "{shape:?} {reduced:?}");
            }
        }
    }
}
