//! Arithmetic on tensors: expressions, types, sums and means.

pub(super) mod arithmetic;
pub(super) mod cast;
pub(super) mod cast_like;
pub(super) mod folds;
pub(super) mod lookup_table;
pub(super) mod normalize;
pub(super) mod reductions;

use super::table::{Bound, Row};

/// The operators of the family, in the order of their modules, and what bounds their work.
pub(super) const OPERATORS: &[Row] = &[
    (&arithmetic::DEF, Bound::Elements),
    (&cast::DEF, Bound::Elements),
    (&cast_like::DEF, Bound::Elements),
    (&lookup_table::DEF, Bound::Elements),
    (&normalize::DEF, Bound::Elements),
    (&reductions::MAX, Bound::Elements),
    (&reductions::MEAN, Bound::Elements),
    (&reductions::MEAN_SQUARE, Bound::Elements),
    (&reductions::MIN, Bound::Elements),
    (&reductions::RMS, Bound::Elements),
    (&reductions::STD_DEV, Bound::Elements),
    (&reductions::SUM, Bound::Elements),
    (&reductions::VARIANCE, Bound::Elements),
];
