//! Colours and levels of pixels, each by itself or by what is around it.

pub(super) mod augment;
pub(super) mod clahe;
pub(super) mod color_space_conversion;
pub(super) mod debayer;
pub(super) mod equalize;
pub(super) mod jpeg_compression_distortion;
pub(super) mod linear;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&augment::DEF, Bound::Limit),
    (&clahe::DEF, Bound::Elements),
    (&color_space_conversion::DEF, Bound::Elements),
    (&debayer::DEF, Bound::Elements),
    (&equalize::DEF, Bound::Elements),
    (&jpeg_compression_distortion::DEF, Bound::Elements),
    (&linear::brightness_contrast::BRIGHTNESS_DEF, Bound::Elements),
    (&linear::brightness_contrast::CONTRAST_DEF, Bound::Elements),
    (&linear::brightness_contrast::DEF, Bound::Elements),
    (&linear::color_twist::DEF, Bound::Elements),
    (&linear::color_twist::HSV_DEF, Bound::Elements),
    (&linear::color_twist::HUE_DEF, Bound::Elements),
    (&linear::color_twist::SATURATION_DEF, Bound::Elements),
];
