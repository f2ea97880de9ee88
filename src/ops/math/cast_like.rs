//! `CastLike`: the first input in the element type of the second, by the conversion of [`super::cast`].

use std::sync::Arc;

use super::cast::{cast, kernel, record};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::operator::{Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

struct CastLike;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "CastLike",
    doc: "The first input in the element type of the second",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (2, 2),
    args: &[],
    build: &|_: &Args, _| Ok(Box::new(CastLike)),
    outputs: &one_output,
    kernels: &[super::cast::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Operator for CastLike {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType { dtype: inputs[1].dtype, ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![BatchDesc { dtype: inputs.desc(1)?.dtype, ..inputs.desc(0)?.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        cast(cx, io)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        match (inputs[0].dtype, inputs[1].dtype) {
            (Some(from), Some(to)) => gpu.kernel(&kernel(from, to)).map(drop),
            _ => Ok(()),
        }
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let to = io.inputs().desc(1)?.dtype;
        record(cx, io, to)
    }
}
