//! What features of sound need on a device: tables of `kernels/transform.cuh`, the filters of a spectrum, and signals
//! of which the device says that they have no features. It must not know which features they are.

use std::f64::consts::PI;

use crate::cpu::audio::band::{self, no_numbers};
use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{Recorder, Report};
use crate::operator::{GpuCx, Inputs};

device_struct! {
    /// A filter.
    pub(super) struct Band as Band {
        /// of its bins
        first: u32,
        count: u32,
        /// of its weights among those of all
        start: u32,
    }
}

/// Of a transform, as kernels read them.
pub(super) struct Tables {
    /// Parts of a circle, clockwise.
    turns: Vec<[f64; 2]>,
    window: Vec<f64>,
    bands: Vec<Band>,
    weights: Vec<f64>,
}

/// Where they are on a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct StagedTables {
    pub(super) turns: u64,
    pub(super) window: u64,
    pub(super) bands: u64,
    pub(super) weights: u64,
}

impl Tables {
    /// For transforms of `length` samples, whose windows have these factors, and for these filters.
    pub(super) fn new(length: usize, window: &[f64], filters: &[band::Band]) -> Self {
        let angle = |i: usize| -2.0 * PI * i as f64 / length as f64;
        let mut start = 0;
        let band = |filter: &band::Band| {
            let count = filter.weights.len() as u32;
            start += count;
            Band { first: filter.first as u32, count, start: start - count }
        };
        Self {
            turns: (0..length).map(|i| [angle(i).cos(), angle(i).sin()]).collect(),
            window: window.to_vec(),
            bands: filters.iter().map(band).collect(),
            weights: filters.iter().flat_map(|filter| filter.weights.iter().copied()).collect(),
        }
    }

    /// Puts them on the way to the device.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub(super) fn stage(&self, cx: &mut GpuCx<'_>) -> Result<StagedTables> {
        Ok(StagedTables {
            turns: cx.recorder.stage(bytemuck::cast_slice(&self.turns))?.address(),
            window: cx.recorder.stage(bytemuck::cast_slice(&self.window))?.address(),
            bands: cx.recorder.stage(bytemuck::cast_slice(&self.bands))?.address(),
            weights: cx.recorder.stage(bytemuck::cast_slice(&self.weights))?.address(),
        })
    }
}

/// The numbers whose product is `length`, as kernels take them: fours first, then primes.
pub(super) fn radices(length: usize) -> String {
    let (mut rest, mut radices) = (length, Vec::new());
    let mut radix = 4;
    while rest > 1 {
        if rest.is_multiple_of(radix) {
            radices.push(radix.to_string());
            rest /= radix;
            continue;
        }
        radix = match radix {
            4 => 2,
            2 => 3,
            _ if radix * radix > rest => rest,
            odd => odd + 2,
        };
    }
    if radices.is_empty() { "1".to_owned() } else { radices.join(",") }
}

/// Signals whose features the device was asked for.
pub(super) struct Asked {
    report: Report,
    /// Words that the device says of each.
    words: usize,
    /// Samples of the batch.
    samples: Vec<usize>,
}

impl Asked {
    /// Of at most `samples` samples, of each of which the device says so many words.
    ///
    /// # Errors
    /// Unavailable, when there is no memory.
    pub(super) fn new(recorder: &mut Recorder, samples: usize, words: usize) -> Result<Self> {
        let report = recorder.report(samples.saturating_mul(words).max(1))?;
        Ok(Self { report, words, samples: Vec::new() })
    }

    /// Where the device says whether the next sample has features: each word is 0 if it has.
    pub(super) fn next(&mut self, sample: usize) -> u64 {
        self.samples.push(sample);
        self.report.address() + ((self.samples.len() - 1) * self.words * size_of::<u32>()) as u64
    }

    /// Fails those that have none; the batch has run.
    pub(super) fn fail(self, recorder: &Recorder, inputs: &Inputs<'_>) {
        let outcomes = recorder.reported(self.report).chunks_exact(self.words.max(1));
        for (sample, words) in self.samples.into_iter().zip(outcomes) {
            if words.iter().any(|&word| word != 0) {
                inputs.fail(sample, no_numbers());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radices_multiply_to_the_length() {
        for (length, expected) in [
            (1, "1"),
            (2, "2"),
            (3, "3"),
            (400, "4,4,5,5"),
            (512, "4,4,4,4,2"),
            (882, "2,3,3,7,7"),
            (65_521, "65521"),
            (65_534, "2,7,31,151"),
        ] {
            assert_eq!(radices(length), expected);
        }
    }

    #[test]
    fn filters_lie_one_after_the_other() {
        let filter = |first, weights: &[f64]| band::Band { first, weights: weights.to_vec() };
        let tables = Tables::new(4, &[1.0; 4], &[filter(1, &[0.5, 0.25]), filter(3, &[]), filter(2, &[2.0])]);
        let places: Vec<_> = tables.bands.iter().map(|band| [band.first, band.count, band.start]).collect();
        assert_eq!(places, [[1, 2, 0], [3, 0, 2], [2, 1, 2]]);
        assert_eq!(tables.weights, [0.5, 0.25, 2.0]);
        assert!((tables.turns[1][1] + 1.0).abs() < 1e-15);
    }
}
