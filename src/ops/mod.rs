//! The operators, by family, and the table of all of them. What an operator is, `operator` says; nothing here knows how
//! a plan runs them (`executor` does). One file per operator; each can be read without the others. A family lists its
//! operators beside their modules.

mod audio;
#[cfg(feature = "fault-injection")]
mod boom;
#[cfg(test)]
mod bounded;
mod boxes;
mod color;
pub mod custom;
mod decode;
mod encode;
mod filters;
mod geometry;
mod math;
mod multimodal;
mod random;
pub mod schema;
mod sequence;
mod structure;
mod table;

pub use table::{Bound, FAMILIES, OPS, Row, find, fusion, kernels};
