//! Arithmetic on tensors: expressions, types, sums and means.

pub(super) mod arithmetic;
pub(super) mod cast;
pub(super) mod cast_like;
pub(super) mod folds;
pub(super) mod lookup_table;
pub(super) mod normalize;
pub(super) mod reductions;
