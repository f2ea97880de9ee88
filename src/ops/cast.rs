//! `Cast`: another element type, by DALI's saturating conversion.

use super::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::cpu::convert::convert_slice;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

struct Cast {
    dtype: DType,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Cast",
    aliases: &[],
    doc: "Another element type; floats are rounded, values out of range saturate",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[ArgSpec::fixed("dtype", "element type of the output; required")],
    shared_args: &[],
    build,
    outputs: one_output,
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.dtype("dtype")?.ok_or_else(|| Error::invalid("argument `dtype` is missing"))?;
    Ok(Box::new(Cast { dtype }))
}

impl Operator for Cast {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType { dtype: Some(self.dtype), ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![BatchDesc { dtype: self.dtype, ..inputs.desc(0)?.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        dispatch!(from, From => dispatch!(self.dtype, To => io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            convert_slice::<From, To>(input.as_slice()?, output.as_slice_mut()?);
            Ok(())
        })))
    }
}
