//! The functions on host pixels against recorded answers of DALI, and against hostile input.

mod decode;
mod normalize;
mod npz;
mod resample;
