//! `Boom`: an operator for tests that copies its input, or panics when a sample begins with the byte 1 (while it runs)
//! or 2 (while shapes are worked out). Only in builds with the feature `fault-injection`.

use crate::error::Result;
use crate::operator::{Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, Shape, ValueType};

struct Boom;

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Boom",
    doc: "Panics when it is told to",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[],
    build: &|_: &Args, _| Ok(Box::new(Boom)),
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Operator for Boom {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(inputs.to_vec())
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        inputs.map_shapes(0, |sample| {
            assert!(sample.input(0)?.bytes.first() != Some(&2), "boom");
            Ok(Shape::default())
        });
        Ok(vec![inputs.desc(0)?.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            assert!(input.bytes.first() != Some(&1), "boom");
            output.bytes.copy_from_slice(input.bytes);
            Ok(())
        })
    }
}
