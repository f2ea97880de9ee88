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

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&log_mel::DEF, Bound::Told),
    (&patch_grid::DEF, Bound::Elements),
    (&patchify::DEF, Bound::Elements),
    (&smart_resize::DEF, Bound::Elements),
    (&tile::DEF, Bound::Elements),
    (&tile_grid::DEF, Bound::Elements),
    (&unit_variance::DEF, Bound::Elements),
];
