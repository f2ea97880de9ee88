//! Logarithms of mel bands as Whisper takes them. Numbers are those of transformers' code for numpy: spectra in
//! doubles, rounded to float32, all else in doubles up to the logarithm. It must not know tensors.

use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};

use super::band::{Band, no_numbers};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};

/// Powers below are this.
pub const FLOOR: f64 = 1e-10;

/// Powers of ten below the loudest value that are kept.
pub const RANGE: f32 = 8.0;

/// Nanoseconds of a core for a window's sample, its transform included.
const SAMPLE_NS: f64 = 20.0;

/// Bytes of scratch memory for each sample of a transform.
const SCRATCH: usize = 64;

/// The scale on which bands are equally wide: linear up to 1,000 Hz, then logarithmic (Slaney's).
mod mel {
    const LINEAR_HZ: f64 = 1000.0;
    const LINEAR_MEL: f64 = 15.0;

    pub(super) fn of_hertz(hertz: f64) -> f64 {
        if hertz < LINEAR_HZ {
            return 3.0 * hertz / 200.0;
        }
        LINEAR_MEL + (hertz / LINEAR_HZ).ln() * (27.0 / 6.4f64.ln())
    }

    pub(super) fn to_hertz(mel: f64) -> f64 {
        if mel < LINEAR_MEL {
            return 200.0 * mel / 3.0;
        }
        LINEAR_HZ * (6.4f64.ln() / 27.0 * (mel - LINEAR_MEL)).exp()
    }
}

/// What features are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Number of bands.
    pub bands: usize,
    /// Samples of a window and of its transform.
    pub length: usize,
    /// Samples from one window to the next.
    pub step: usize,
    /// Samples a second.
    pub sample_rate: usize,
    /// Where the last band ends, in hertz.
    pub high: f64,
}

/// Makes features of signals.
pub struct LogMel {
    settings: Settings,
    window: Vec<f64>,
    bands: Vec<Band>,
    fft: Arc<dyn RealToComplex<f64>>,
}

impl LogMel {
    /// With tables for these settings, none of which is 0.
    pub fn new(settings: Settings) -> Self {
        let length = settings.length;
        let fft = RealFftPlanner::new().plan_fft_forward(length);
        Self { window: hann(length), bands: bands(&settings), settings, fft }
    }

    /// Numbers of bands and of windows of a signal of `samples` samples.
    pub fn shape(&self, samples: usize) -> [usize; 2] {
        let Settings { bands, length, step, .. } = self.settings;
        // The last of the windows that there are is left out.
        [bands, (samples + length / 2 * 2).saturating_sub(length) / step]
    }

    /// What these features are made of.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Factors of a window's samples.
    pub fn window(&self) -> &[f64] {
        &self.window
    }

    /// The filters.
    pub fn bands(&self) -> &[Band] {
        &self.bands
    }

    /// What a signal of `samples` samples is expected to take.
    pub fn effort(&self, samples: usize) -> Effort {
        let length = self.settings.length;
        let windows = self.shape(samples)[1] as f64;
        let steps = (length.max(2) as f64).log2();
        Effort::new(windows * length as f64 * SAMPLE_NS * steps / 8.0, length.saturating_mul(SCRATCH))
    }

    /// Writes the features of `signal` and of silence behind it, `samples` samples together: a row for each band.
    ///
    /// # Errors
    /// When the signal has values that are no numbers or so large that their powers are none; when nobody waits any
    /// more.
    pub fn run(&self, signal: &[f32], samples: usize, out: &mut [f32], watch: &Watch<'_>) -> Result<()> {
        let [_, windows] = self.shape(samples);
        let before = self.settings.length / 2;
        let mut input = self.fft.make_input_vec();
        let mut spectrum = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut powers = vec![0.0; spectrum.len()];
        let mut loudest = f32::NEG_INFINITY;
        for window in 0..windows {
            let start = (window * self.settings.step) as i64 - before as i64;
            for ((to, weight), at) in input.iter_mut().zip(&self.window).zip(start..) {
                *to = f64::from(sample(signal, samples, at)) * weight;
            }
            self.fft
                .process_with_scratch(&mut input, &mut spectrum, &mut scratch)
                .map_err(|error| Error::internal(error.to_string()))?;
            for (power, value) in powers.iter_mut().zip(&spectrum) {
                let (re, im) = (f64::from(value.re as f32), f64::from(value.im as f32));
                *power = re * re + im * im;
            }
            for (number, band) in self.bands.iter().enumerate() {
                let power = band.power(&powers);
                let value = power.max(FLOOR).log10() as f32;
                if !value.is_finite() || power.is_nan() {
                    return Err(no_numbers());
                }
                loudest = loudest.max(value);
                if let Some(to) = out.get_mut(number * windows + window) {
                    *to = value;
                }
            }
            watch.charge(self.settings.length.saturating_mul(SCRATCH))?;
        }
        for value in out {
            *value = (value.max(loudest - RANGE) + 4.0) / 4.0;
        }
        Ok(())
    }
}

