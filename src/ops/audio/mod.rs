//! Operators on signals and their spectra. What they compute is in [`crate::cpu::audio`].

pub(super) mod audio_resample;
mod bands;
pub(super) mod decoders_audio;
pub(super) mod mel_filter_bank;
pub(super) mod mfcc;
pub(super) mod nonsilent_region;
pub(super) mod power_spectrum;
pub(super) mod preemphasis_filter;
pub(super) mod spectrogram;
pub(super) mod to_decibels;

use super::table::{Bound, Row};
use crate::cpu::audio::level::Level;
use crate::cpu::audio::resample::Resampler;
use crate::error::{Error, Result};
use crate::gpu::KernelSpec;
use crate::operator::shared::dtypes;
use crate::operator::{Arg, SampleInputs};
use crate::tensor::DType;

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&audio_resample::DEF, Bound::Told),
    (&decoders_audio::DEF, Bound::Decodes),
    (&mel_filter_bank::DEF, Bound::Told),
    (&mfcc::DEF, Bound::Told),
    (&nonsilent_region::DEF, Bound::Elements),
    (&power_spectrum::DEF, Bound::Elements),
    (&preemphasis_filter::DEF, Bound::Elements),
    (&spectrogram::DEF, Bound::Told),
    (&to_decibels::DEF, Bound::Elements),
];

/// Those that tests compile.
pub(super) fn kernels() -> Vec<KernelSpec> {
    let types = [
        (DType::F32, DType::F32),
        (DType::I16, DType::U8),
        (DType::U8, DType::F32),
        (DType::I32, DType::I16),
    ];
    let mut specs = vec![bands::kernel(), to_decibels::kernel("largest"), to_decibels::kernel("decibels")];
    specs.extend(types.map(|(from, to)| audio_resample::kernel(from, to)));
    specs.extend(types.map(|(from, to)| preemphasis_filter::kernel(from, to)));
    specs.push(preemphasis_filter::kernel(DType::F64, DType::U64));
    for from in [DType::I16, DType::F32, DType::U64] {
        specs.extend(["mean_squares", "nonsilent"].map(|entry| nonsilent_region::kernel(entry, from)));
    }
    let shared = crate::limits::MAX_SHARED_TRANSFORM;
    specs.extend([1, 4, 400, 512, shared, shared + 1, 2 * shared].map(spectrogram::kernel));
    specs
}

/// Fails for what is not float32.
fn floats_only(dtype: DType) -> Result<()> {
    dtypes::accepted("samples", dtype, &[DType::F32])
}

/// A resampler of the argument `quality`, 50 when it is not given.
fn resampler(quality: f32) -> Result<Resampler> {
    if (0.0..=100.0).contains(&quality) {
        return Ok(Resampler::new(f64::from(quality)));
    }
    Err(Error::invalid(format!("argument `quality` is {quality}, expected 0 to 100")))
}

/// A rate of one sample: finite, and positive or, where it may be, 0.
fn rate(arg: &Arg, sample: &SampleInputs<'_>, least: f64) -> Result<f64> {
    let rate = f64::from(arg.float(sample)?);
    if rate.is_finite() && rate >= least {
        return Ok(rate);
    }
    Err(Error::invalid(format!("a sampling rate of {rate}")))
}

/// The number of samples that `length` is, as far as a sample may have so many.
fn frames(length: f64) -> Result<usize> {
    let limit = crate::limits::MAX_SAMPLE_BYTES as f64;
    if (0.0..=limit).contains(&length) {
        return Ok(length as usize);
    }
    Err(Error::invalid(format!("a signal of {length} samples, expected 0 to {limit}")))
}

/// An empty signal with room for `samples` samples.
fn floats(samples: usize) -> Result<Vec<f32>> {
    let mut floats = Vec::new();
    let room = floats.try_reserve_exact(samples);
    room.map_err(|_| Error::invalid(format!("no memory for a signal of {samples} samples")))?;
    Ok(floats)
}

/// An element of a signal as the level that elements of type `T` have there.
fn level_for<S: Level, T: Level>(value: S) -> f32 {
    match (S::IS_UNSIGNED, T::IS_UNSIGNED) {
        (true, false) => value.level() * 2.0 - 1.0,
        (false, true) => (value.level() + 1.0) * 0.5,
        _ => value.level(),
    }
}
