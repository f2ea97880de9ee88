//! Pairs of operators that become one. It must not know what they do, nor where a graph has them.

use super::{Args, OpDef, Operator};
use crate::error::Result;
use crate::gpu::KernelSpec;
use crate::tensor::{Device, ValueType};

/// Two operators, the second the only reader of the first, that one operator can stand for.
pub struct Fusion {
    /// How tables and messages call it.
    pub name: &'static str,
    /// Where both run.
    pub device: Device,
    /// The operator that is read.
    pub first: &'static OpDef,
    /// Its only reader.
    pub second: &'static OpDef,
    /// Whether it can, by the arguments of both, for inputs of the first and of the second of these types.
    pub can: fn([&Args; 2], [&ValueType; 2]) -> bool,
    /// Those that tests compile, as [`OpDef::kernels`].
    pub kernels: fn() -> Vec<KernelSpec>,
    /// Makes it, with the arguments of both; the argument inputs of the second follow those of the first.
    pub build: fn(&Args, &Args) -> Result<Box<dyn Operator>>,
}

impl Fusion {
    /// Whether it is of these two on `device`, with these arguments and types of their inputs.
    pub(super) fn fits(
        &self,
        device: Device,
        [first, second]: [(&OpDef, &Args); 2],
        types: [&ValueType; 2],
    ) -> bool {
        self.device == device
            && (self.first.name, self.second.name) == (first.0.name, second.0.name)
            && (self.can)([first.1, second.1], types)
    }
}
