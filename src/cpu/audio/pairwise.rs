//! Sums and means in numpy's order, so that each is equal to the bit: eight sums side by side within blocks, halves
//! above them. It must not know what is added.

use std::ops::Add;

/// Elements up to which a sum is one loop.
const BLOCK: usize = 128;

/// Sums side by side within such a loop.
const LANES: usize = 8;

/// The sum of all values.
pub(super) fn sum<T: Copy + Add<Output = T> + From<f32>>(values: &[T]) -> T {
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % LANES);
        return sum(first) + sum(second);
    }
    let (rows, rest) = values.as_chunks::<LANES>();
    let Some((first, others)) = rows.split_first() else {
        return rest.iter().fold(T::from(-0.0), |sum, &value| sum + value);
    };
    let mut lanes = *first;
    for row in others {
        lanes.iter_mut().zip(row).for_each(|(lane, &value)| *lane = *lane + value);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let all = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(all, |sum, &value| sum + value)
}

/// The mean of float32 values, whose sum is divided as a double: by `count`, which may be another number than theirs.
pub(super) fn mean(values: &[f32], count: usize) -> f32 {
    (f64::from(sum(values)) / count as f64) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_added_in_numpys_order() {
        // In the order in which they stand, 1 would vanish beside 2^53 each time.
        let mut values = [1.0f64; 300];
        values[0] = 9_007_199_254_740_992.0;
        assert_eq!(sum(&values) - values[0], 290.0);
        assert_eq!(sum::<f64>(&[]).to_bits(), (-0.0f64).to_bits());
        assert_eq!(mean(&[1.0, 2.0], 1), 3.0);
    }
}
