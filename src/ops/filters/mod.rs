//! Every element from those around it: blurs, derivatives, morphology. What they share is in [`spatial`] and
//! [`separable`].

pub(super) mod blur;
pub(super) mod filter;
pub(super) mod gaussian_blur;
pub(super) mod laplacian;
pub(super) mod median_blur;
pub(super) mod morphology;
pub(super) mod separable;
pub(super) mod spatial;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&blur::DEF, Bound::Limit),
    (&filter::DEF, Bound::Told),
    (&gaussian_blur::DEF, Bound::Told),
    (&laplacian::DEF, Bound::Told),
    (&median_blur::DEF, Bound::Told),
    (&morphology::DILATE, Bound::Told),
    (&morphology::ERODE, Bound::Told),
];
