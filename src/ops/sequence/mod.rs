//! Sequences of frames: where they come from, which frames they have, what moves in them.

pub(super) mod element_extract;
pub(super) mod inputs_video;
pub(super) mod optical_flow;
pub(super) mod per_frame;
pub(super) mod sequence_rearrange;
