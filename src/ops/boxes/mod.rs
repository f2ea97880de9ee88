//! What detectors and segmenters are trained with: bounding boxes, points and masks that follow their image.

pub(super) mod bb_flip;
pub(super) mod bbox_paste;
pub(super) mod bbox_rotate;
pub(super) mod box_encoder;
pub(super) mod coord_flip;
pub(super) mod coord_transform;
pub(super) mod segmentation;
