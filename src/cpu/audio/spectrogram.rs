//! The spectrum of a signal over time: Fourier transforms of windows at equal steps. It must not know arguments.

use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};

use crate::deadline::{Effort, Watch};
use crate::error::Result;

/// Nanoseconds of one core of a Zen 5 for each sample of a transform, and for each of its steps: several times as long
/// where the length is no product of small primes.
const ELEMENT: f64 = 1.5;
const STEP: f64 = 1.0;
const STEP_OF_LARGE_PRIMES: f64 = 4.5;
const SMALL_PRIMES: [usize; 4] = [2, 3, 5, 7];
/// Bytes of memory for each sample of a transform.
const SCRATCH: usize = 32;
/// Samples of other work that take as long as one of a transform.
const WORK: usize = 16;

/// How a signal is cut and transformed.
pub struct Spectrogram {
    /// Multiplies the samples of a window.
    pub window: Vec<f32>,
    /// Samples between the starts of two windows.
    pub step: usize,
    /// Whether windows are centered on their steps, so that the first and the last leave the signal.
    pub is_centered: bool,
    /// Whether the signal is mirrored beyond its ends instead of being silent there.
    pub mirrors: bool,
    /// Whether magnitudes are squared.
    pub squares: bool,
    /// Whether bins, not windows, are neighbours in the output.
    pub bins_last: bool,
    fft: Arc<dyn RealToComplex<f32>>,
}

impl Spectrogram {
    /// By transforms of `length` samples, at least as many as `window` has.
    pub fn new(length: usize, window: Vec<f32>, step: usize) -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(length);
        Self { window, step, is_centered: true, mirrors: true, squares: true, bins_last: false, fft }
    }

    /// Samples of a transform.
    pub fn length(&self) -> usize {
        self.fft.len()
    }

    /// Bins of a spectrum.
    pub fn bins(&self) -> usize {
        self.fft.len() / 2 + 1
    }

    /// Windows of a signal of `length` samples.
    pub fn windows(&self, length: usize) -> usize {
        if self.is_centered {
            length / self.step + 1
        } else {
            (length + self.step).saturating_sub(self.window.len()) / self.step
        }
    }

    /// What the spectra of `windows` windows are expected to take.
    pub fn effort(&self, windows: usize) -> Effort {
        let length = self.length();
        let rest = SMALL_PRIMES.iter().fold(length.max(1), |mut rest, prime| {
            while rest.is_multiple_of(*prime) {
                rest /= prime;
            }
            rest
        });
        let step = if rest == 1 { STEP } else { STEP_OF_LARGE_PRIMES };
        let each = length as f64 * (ELEMENT + step * (length as f64).log2());
        Effort::new(windows as f64 * each, length.saturating_mul(SCRATCH))
    }

    /// Writes the spectra of all windows of `signal`.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn run(&self, signal: &[f32], out: &mut [f32], watch: &Watch<'_>) -> Result<()> {
        let (bins, windows) = (self.bins(), self.windows(signal.len()));
        let mut input = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let before = if self.is_centered { self.window.len() / 2 } else { 0 };
        for i in 0..windows {
            input.fill(0.0);
            let start = (i * self.step) as i64 - before as i64;
            for (k, (to, weight)) in input.iter_mut().zip(&self.window).enumerate() {
                *to = weight * self.sample(signal, start + k as i64);
            }
            // Buffers of other sizes than the plan's are the only error.
            if self.fft.process_with_scratch(&mut input, &mut spectrum, &mut scratch).is_err() {
                return Ok(());
            }
            for (bin, value) in spectrum.iter().enumerate() {
                let power = value.norm_sqr();
                let place = if self.bins_last { i * bins + bin } else { bin * windows + i };
                if let Some(to) = out.get_mut(place) {
                    *to = if self.squares { power } else { power.sqrt() };
                }
            }
            watch.charge(self.length().saturating_mul(WORK))?;
        }
        Ok(())
    }

    fn sample(&self, signal: &[f32], at: i64) -> f32 {
        let length = signal.len() as i64;
        if (0..length).contains(&at) {
            return signal[at as usize];
        }
        if !self.mirrors || length == 0 {
            return 0.0;
        }
        let period = (2 * length - 2).max(1);
        let at = at.rem_euclid(period);
        signal[at.min(period - at) as usize]
    }
}

/// A Hann window of `length` samples.
pub fn hann(length: usize) -> Vec<f32> {
    let phase = 2.0 * std::f64::consts::PI / length as f64;
    (0..length).map(|t| (0.5 * (1.0 - (phase * (t as f64 + 0.5)).cos())) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_counted_as_they_fit() {
        let mut spectrogram = Spectrogram::new(16, vec![1.0; 16], 8);
        assert_eq!((spectrogram.bins(), spectrogram.windows(100)), (9, 13));
        spectrogram.is_centered = false;
        assert_eq!([100, 16, 15, 0].map(|length| spectrogram.windows(length)), [11, 1, 0, 0]);
    }
}
