//! Colours and levels of pixels, each by itself or by what is around it.

pub(super) mod clahe;
pub(super) mod color_space_conversion;
pub(super) mod debayer;
pub(super) mod equalize;
pub(super) mod jpeg_compression_distortion;
pub(super) mod linear;
