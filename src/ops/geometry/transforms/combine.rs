//! `transforms__Combine`: several transformations one after the other.

use super::{ARGS, Affine, layout, ndim_of};
use crate::error::{Error, Result};
use crate::operator::{Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

struct Combine {
    reverse_order: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "transforms__Combine",
    doc: "The matrix of several transformations one after the other",
    devices: &[Device::Cpu],
    inputs: (2, 99),
    args: &[],
    shared_args: &[ARGS],
    build: &build,
    outputs: &one_output,
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Combine { reverse_order: args.bool("reverse_order")? }))
}

impl Operator for Combine {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType { layout: Some(layout()), ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let shapes = inputs.map_shapes(2, |sample| {
            let first = sample.input(0)?;
            ndim_of(&first)?;
            for i in 1..inputs.len() {
                let other = sample.input(i)?;
                if other.shape != first.shape || other.dtype != first.dtype {
                    return Err(Error::invalid(format!(
                        "input {i} is of shape {}, expected {} as the first one",
                        other.shape, first.shape
                    )));
                }
            }
            Ok(first.shape.clone())
        });
        Ok(vec![BatchDesc::new(DType::F32, layout(), shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (count, reverse_order) = (io.inputs().len(), self.reverse_order);
        io.for_each_sample(cx, |sample| {
            let mut result = Affine::read(&sample.input(0)?)?;
            for i in 1..count {
                let next = Affine::read(&sample.input(i)?)?;
                result = if reverse_order { result.after(&next) } else { next.after(&result) };
            }
            sample.output(0)?.as_slice_mut::<f32>()?.copy_from_slice(&result.elements);
            Ok(())
        })
    }
}
