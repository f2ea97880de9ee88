//! Logarithms of mel bands as Kaldi has them, and SeamlessM4T's form of them. Numbers are those of transformers' code
//! for numpy: spectra in doubles, rounded to float32, all else in doubles up to the logarithm; means and variances of
//! bands in float32. It must not know tensors.

use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};

use super::band::{Band, no_numbers};
use super::pairwise;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};

/// Samples of a window.
pub const WINDOW: usize = 400;
/// Samples from one window to the next.
pub const STEP: usize = 160;
/// Samples of a transform, of which those behind the window are 0.
pub const LENGTH: usize = 512;
/// Where the first band begins, in hertz.
const LOW: f64 = 20.0;
/// Powers below are this.
pub const FLOOR: f64 = 1.192_092_955_078_125e-7;
/// What of a sample is subtracted from the next one.
pub const EMPHASIS: f64 = 0.97;
/// The power of a Hann window that Kaldi's is.
const POVEY: f64 = 0.85;
/// What samples are multiplied by: those of 16 bits are whole numbers then.
pub const LEVELS: f32 = 32_768.0;
/// Added to a variance before its root is taken.
pub const EPSILON: f32 = 1e-7;

/// Nanoseconds of a core for a window, and for a band of it.
const WINDOW_NS: f64 = 8_000.0;
const BAND_NS: f64 = 40.0;

/// Makes features of signals.
pub struct Features {
    window: Vec<f64>,
    bands: Vec<Band>,
    fft: Arc<dyn RealToComplex<f64>>,
}

impl Features {
    /// So many bands, of signals with so many samples a second.
    pub fn new(bands: usize, sample_rate: usize) -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(LENGTH);
        Self { window: povey(), bands: bank(bands, sample_rate), fft }
    }

    /// Factors of a window's samples.
    pub fn window(&self) -> &[f64] {
        &self.window
    }

    /// The filters.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// Windows of a signal of `samples` samples.
    pub fn windows(samples: usize) -> usize {
        samples.checked_sub(WINDOW).map_or(0, |rest| rest / STEP + 1)
    }

    /// What a signal of `samples` samples is expected to take.
    pub fn effort(&self, samples: usize) -> Effort {
        let (windows, bands) = (Self::windows(samples), self.bands.len());
        let time = windows as f64 * (WINDOW_NS + bands as f64 * BAND_NS);
        Effort::new(time, windows.saturating_mul(bands).saturating_mul(size_of::<f32>()))
    }

    /// Writes the features of `signal`, a row of bands for each window, and zeros behind them; each band has a mean of
    /// 0 and a variance of 1.
    ///
    /// # Errors
    /// When the signal has values that are no numbers or so large that their powers are none; when nobody waits any
    /// more.
    pub fn run(&self, signal: &[f32], out: &mut [f32], watch: &Watch<'_>) -> Result<()> {
        let (windows, bands) = (Self::windows(signal.len()), self.bands.len());
        let mut input = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut powers = vec![0.0; spectrum.len()];
        // A column for each band, as its values are added.
        let mut columns = vec![0.0f32; windows * bands];
        for window in 0..windows {
            input.fill(0.0);
            let samples = signal.get(window * STEP..).unwrap_or_default();
            self.prepare(samples, &mut input);
            self.fft
                .process_with_scratch(&mut input, &mut spectrum, &mut scratch)
                .map_err(|error| Error::internal(error.to_string()))?;
            for (power, value) in powers.iter_mut().zip(&spectrum) {
                let size = f64::from(value.re as f32).hypot(f64::from(value.im as f32));
                *power = size * size;
            }
            for (number, band) in self.bands.iter().enumerate() {
                let power = band.power(&powers);
                let value = power.max(FLOOR).ln() as f32;
                if !value.is_finite() || power.is_nan() {
                    return Err(no_numbers());
                }
                if let Some(to) = columns.get_mut(number * windows + window) {
                    *to = value;
                }
            }
            watch.charge(LENGTH * size_of::<f64>())?;
        }
        out.fill(0.0);
        for (number, column) in columns.chunks_exact(windows.max(1)).enumerate() {
            let places = out.iter_mut().skip(number).step_by(bands.max(1));
            normalize(column, places);
        }
        Ok(())
    }

    /// The window's samples around their mean, each less a part of the one before, times the window.
    fn prepare(&self, samples: &[f32], input: &mut [f64]) {
        for (to, &sample) in input.iter_mut().zip(samples.iter().take(WINDOW)) {
            *to = f64::from(sample * LEVELS);
        }
        let Some(samples) = input.get_mut(..WINDOW) else { return };
        let mean = pairwise::sum(samples) / WINDOW as f64;
        samples.iter_mut().for_each(|sample| *sample -= mean);
        for at in (1..WINDOW).rev() {
            samples[at] -= EMPHASIS * samples[at - 1];
        }
        samples[0] *= 1.0 - EMPHASIS;
        samples.iter_mut().zip(&self.window).for_each(|(sample, weight)| *sample *= weight);
    }
}

