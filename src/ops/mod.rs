//! The operators, by family, and the table of all of them. What an operator is, `operator` says; nothing here knows how a plan runs
//! them (`executor` does). One file per operator; each can be read without the others.

mod arithmetic;
mod audio;
#[cfg(feature = "fault-injection")]
mod boom;
#[cfg(test)]
mod bounded;
mod boxes;
mod cast;
mod cast_like;
mod color;
mod conditional;
mod constant;
mod copy;
mod crop;
mod crop_mirror_normalize;
pub mod custom;
mod decode;
#[cfg(test)]
mod defaults;
mod displacement;
mod dump_image;
mod element_extract;
mod erase;
mod expand_dims;
mod external_source;
mod extract;
mod fill;
mod filters;
mod flip;
mod folds;
mod get_property;
mod grid_mask;
mod inputs_video;
mod join;
mod lookup_table;
mod multi_paste;
mod normalize;
mod one_hot;
mod optical_flow;
mod pad;
mod paste;
mod per_frame;
mod permute_batch;
mod random;
mod reductions;
mod reinterpret;
mod remap;
mod reshape;
mod resize;
mod resize_crop_mirror;
mod resize_normalize;
pub mod schema;
mod sequence_rearrange;
mod shapes;
mod slice;
mod squeeze;
mod subscript;
mod subscript_dim_check;
mod table;
mod tensor_resize;
mod transforms;
mod transpose;
mod warp;

pub use table::{OPS, find, fusion, kernels};
