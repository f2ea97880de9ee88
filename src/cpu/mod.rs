//! Pure functions on slices for host pixels. Nothing here knows operators, graphs or Triton.

pub mod audio;
pub mod blobs;
pub mod clahe;
pub mod color;
pub mod convert;
pub mod convolve;
mod corners;
pub mod debayer;
pub mod decode;
pub mod elementary;
pub mod encode;
pub mod extremes;
pub mod lab;
pub mod normalize;
pub mod npy;
pub mod perspective;
mod pixels;
mod places;
pub mod random;
pub mod resample;
pub mod video;
pub mod warp;
pub mod weights;
pub mod window;
