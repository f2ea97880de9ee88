//! The functions on host pixels against recorded answers of DALI, and against hostile input.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod avif;
mod coded;
#[path = "../gpu/coder/mod.rs"]
#[expect(dead_code, reason = "shared with the tests of the device, which use more of it")]
mod coder;
mod decode;
mod deep;
mod floor0;
mod growing;
mod h264_maker;
mod heif;
mod jpeg;
mod jpeg2000;
mod jpeg_equal;
mod jpeg_xl;
mod kinds;
mod nested;
mod normalize;
mod npz;
#[path = "../common/numbers.rs"]
mod numbers;
#[path = "../gpu/pictures.rs"]
#[expect(dead_code, reason = "shared with the tests of the device, which use more of it")]
mod pictures;
mod preferences;
mod profiles;
mod resample;
mod sound;
mod tiff;
mod turned;
mod video;
mod video_errors;
mod video_ffmpeg;
mod video_idle;
mod video_limits;
mod video_spare;
