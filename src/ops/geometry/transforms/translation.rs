//! `transforms__Translation`: moves points by an offset.

use super::{ARGS, Affine, Generator, build};
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::Device;

struct Translation {
    offset: Arg,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "transforms__Translation",
    aliases: &["TransformTranslation"],
    doc: "The matrix that moves points by an offset",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[ArgSpec::floats("offset", "what is added to the coordinates, x first")
        .tensor()
        .per_frame()
        .required()],
    shared_args: &[ARGS],
    build: &|args, _| {
        let offset = args.arg("offset")?;
        build(Translation { offset }, args)
    },
    outputs: &one_output,
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Generator for Translation {
    fn matrix(&self, sample: &SampleInputs<'_>, _ndim: Option<usize>) -> Result<Affine> {
        let offset = self.offset.floats(sample)?;
        let mut matrix = Affine::identity(offset.len())?;
        for (d, &value) in offset.iter().enumerate() {
            matrix.set(d, offset.len(), value);
        }
        Ok(matrix)
    }
}
