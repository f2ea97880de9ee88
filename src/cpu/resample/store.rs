//! Storing a row of float32 results as the output's type. DALI's CPU kernels round in two ways, and so does this: whole
//! vectors of 16 bytes round halves to even, what remains after them rounds halves away from zero. It must not know how
//! the row was made.

use std::ops::Range;

use multiversion::multiversion;

use crate::cpu::convert::ConvertSat;
use crate::tensor::Element;

/// A type that resampled pixels can be stored as.
pub trait Output: Element {
    /// Rounds halves to even and saturates.
    fn from_even(value: f32) -> Self;
    /// Rounds halves away from zero and saturates.
    fn from_away(value: f32) -> Self;
}

/// 1.5 * 2^23: adding it to a value of less than 2^22 moves the value's ones to the lowest bit.
const ROUND_TO_INTEGER: f32 = 12_582_912.0;

macro_rules! integer_outputs {
    ($($int:ty),*) => { $(
        impl Output for $int {
            #[inline(always)]
            fn from_even(value: f32) -> Self {
                // The sum has no bits left for a fraction, so the addition rounds, to even; its low bits are the
                // integer. Far faster than `round_ties_even` with a saturating cast.
                let value = value.clamp(Self::MIN.into(), Self::MAX.into());
                (value + ROUND_TO_INTEGER).to_bits() as $int
            }
            #[inline(always)]
            fn from_away(value: f32) -> Self {
                value.convert_sat()
            }
        }
    )* };
}
integer_outputs!(u8, i16, u16);

impl Output for f32 {
    #[inline(always)]
    fn from_even(value: f32) -> Self {
        value
    }
    #[inline(always)]
    fn from_away(value: f32) -> Self {
        value
    }
}

/// Where a row is cut into vectors: each segment (in elements) separately, `group` elements (of a byte) to a vector.
#[derive(Clone)]
pub(super) struct Segments {
    pub(super) ranges: [Range<usize>; 3],
    /// Elements that share the place in the vector: channels when vectors run over columns, else 1.
    pub(super) unit: usize,
}

impl Segments {
    /// Stores `row` to `dst`, which are equally long.
    pub(super) fn store<T: Output>(&self, row: &[f32], dst: &mut [T]) {
        let group = 16 / size_of::<T>() * self.unit;
        for range in &self.ranges {
            let even = range.end - range.len() % group.max(1);
            for (part, store) in
                [(range.start..even, store_even as fn(&[f32], &mut [T])), (even..range.end, store_away)]
            {
                if let (Some(row), Some(dst)) = (row.get(part.clone()), dst.get_mut(part)) {
                    store(row, dst);
                }
            }
        }
    }
}

#[multiversion(targets("x86_64+avx+avx2+avx512f+avx512bw+avx512cd+avx512dq+avx512vl", "x86_64+avx+avx2"))]
fn store_even<T: Output>(row: &[f32], dst: &mut [T]) {
    for (to, &value) in dst.iter_mut().zip(row) {
        *to = T::from_even(value);
    }
}

fn store_away<T: Output>(row: &[f32], dst: &mut [T]) {
    for (to, &value) in dst.iter_mut().zip(row) {
        *to = T::from_away(value);
    }
}
