//! Signals made to have a mean of 0 and a variance of 1, in numpy's float32: sums of eight in parallel within blocks,
//! of halves above them, so that each value is equal to the bit. It must not know tensors.

/// Elements up to which a sum is one loop.
const BLOCK: usize = 128;

/// Sums side by side within such a loop.
const LANES: usize = 8;

/// Added to a variance before its root is taken.
const EPSILON: f32 = 1e-7;

/// The sum of all values, in numpy's order.
fn sum(values: &[f32]) -> f32 {
    if values.len() > BLOCK {
        let half = values.len() / 2;
        let (first, second) = values.split_at(half - half % LANES);
        return sum(first) + sum(second);
    }
    let (rows, rest) = values.as_chunks::<LANES>();
    let Some((first, others)) = rows.split_first() else {
        return rest.iter().fold(-0.0, |sum, value| sum + value);
    };
    let mut lanes = *first;
    for row in others {
        lanes.iter_mut().zip(row).for_each(|(lane, value)| *lane += value);
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let all = ((a + b) + (c + d)) + ((e + f) + (g + h));
    rest.iter().fold(all, |sum, value| sum + value)
}

fn mean(values: &[f32]) -> f32 {
    (f64::from(sum(values)) / values.len() as f64) as f32
}

/// Writes the normalized values of `signal` to `out`, which is as long.
pub fn normalize(signal: &[f32], out: &mut [f32]) {
    let center = mean(signal);
    for (to, value) in out.iter_mut().zip(signal) {
        let distance = value - center;
        *to = distance * distance;
    }
    let deviation = (mean(out) + EPSILON).sqrt();
    for (to, value) in out.iter_mut().zip(signal) {
        *to = (value - center) / deviation;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_variance_are_those_asked_for() {
        for length in [1usize, 7, 8, 129, 4000] {
            let signal: Vec<f32> = (0..length).map(|i| (i * i % 31) as f32 - 9.0).collect();
            let mut out = vec![f32::NAN; length];
            normalize(&signal, &mut out);
            let mean = out.iter().sum::<f32>() / length as f32;
            let variance = out.iter().map(|value| value * value).sum::<f32>() / length as f32;
            assert!(mean.abs() < 1e-5 && (length == 1 || (variance - 1.0).abs() < 1e-4), "{mean} {variance}");
        }
    }
}