/// A sample of a signal that is mirrored beyond its ends, where it is silent from its own end up to `samples`.
fn sample(signal: &[f32], samples: usize, at: i64) -> f32 {
    let period = (2 * samples as i64 - 2).max(1);
    let at = if (0..samples as i64).contains(&at) { at } else { at.rem_euclid(period) };
    let at = if at >= samples as i64 { period - at } else { at };
    signal.get(at as usize).copied().unwrap_or_default()
}

/// A periodic Hann window, in numpy's way: the symmetric one of a sample more, without its last.
fn hann(length: usize) -> Vec<f64> {
    let angle = |n: usize| std::f64::consts::PI * (2.0 * n as f64 - length as f64) / length as f64;
    (0..length).map(|n| 0.5 + 0.5 * angle(n).cos()).collect()
}

/// Triangles that are equally wide in mel and of equal areas in hertz.
fn bands(settings: &Settings) -> Vec<Band> {
    let bins = settings.length / 2 + 1;
    let last = mel::of_hertz(settings.high);
    let step = last / (settings.bands + 1) as f64;
    let corner = |n: usize| mel::to_hertz(if n > settings.bands { last } else { n as f64 * step });
    let corners: Vec<f64> = (0..settings.bands + 2).map(corner).collect();
    let half = (settings.sample_rate / 2) as f64;
    let width = half / (bins - 1).max(1) as f64;
    let hertz = |bin: usize| if bin + 1 == bins { half } else { bin as f64 * width };
    corners
        .windows(3)
        .map(|corners| {
            let area = 2.0 / (corners[2] - corners[0]);
            let weight = |bin: usize| {
                let falling = (corners[2] - hertz(bin)) / (corners[2] - corners[1]);
                let rising = -(corners[0] - hertz(bin)) / (corners[1] - corners[0]);
                rising.min(falling).max(0.0) * area
            };
            Band::of(bins, weight)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHISPER: Settings =
        Settings { bands: 80, length: 400, step: 160, sample_rate: 16_000, high: 8000.0 };

    fn features(signal: &[f32], samples: usize) -> Result<Vec<f32>> {
        let made = LogMel::new(WHISPER);
        let [bands, windows] = made.shape(samples);
        let mut out = vec![f32::NAN; bands * windows];
        made.run(signal, samples, &mut out, &Watch::forever())?;
        Ok(out)
    }

    #[test]
    fn silence_is_the_floor() {
        assert_eq!(LogMel::new(WHISPER).shape(480_000), [80, 3000]);
        assert_eq!(features(&[], 480).unwrap(), vec![-1.5; 240]);
    }

    #[test]
    fn a_tone_is_loudest_in_its_band() {
        let tone: Vec<f32> = (0..1600).map(|i| (i as f32 * std::f32::consts::FRAC_PI_4).sin()).collect();
        let out = features(&tone, 1600).unwrap();
        let loudest = (0..80).max_by(|&a, &b| out[a * 10 + 5].total_cmp(&out[b * 10 + 5])).unwrap();
        let center = mel::to_hertz(mel::of_hertz(8000.0) / 81.0 * (loudest + 1) as f64);
        assert!((center - 2000.0).abs() < 70.0, "{center}");
    }

    #[test]
    fn what_has_no_power_is_an_error() {
        for value in [f32::NAN, f32::INFINITY, f32::MAX] {
            assert!(features(&[value; 300], 320).unwrap_err().to_string().contains("no numbers"), "{value}");
        }
    }

    /// Bands without a bin, transforms of one sample, and signals shorter than the mirror reaches.
    #[test]
    fn extreme_settings_do_not_panic() {
        for (bands, length, step) in [(300, 16, 7), (1, 1, 1), (80, 3, 5), (3, 2, 1)] {
            let made = LogMel::new(Settings { bands, length, step, ..WHISPER });
            for samples in [1, 2, 5, 40] {
                let [bands, windows] = made.shape(samples);
                let mut out = vec![0.0; bands * windows];
                made.run(&[0.5], samples, &mut out, &Watch::forever()).unwrap();
                assert!(out.iter().all(|value| value.is_finite()));
            }
        }
    }
}
