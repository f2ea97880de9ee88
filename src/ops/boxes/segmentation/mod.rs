//! Operators on label maps and polygons: what detection and segmentation train with.

pub(in crate::ops) mod random_mask_pixel;
pub(in crate::ops) mod random_object_bbox;
pub(in crate::ops) mod select_masks;
