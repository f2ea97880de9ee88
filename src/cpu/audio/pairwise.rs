//! Sums and means in numpy's order, so that each is equal to the bit: eight sums side by side within blocks, halves
//! above them. It must not know what is added.

use std::ops::Add;

/// Elements up to which a sum is one loop.
pub const BLOCK: usize = 128;

/// Sums side by side within such a loop.
pub const LANES: usize = 8;

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

/// How often `count` values are halved until every part is one loop: a half is whole lanes, so the other may be longer
/// by all but one of them.
pub const fn depth(mut count: usize) -> u32 {
    let mut depth = 0;
    while count > BLOCK {
        count = count.div_ceil(2) + LANES - 1;
        depth += 1;
    }
    depth
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

    #[test]
    fn parts_are_loops_after_as_many_halves() {
        fn longest(count: usize, halves: u32) -> usize {
            let half = count / 2 - count / 2 % LANES;
            match halves {
                0 => count,
                _ if count <= BLOCK => count,
                _ => longest(half, halves - 1).max(longest(count - half, halves - 1)),
            }
        }
        for count in (0..3000).chain([270, 9001, 480_000]) {
            assert!(longest(count, depth(count)) <= BLOCK, "{count}");
        }
        assert_eq!([0, 128, 129, 480_000].map(depth), [0, 0, 1, 13]);
    }
}
