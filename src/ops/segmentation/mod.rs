//! Operators on label maps and polygons: what detection and segmentation train with.

pub(super) mod random_mask_pixel;
pub(super) mod random_object_bbox;
pub(super) mod select_masks;
