//! Encoded images, videos, arrays and blocks to tensors.

pub(super) mod decode_resize;
pub(super) mod decoders_image;
pub(super) mod decoders_image_crop;
pub(super) mod decoders_image_slice;
pub(super) mod decoders_inflate;
pub(super) mod decoders_numpy;
pub(super) mod decoders_video;
pub(super) mod peek_image_shape;
