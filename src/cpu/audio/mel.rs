//! Triangular filters at equal distances on the mel scale. It must not know tensors. Types and order are DALI's.

use crate::deadline::Watch;
use crate::error::Result;

/// How hertz become mel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear below 1000 Hz, logarithmic above.
    Slaney,
    /// Logarithmic, of O'Shaughnessy.
    Htk,
}

const LINEAR_STEP: f32 = (200.0 / 3.0) as f32;
const LOG_START_HZ: f32 = 1000.0;
const LOG_START_MEL: f32 = LOG_START_HZ / LINEAR_STEP;
const LOG_STEP: f32 = 0.068_751_775;

impl Scale {
    fn mel(self, hz: f32) -> f32 {
        match self {
            Scale::Htk => 1127.0 * (1.0 + hz / 700.0).ln(),
            Scale::Slaney if hz >= LOG_START_HZ => LOG_START_MEL + (hz / LOG_START_HZ).ln() / LOG_STEP,
            Scale::Slaney => hz / LINEAR_STEP,
        }
    }

    fn hz(self, mel: f32) -> f32 {
        match self {
            Scale::Htk => 700.0 * ((mel / 1127.0).exp() - 1.0),
            Scale::Slaney if mel >= LOG_START_MEL => LOG_START_HZ * (LOG_STEP * (mel - LOG_START_MEL)).exp(),
            Scale::Slaney => mel * LINEAR_STEP,
        }
    }
}

/// What a bank of filters is made from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bank {
    /// Hertz to mel.
    pub scale: Scale,
    /// Number of filters.
    pub filters: usize,
    /// Samples a second of the signal.
    pub sample_rate: f32,
    /// Where the first filter starts, in hertz.
    pub low: f32,
    /// Where the last filter ends, in hertz.
    pub high: f32,
    /// Whether the filters' areas are made equal.
    pub normalizes: bool,
}

/// The part of a bin of the spectrum in the filter that falls there and in the one that rises; filters without number
/// do not exist.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Share {
    bin: usize,
    falling: Option<(usize, f32)>,
    rising: Option<(usize, f32)>,
}

impl Bank {
    /// The shares of a spectrum of `bins` bins, those outside of all filters left out.
    pub fn shares(&self, bins: usize) -> Vec<Share> {
        let (filters, transform) = (self.filters, 2 * bins.saturating_sub(1).max(1));
        let (low, high) = (self.scale.mel(self.low), self.scale.mel(self.high));
        let hz_step = f64::from(self.sample_rate / transform as f32);
        let mel_step = f64::from((high - low) / (filters + 1) as f32);
        let inverse = 1.0 / hz_step;
        let mut bin = (f64::from(self.low) * inverse).ceil().max(0.0) as usize;
        let last = ((f64::from(self.high) * inverse).floor().max(0.0) as usize).min(bins.saturating_sub(1));
        let add = |mel: f32| (f64::from(mel) + mel_step) as f32;
        let (mut mel0, mut mel1) = (low, add(low));
        let mut shares = Vec::new();
        let mut previous_factor = 1.0;
        for interval in 0..=filters {
            if interval == filters {
                mel1 = high;
            }
            let (f0, f1) = (self.scale.hz(mel0), self.scale.hz(mel1));
            let factor = if self.normalizes && interval < filters {
                2.0 / (self.scale.hz(add(mel1)) - f0)
            } else {
                1.0
            };
            let slope = 1.0 / (f1 - f0);
            while bin <= last && ((bin as f64 * hz_step) as f32) < f1 {
                let falling = (f1 - (bin as f64 * hz_step) as f32) * slope;
                shares.push(Share {
                    bin,
                    falling: interval.checked_sub(1).map(|filter| (filter, falling * previous_factor)),
                    rising: (interval < filters).then_some((interval, (1.0 - falling) * factor)),
                });
                bin += 1;
            }
            previous_factor = factor;
            (mel0, mel1) = (mel1, add(mel1));
        }
        shares
    }

    /// For each filter the first bin that it takes something of, and its parts of that and of the bins behind it.
    pub fn bands(&self, shares: &[Share]) -> Vec<(usize, Vec<f32>)> {
        let mut bands: Vec<(usize, Vec<f32>)> = vec![(0, Vec::new()); self.filters];
        for share in shares {
            for (filter, weight) in [share.falling, share.rising].into_iter().flatten() {
                let Some((first, weights)) = bands.get_mut(filter) else { continue };
                if weights.is_empty() {
                    *first = share.bin;
                }
                // Shares are in the order of their bins, and each bin has one.
                weights.push(weight);
            }
        }
        bands
    }

    /// Writes what the filters take from `spectrum`, rows of `inner` values, one row for each bin.
    ///
    /// # Errors
    /// When nobody waits any more.
    pub fn run(
        &self,
        shares: &[Share],
        spectrum: &[f32],
        out: &mut [f32],
        inner: usize,
        watch: &Watch<'_>,
    ) -> Result<()> {
        out.fill(0.0);
        for share in shares {
            let Some(from) = spectrum.get(share.bin * inner..(share.bin + 1) * inner) else { continue };
            for (filter, weight) in [share.falling, share.rising].into_iter().flatten() {
                let to = &mut out[filter * inner..][..inner];
                to.iter_mut().zip(from).for_each(|(to, from)| *to += weight * from);
            }
            watch.charge(inner)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scales_lead_back() {
        for scale in [Scale::Slaney, Scale::Htk] {
            for hz in [0.0, 440.0, 999.0, 1000.0, 8000.0] {
                assert!((scale.hz(scale.mel(hz)) - hz).abs() < 0.05, "{scale:?} {hz}");
            }
        }
    }

    #[test]
    fn few_bins_and_many_filters_do_not_panic() {
        let bank = Bank {
            scale: Scale::Htk,
            filters: 300,
            sample_rate: 16_000.0,
            low: 0.0,
            high: 8000.0,
            normalizes: true,
        };
        for bins in 0..4 {
            bank.run(&bank.shares(bins), &vec![1.0; bins], &mut [0.0; 300], 1, &Watch::forever()).unwrap();
            assert_eq!(bank.bands(&bank.shares(bins)).len(), 300);
        }
    }

    #[test]
    fn bands_are_what_filters_take() {
        let bank = Bank {
            scale: Scale::Slaney,
            filters: 11,
            sample_rate: 16_000.0,
            low: 100.0,
            high: 7000.0,
            normalizes: true,
        };
        let (shares, spectrum) = (bank.shares(65), (0..65).map(|i| (i * i % 17) as f32).collect::<Vec<_>>());
        let mut taken = [0.0; 11];
        bank.run(&shares, &spectrum, &mut taken, 1, &Watch::forever()).unwrap();
        let bands = bank.bands(&shares);
        let sums = bands.iter().map(|(first, weights)| {
            weights.iter().zip(&spectrum[*first..]).fold(0.0, |sum, (weight, value)| sum + weight * value)
        });
        assert_eq!(sums.collect::<Vec<f32>>(), taken);
    }
}
