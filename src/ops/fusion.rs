//! Pairs of operators that become one on a device. It must not know what they do, nor where a graph has them.

use super::{Args, OpDef, Operator, resize_normalize};
use crate::error::Result;
use crate::tensor::ValueType;

/// Two operators, the second the only reader of the first, that one operator can stand for.
pub struct Fusion {
    /// How tables and messages call it.
    pub name: &'static str,
    /// The operator that is read.
    pub first: &'static OpDef,
    /// Its only reader.
    pub second: &'static OpDef,
    /// Whether it can, by the arguments of both, for inputs of the first and of the second of these types.
    pub can: fn([&Args; 2], [&ValueType; 2]) -> bool,
    /// Makes it, with the arguments of both; the argument inputs of the second follow those of the first.
    pub build: fn(&Args, &Args) -> Result<Box<dyn Operator>>,
}

/// All of them.
pub const FUSIONS: &[&Fusion] = &[&resize_normalize::FUSION];

impl Fusion {
    /// The one for these two, if there is one.
    pub fn of(pair: [(&OpDef, &Args); 2], types: [&ValueType; 2]) -> Option<&'static Fusion> {
        let [(first, first_args), (second, second_args)] = pair;
        FUSIONS.iter().copied().find(|fusion| {
            (fusion.first.name, fusion.second.name) == (first.name, second.name)
                && (fusion.can)([first_args, second_args], types)
        })
    }
}
