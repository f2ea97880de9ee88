//! `transforms__Scale`: scales points, seen from a center.

use super::{ARGS, Affine, Generator, build, for_all_axes};
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::Device;

struct Scale {
    scale: Arg,
    center: Option<Arg>,
    ndim: Option<usize>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "transforms__Scale",
    doc: "The matrix that scales points, seen from a center",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[
        ArgSpec::floats("scale", "factors of the coordinates, x first, or one for all")
            .tensor()
            .per_frame()
            .required(),
        ArgSpec::floats("center", "the point that stays").tensor().per_frame().or_computed("the origin"),
        ArgSpec::int("ndim", "dimensions where `scale` is one number and there is no input").or_computed("1"),
    ],
    shared_args: &[ARGS],
    build: &|args, _| {
        let scale = args.arg("scale")?;
        let ndim = args.given_int("ndim")?.map(|ndim| usize::try_from(ndim).unwrap_or_default());
        build(Scale { scale, center: args.given_arg("center")?, ndim: ndim.filter(|&ndim| ndim > 0) }, args)
    },
    outputs: &one_output,
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Generator for Scale {
    fn matrix(&self, sample: &SampleInputs<'_>, ndim: Option<usize>) -> Result<Affine> {
        let mut scale = self.scale.floats(sample)?;
        if let [factor] = scale[..] {
            let ndim = ndim.or(self.ndim).unwrap_or(1);
            Affine::identity(ndim)?;
            scale = vec![factor; ndim];
        }
        let mut matrix = Affine::identity(scale.len())?;
        for (d, &factor) in scale.iter().enumerate() {
            matrix.set(d, d, factor);
        }
        if let Some(center) = &self.center {
            let center = for_all_axes("center", &center.floats(sample)?, scale.len())?;
            for (d, (&center, &factor)) in center.iter().zip(&scale).enumerate() {
                matrix.set(d, scale.len(), center * (1.0 - factor));
            }
        }
        Ok(matrix)
    }
}
