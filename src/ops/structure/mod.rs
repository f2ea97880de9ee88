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

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&conditional::MERGE, Bound::View),
    (&conditional::NOT, Bound::Elements),
    (&conditional::SPLIT, Bound::View),
    (&conditional::VALIDATE_LOGICAL, Bound::View),
    (&constant::DEF, Bound::Elements),
    (&copy::DEF, Bound::Elements),
    (&dump_image::DEF, Bound::Elsewhere),
    (&expand_dims::DEF, Bound::View),
    (&external_source::DEF, Bound::Elsewhere),
    (&fill::FULL, Bound::Elements),
    (&fill::FULL_LIKE, Bound::Elements),
    (&fill::ONES, Bound::Elements),
    (&fill::ONES_LIKE, Bound::Elements),
    (&fill::ZEROS, Bound::Elements),
    (&fill::ZEROS_LIKE, Bound::Elements),
    (&get_property::DEF, Bound::Elements),
    (&join::CAT, Bound::Elements),
    (&join::STACK, Bound::Elements),
    (&one_hot::DEF, Bound::Elements),
    (&permute_batch::DEF, Bound::Elements),
    (&reinterpret::DEF, Bound::View),
    (&reshape::DEF, Bound::View),
    (&shapes::DEF, Bound::Elements),
    (&squeeze::DEF, Bound::View),
    (&subscript::DEF, Bound::Elements),
    (&subscript_dim_check::DEF, Bound::View),
    (&transpose::DEF, Bound::Elements),
];
