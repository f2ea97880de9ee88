//! The functions on host pixels against recorded answers of DALI, and against hostile input.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

#[path = "../gpu/coder/mod.rs"]
mod coder;
mod decode;
mod jpeg;
mod jpeg_equal;
mod normalize;
mod npz;
mod resample;
