//! Operators in front of vision-language and speech models, which DALI does not have: sizes, grids, tiles and patches
//! of images, features of sound. In files their names begin with `gesso__`, in Python they are in `fn.gesso`.

mod frame_rules;
mod grids;
pub(super) mod log_mel;
pub(super) mod normalize_patchify;
pub(super) mod pad_to_batch;
pub(super) mod patch_grid;
pub(super) mod patchify;
pub(super) mod peek_video;
pub(super) mod sample_frames;
pub(super) mod seamless_features;
mod sides;
pub(super) mod smart_resize;
mod spectra;
pub(super) mod tile;
pub(super) mod tile_grid;
pub(super) mod unit_variance;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&log_mel::DEF, Bound::Told),
    (&pad_to_batch::DEF, Bound::Elements),
    (&patch_grid::DEF, Bound::Elements),
    (&patchify::DEF, Bound::Elements),
    (&peek_video::DEF, Bound::Decodes),
    (&sample_frames::DEF, Bound::Elements),
    (&seamless_features::DEF, Bound::Told),
    (&smart_resize::DEF, Bound::Elements),
    (&tile::DEF, Bound::Elements),
    (&tile_grid::DEF, Bound::Elements),
    (&unit_variance::DEF, Bound::Elements),
];
