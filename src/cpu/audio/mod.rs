//! Pure functions on signals: decoding, resampling, spectra, mel filters. Nothing here knows operators.

mod aac;
mod adpcm;
mod aiff;
mod alac;
mod au;
mod bits;
mod caf;
pub mod chirp;
mod coded;
mod crc;
pub mod decode;
mod fields;
mod flac;
pub mod level;
pub mod log_mel;
mod m4a;
pub mod mel;
mod mp3;
mod ogg;
mod opus;
pub mod resample;
mod riff;
pub mod sound;
pub mod spectrogram;
mod stored;
pub mod unit_variance;
mod vorbis;
