//! Pure functions on signals: decoding, resampling, spectra, mel filters. Nothing here knows operators.

pub mod chirp;
pub mod decode;
pub mod mel;
pub mod resample;
pub mod spectrogram;
