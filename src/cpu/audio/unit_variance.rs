//! Signals made to have a mean of 0 and a variance of 1, in numpy's float32, so that each value is equal to the bit. It
//! must not know tensors.

use super::pairwise::mean;

/// Added to a variance before its root is taken.
pub const EPSILON: f32 = 1e-7;

/// Writes the normalized values of `signal` to `out`, which is as long.
pub fn normalize(signal: &[f32], out: &mut [f32]) {
    let center = mean(signal, signal.len());
    for (to, value) in out.iter_mut().zip(signal) {
        let distance = value - center;
        *to = distance * distance;
    }
    let deviation = (mean(out, out.len()) + EPSILON).sqrt();
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
