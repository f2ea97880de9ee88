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
