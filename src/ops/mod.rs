//! The operators, by family, and the table of all of them. What an operator is, `operator` says; nothing here knows how a plan runs
//! them (`executor` does). One file per operator; each can be read without the others.

mod audio;
#[cfg(feature = "fault-injection")]
mod boom;
#[cfg(test)]
mod bounded;
mod boxes;
mod color;
mod conditional;
mod constant;
mod copy;
pub mod custom;
mod decode;
#[cfg(test)]
mod defaults;
mod dump_image;
mod expand_dims;
mod external_source;
mod fill;
mod filters;
mod geometry;
mod get_property;
mod join;
mod math;
mod one_hot;
mod permute_batch;
mod random;
mod reinterpret;
mod reshape;
pub mod schema;
mod sequence;
mod shapes;
mod squeeze;
mod subscript;
mod subscript_dim_check;
mod table;
mod transpose;

pub use table::{OPS, find, fusion, kernels};
