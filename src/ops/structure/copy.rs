//! `Copy`: the same tensor. A view: nobody can tell it from a copy.

use crate::error::{Error, Result};
use crate::operator::{Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

struct Copy;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Copy",
    doc: "The same tensor",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    build: &|_: &Args, _| Ok(Box::new(Copy)),
    outputs: &one_output,
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Operator for Copy {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![inputs[0].clone()])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![inputs.desc(0)?.clone()])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }
}
