//! Chains of operators that become one. It must not know what they do, nor where a graph has them.

use super::{Args, OpDef, Operator};
use crate::error::Result;
use crate::gpu::KernelSpec;
use crate::tensor::{Device, ValueType};

/// Operators of the longest chain.
pub const MAX_FUSED: usize = 3;

/// Operators, each the only reader of the one before, that one operator can stand for.
pub struct Fusion {
    /// How tables and messages call it.
    pub name: &'static str,
    /// Where they compute.
    pub device: Device,
    /// The operators in their order.
    pub of: &'static [&'static OpDef],
    /// Whether it can, by the arguments of each, for inputs of each of these types.
    pub can: fn(&[&Args], &[&ValueType]) -> bool,
    /// Those that tests compile, as [`OpDef::kernels`].
    pub kernels: fn() -> Vec<KernelSpec>,
    /// Makes it, with the arguments of each. Those that are inputs count on from one to the next.
    pub make: fn(&[Args]) -> Result<Box<dyn Operator>>,
}

impl Fusion {
    /// Whether it is of these operators on `device`, with these arguments and types of their inputs.
    pub(crate) fn fits(&self, device: Device, chain: &[(&OpDef, &Args)], types: &[&ValueType]) -> bool {
        let args: Vec<&Args> = chain.iter().map(|(_, args)| *args).collect();
        self.device == device
            && self.of.iter().map(|def| def.name).eq(chain.iter().map(|(def, _)| def.name))
            && (self.can)(&args, types)
    }

    /// The operator, with the arguments that each has by itself.
    ///
    /// # Errors
    /// Those of the operators.
    pub fn build(&self, args: &[Args]) -> Result<Box<dyn Operator>> {
        let mut tensors = 0;
        let shift = |own: &Args| {
            let shifted = own.shifted(tensors);
            tensors += own.tensor_count();
            shifted
        };
        (self.make)(&args.iter().map(shift).collect::<Vec<_>>())
    }
}
