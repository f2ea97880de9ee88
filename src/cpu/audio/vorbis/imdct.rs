//! The transform of Vorbis, and the windows between blocks. It must not know packets.

use std::f64::consts::PI;
use std::sync::Arc;

use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftPlanner};

use crate::error::Result;

/// Transforms blocks of one size.
pub(crate) struct Imdct {
    fft: Arc<dyn Fft<f32>>,
    twiddles: Vec<Complex32>,
    values: Vec<Complex32>,
    scratch: Vec<Complex32>,
    /// How a block of this size begins beside one of the same or a greater size; backwards, how the one before ends.
    pub(crate) slope: Vec<f32>,
}

impl Imdct {
    /// Of blocks of `size` samples, a power of two from 8 on.
    pub(crate) fn new(size: usize) -> Result<Self> {
        let quarter = size / 4;
        let fft = FftPlanner::new().plan_fft_forward(quarter);
        let turn = |k: usize| {
            let angle = -2.0 * PI * (k as f64 + 0.125) / size as f64;
            Complex32::new(angle.cos() as f32, angle.sin() as f32)
        };
        let rise = |i: usize| {
            let inner = (PI * (i as f64 + 0.5) / size as f64).sin();
            (PI / 2.0 * inner * inner).sin() as f32
        };
        let mut twiddles = super::filled(quarter, Complex32::default())?;
        twiddles.iter_mut().enumerate().for_each(|(k, to)| *to = turn(k));
        let mut slope = super::zeros(size / 2)?;
        slope.iter_mut().enumerate().for_each(|(i, to): (usize, &mut f32)| *to = rise(i));
        let values = twiddles.clone();
        let scratch = super::filled(fft.get_inplace_scratch_len(), Complex32::default())?;
        Ok(Self { fft, twiddles, values, scratch, slope })
    }

    /// Bytes that a transform of blocks of `size` holds.
    pub(crate) fn bytes(size: usize) -> usize {
        // Twiddles here and in the Fourier transform, values, scratch; the slope.
        size / 4 * 4 * size_of::<Complex32>() + size / 2 * size_of::<f32>()
    }

    /// Makes of as many coefficients as half a block has samples that block's middle half, in their place. The quarter
    /// in front is the first half of it backwards with the other sign, the quarter behind the second half backwards.
    pub(crate) fn run(&mut self, data: &mut [f32]) {
        let Self { fft, twiddles, values, scratch, .. } = self;
        let last = data.len().wrapping_sub(1);
        for (k, (to, twiddle)) in values.iter_mut().zip(&*twiddles).enumerate() {
            let (Some(&even), Some(&odd)) = (data.get(2 * k), data.get(last.wrapping_sub(2 * k))) else {
                return;
            };
            *to = Complex32::new(even, odd) * twiddle;
        }
        fft.process_with_scratch(values, scratch);
        for (m, (value, twiddle)) in values.iter().zip(&*twiddles).enumerate() {
            let value = value * twiddle;
            if let Some(to) = data.get_mut(2 * m) {
                *to = value.im;
            }
            if let Some(to) = data.get_mut(last.wrapping_sub(2 * m)) {
                *to = -value.re;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transform_is_that_of_the_definition() {
        let size = 64;
        let coefficients: Vec<f32> = (0..size / 2).map(|k| (k * k % 7) as f32 - 3.0).collect();
        let mut data = coefficients.clone();
        Imdct::new(size).unwrap().run(&mut data);
        for (i, &found) in data.iter().enumerate() {
            let place = (2 * (i + size / 4) + 1 + size / 2) as f64;
            let sum: f64 = coefficients
                .iter()
                .enumerate()
                .map(|(k, &x)| f64::from(x) * (PI / (2 * size) as f64 * place * (2 * k + 1) as f64).cos())
                .sum();
            assert!((sum - f64::from(found)).abs() < 1e-4, "{i}: {found}, expected {sum}");
        }
    }
}
