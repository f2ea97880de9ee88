//! Every element from those around it: blurs, derivatives, morphology. What they share is in [`spatial`] and
//! [`separable`].

pub(super) mod filter;
pub(super) mod gaussian_blur;
pub(super) mod laplacian;
pub(super) mod median_blur;
pub(super) mod morphology;
pub(super) mod separable;
pub(super) mod spatial;
