//! Encoded images, videos, arrays and blocks to tensors.

pub(super) mod decode_animation;
pub(super) mod decode_resize;
pub(super) mod decoders_image;
pub(super) mod decoders_image_crop;
pub(super) mod decoders_image_slice;
pub(super) mod decoders_inflate;
pub(super) mod decoders_numpy;
pub(super) mod decoders_video;
#[cfg(test)]
mod panicking;
pub(super) mod peek_image_shape;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&decode_animation::DEF, Bound::Decodes),
    (&decoders_image::DEF, Bound::Decodes),
    (&decoders_image_crop::DEF, Bound::Decodes),
    (&decoders_image_slice::DEF, Bound::Decodes),
    (&decoders_inflate::DEF, Bound::Told),
    (&decoders_numpy::DEF, Bound::Decodes),
    (&decoders_video::DEF, Bound::Decodes),
    (&peek_image_shape::DEF, Bound::Decodes),
];
