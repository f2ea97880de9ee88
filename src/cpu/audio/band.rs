//! Triangular filters over the bins of spectra, in doubles, and what powers they cannot take. It must not know on which
//! scale they are.

use crate::error::Error;

/// A triangular filter: its first bin, and the weights of that and of the bins behind it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Band {
    /// The first of its bins.
    pub first: usize,
    /// Weights of that bin and of those behind it.
    pub weights: Vec<f64>,
}

impl Band {
    /// Of the bins from 0 to below `bins` those whose `weight` is above 0, from the first of them to the next that is
    /// not.
    pub(super) fn of(bins: usize, weight: impl Fn(usize) -> f64) -> Self {
        let first = (0..bins).find(|&bin| weight(bin) > 0.0).unwrap_or(bins);
        Self { first, weights: (first..bins).map(weight).take_while(|&weight| weight > 0.0).collect() }
    }

    /// What of a spectrum's powers it lets through.
    pub(super) fn power(&self, powers: &[f64]) -> f64 {
        let bins = powers.get(self.first..).unwrap_or_default();
        bins.iter().zip(&self.weights).map(|(power, weight)| power * weight).sum()
    }
}

/// Why a signal has no logarithms of powers.
pub fn no_numbers() -> Error {
    Error::invalid("a signal with values that are no numbers or too large, expected samples around -1 to 1")
}
