//! Tables of a Fourier transform of any length by a convolution whose length is a power of two (Bluestein), for those
//! who transform on a device. It must not know devices.

use std::f64::consts::PI;

/// A complex number: real and imaginary part.
type Complex = [f64; 2];

/// What a transform of some length needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Chirp {
    /// Cosine and sine of i * i / (2 * length) of a circle, for each sample: a sample times its conjugate is convolved
    /// with them, on both sides of 0.
    pub chirp: Vec<[f32; 2]>,
    /// The spectrum of that chirp around a circle of as many samples as this, over their number, in the order of
    /// reversed bits.
    pub filter: Vec<[f32; 2]>,
}

impl Chirp {
    /// Tables for transforms of `length` samples, at least one.
    pub fn new(length: usize) -> Self {
        let span = span(length);
        let turn = |i: usize| {
            let part = (i as u64 * i as u64 % (2 * length as u64)) as f64 / length as f64;
            [(PI * part).cos(), (PI * part).sin()]
        };
        let chirp: Vec<Complex> = (0..length).map(turn).collect();
        let mut circle = vec![[0.0; 2]; span];
        for (i, &value) in chirp.iter().enumerate() {
            circle[i] = value;
            circle[(span - i) % span] = value;
        }
        transform(&mut circle);
        let narrow = |[re, im]: Complex| [re as f32, im as f32];
        let over = 1.0 / span as f64;
        Self {
            chirp: chirp.into_iter().map(narrow).collect(),
            filter: circle.into_iter().map(|[re, im]| narrow([re * over, im * over])).collect(),
        }
    }
}

/// Samples of the convolution for transforms of `length`: no part of it may reach another one around the circle.
pub fn span(length: usize) -> usize {
    (2 * length.max(1) - 1).next_power_of_two()
}

/// Cosines and sines of `count` parts of a circle that has `parts` of them.
pub fn turns(count: usize, parts: usize) -> Vec<[f32; 2]> {
    let angle = |i: usize| 2.0 * PI * i as f64 / parts as f64;
    (0..count).map(|i| [angle(i).cos() as f32, angle(i).sin() as f32]).collect()
}

/// The spectrum of as many samples as a power of two, in their place, in the order of reversed bits.
fn transform(values: &mut [Complex]) {
    let mut size = values.len();
    while size > 1 {
        let half = size / 2;
        let turns: Vec<Complex> = (0..half)
            .map(|k| -2.0 * PI * k as f64 / size as f64)
            .map(|angle| [angle.cos(), angle.sin()])
            .collect();
        for block in values.chunks_exact_mut(size) {
            let (first, second) = block.split_at_mut(half);
            for ((a, b), [cos, sin]) in first.iter_mut().zip(second).zip(&turns) {
                let [x, y] = [a[0] - b[0], a[1] - b[1]];
                *a = [a[0] + b[0], a[1] + b[1]];
                *b = [x * cos - y * sin, x * sin + y * cos];
            }
        }
        size = half;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_is_that_of_the_definition() {
        let mut values: Vec<Complex> = (0..8_i32).map(|i| [f64::from(i * i % 5), f64::from(i % 3)]).collect();
        let signal = values.clone();
        transform(&mut values);
        for (place, &[re, im]) in values.iter().enumerate() {
            let bin = (place as u8).reverse_bits() >> 5;
            let sum = signal.iter().enumerate().fold([0.0; 2], |[x, y], (i, [a, b])| {
                let angle = -2.0 * PI * (i * usize::from(bin)) as f64 / 8.0;
                [x + a * angle.cos() - b * angle.sin(), y + a * angle.sin() + b * angle.cos()]
            });
            assert!((re - sum[0]).abs() + (im - sum[1]).abs() < 1e-12, "{bin}");
        }
    }

    #[test]
    fn a_convolution_is_a_transform() {
        assert_eq!([1, 2, 3, 5, 8, 9].map(span), [1, 4, 8, 16, 16, 32]);
        let (length, signal) = (5, [1.0, -2.0, 0.5, 3.0, -1.0]);
        let Chirp { chirp, filter } = Chirp::new(length);
        let wide = |[re, im]: [f32; 2]| [f64::from(re), f64::from(im)];
        let mut values = vec![[0.0; 2]; span(length)];
        for (to, (sample, &turn)) in values.iter_mut().zip(signal.iter().zip(&chirp)) {
            let [cos, sin] = wide(turn);
            *to = [sample * cos, -sample * sin];
        }
        transform(&mut values);
        for (value, &factor) in values.iter_mut().zip(&filter) {
            let ([x, y], [re, im]) = (*value, wide(factor));
            *value = [x * re - y * im, x * im + y * re];
        }
        for bin in 0..length {
            let mut found = [0.0; 2];
            for (place, [re, im]) in values.iter().enumerate() {
                let angle = 2.0 * PI * f64::from((place as u8).reverse_bits() >> 4) * bin as f64 / 16.0;
                found[0] += re * angle.cos() - im * angle.sin();
                found[1] += re * angle.sin() + im * angle.cos();
            }
            let expected = signal.iter().enumerate().fold([0.0; 2], |[x, y], (i, sample)| {
                let angle = -2.0 * PI * (i * bin) as f64 / length as f64;
                [x + sample * angle.cos(), y + sample * angle.sin()]
            });
            let [found, expected] = [found, expected].map(|[x, y]: Complex| x.hypot(y));
            assert!((found - expected).abs() < 1e-5, "{bin}: {found}, expected {expected}");
        }
    }
}