/// Writes a band's values with a mean of 0 and a variance of 1, that of a part of all values.
fn normalize<'a>(values: &[f32], to: impl Iterator<Item = &'a mut f32>) {
    let center = pairwise::mean(values, values.len());
    let squares: Vec<f32> = values.iter().map(|value| (value - center) * (value - center)).collect();
    let deviation = (pairwise::mean(&squares, values.len().saturating_sub(1)) + EPSILON).sqrt();
    for (to, value) in to.zip(values) {
        *to = (value - center) / deviation;
    }
}

/// Kaldi's window: a symmetric Hann window, raised to a power.
fn povey() -> Vec<f64> {
    let angle =
        |n: usize| std::f64::consts::PI * (1.0 + 2.0 * n as f64 - WINDOW as f64) / (WINDOW - 1) as f64;
    (0..WINDOW).map(|n| (0.5 + 0.5 * angle(n).cos()).powf(POVEY)).collect()
}

/// Triangles that are equally wide in mel.
fn bank(bands: usize, sample_rate: usize) -> Vec<Band> {
    let mel = |hertz: f64| 1127.0 * (1.0 + hertz / 700.0).ln();
    let (first, last) = (mel(LOW), mel((sample_rate / 2) as f64));
    let step = (last - first) / (bands + 1) as f64;
    let corner = |n: usize| if n > bands { last } else { n as f64 * step + first };
    let corners: Vec<f64> = (0..bands + 2).map(corner).collect();
    let bins: Vec<f64> =
        (0..LENGTH / 2 + 1).map(|bin| mel(sample_rate as f64 / LENGTH as f64 * bin as f64)).collect();
    corners
        .windows(3)
        .map(|corners| {
            Band::of(bins.len(), |bin| {
                let rising = -(corners[0] - bins[bin]) / (corners[1] - corners[0]);
                let falling = (corners[2] - bins[bin]) / (corners[2] - corners[1]);
                rising.min(falling).max(0.0)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(signal: &[f32]) -> Result<Vec<f32>> {
        let mut out = vec![f32::NAN; (Features::windows(signal.len()) + 1) * 80];
        Features::new(80, 16_000).run(signal, &mut out, &Watch::forever())?;
        Ok(out)
    }

    #[test]
    fn windows_are_whole() {
        let counts = [0, 399, 400, 559, 560, 16_000].map(Features::windows);
        assert_eq!(counts, [0, 0, 1, 1, 2, 98]);
    }

    #[test]
    fn bands_have_a_mean_of_0_and_zeros_behind_them() {
        let tone: Vec<f32> = (0..4000).map(|i| (i as f32 * i as f32 * 1e-4).sin() * 0.5).collect();
        let out = features(&tone).unwrap();
        let windows = Features::windows(4000);
        for band in [0, 40, 79] {
            let sum: f32 = (0..windows).map(|window| out[window * 80 + band]).sum();
            assert!(sum.abs() < 1e-3, "{band}: {sum}");
        }
        assert!(out[windows * 80..].iter().all(|&value| value == 0.0));
    }

    #[test]
    fn what_has_no_power_is_an_error() {
        for value in [f32::NAN, f32::INFINITY, f32::MAX] {
            assert!(features(&[value; 600]).unwrap_err().to_string().contains("no numbers"), "{value}");
        }
    }
}
