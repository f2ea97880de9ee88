//! Tensors as a whole: how they are made, joined, indexed and described, and which samples a branch has.

pub(super) mod conditional;
pub(super) mod constant;
pub(super) mod copy;
pub(super) mod dump_image;
pub(super) mod expand_dims;
pub(super) mod external_source;
pub(super) mod fill;
pub(super) mod get_property;
pub(super) mod join;
pub(super) mod one_hot;
pub(super) mod permute_batch;
pub(super) mod reinterpret;
pub(super) mod reshape;
pub(super) mod shapes;
pub(super) mod squeeze;
pub(super) mod subscript;
pub(super) mod subscript_dim_check;
pub(super) mod transpose;
