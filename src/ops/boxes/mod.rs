//! What detectors and segmenters are trained with: bounding boxes, points and masks that follow their image.

pub(super) mod bb_flip;
pub(super) mod bbox_paste;
pub(super) mod bbox_rotate;
pub(super) mod box_encoder;
pub(super) mod coord_flip;
pub(super) mod coord_transform;
pub(super) mod segmentation;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&bb_flip::DEF, Bound::Elements),
    (&bbox_paste::DEF, Bound::Elements),
    (&bbox_rotate::DEF, Bound::Elements),
    (&box_encoder::DEF, Bound::Limit),
    (&coord_flip::DEF, Bound::Elements),
    (&coord_transform::DEF, Bound::Elements),
    (&segmentation::random_mask_pixel::DEF, Bound::Elements),
    (&segmentation::random_object_bbox::DEF, Bound::Limit),
    (&segmentation::select_masks::DEF, Bound::Elements),
];
