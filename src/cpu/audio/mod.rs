//! Pure functions on signals: decoding, resampling, spectra, mel filters. Nothing here knows operators.

mod adpcm;
mod aiff;
mod au;
mod bits;
mod caf;
pub mod chirp;
mod crc;
pub mod decode;
mod fields;
mod flac;
pub mod kaldi;
pub mod level;
pub mod log_mel;
pub mod mel;
mod ogg;
mod pairwise;
pub mod resample;
mod riff;
pub mod sound;
pub mod spectrogram;
mod stored;
pub mod unit_variance;
mod vorbis;
