//! Sequences of frames: where they come from, which frames they have, what moves in them.

pub(super) mod element_extract;
pub(super) mod inputs_video;
pub(super) mod optical_flow;
pub(super) mod per_frame;
pub(super) mod sequence_rearrange;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&element_extract::DEF, Bound::Elements),
    (&inputs_video::DEF, Bound::Decodes),
    (&optical_flow::DEF, Bound::Elsewhere),
    (&per_frame::DEF, Bound::View),
    (&sequence_rearrange::DEF, Bound::Elements),
];
