//! Where pixels are: windows, sizes, mirrors, canvases, maps.

pub(super) mod crop;
pub(super) mod crop_mirror_normalize;
pub(super) mod displacement;
pub(super) mod erase;
pub(super) mod extract;
pub(super) mod flip;
pub(super) mod grid_mask;
pub(super) mod multi_paste;
pub(super) mod pad;
pub(super) mod paste;
pub(super) mod remap;
pub(super) mod resize;
pub(super) mod resize_crop_mirror;
pub(super) mod resize_normalize;
pub(super) mod slice;
pub(super) mod tensor_resize;
pub(super) mod transforms;
pub(super) mod warp;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&crop::DEF, Bound::Elements),
    (&crop_mirror_normalize::DEF, Bound::Elements),
    (&displacement::JITTER, Bound::Told),
    (&displacement::SPHERE, Bound::Told),
    (&displacement::WATER, Bound::Told),
    (&erase::DEF, Bound::Told),
    (&flip::DEF, Bound::Elements),
    (&grid_mask::DEF, Bound::Elements),
    (&multi_paste::DEF, Bound::Told),
    (&pad::DEF, Bound::Elements),
    (&paste::DEF, Bound::Elements),
    (&remap::DEF, Bound::Told),
    (&resize::DEF, Bound::Told),
    (&resize_crop_mirror::DEF, Bound::Told),
    (&resize_crop_mirror::FAST, Bound::Told),
    (&slice::DEF, Bound::Elements),
    (&tensor_resize::DEF, Bound::Told),
    (&transforms::combine::DEF, Bound::Elements),
    (&transforms::crop::DEF, Bound::Elements),
    (&transforms::rotation::DEF, Bound::Elements),
    (&transforms::scale::DEF, Bound::Elements),
    (&transforms::shear::DEF, Bound::Elements),
    (&transforms::translation::DEF, Bound::Elements),
    (&warp::affine::DEF, Bound::Told),
    (&warp::perspective::DEF, Bound::Told),
    (&warp::rotate::DEF, Bound::Told),
];
