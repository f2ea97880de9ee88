//! Operators in front of vision-language and speech models, which DALI does not have: sizes, grids, tiles and patches
//! of images, features of sound. In files their names begin with `gesso__`, in Python they are in `fn.gesso`.

mod grids;
pub(super) mod log_mel;
pub(super) mod patch_grid;
pub(super) mod patchify;
mod sides;
pub(super) mod smart_resize;
pub(super) mod tile;
pub(super) mod tile_grid;
pub(super) mod unit_variance;
