//! `transforms__Rotation`: rotates points in the plane, or around an axis.

use super::{ARGS, Affine, Generator, build, for_all_axes, radians, rotation_3d};
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::Device;

struct Rotation {
    angle: Arg,
    axis: Option<Arg>,
    center: Option<Arg>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "transforms__Rotation",
    doc: "The matrix that rotates points in the plane, or around an axis",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[
        ArgSpec::float("angle", "degrees of the rotation").tensor().per_frame().required(),
        ArgSpec::floats("axis", "the axis x, y, z in space; without it points are in a plane")
            .tensor()
            .per_frame(),
        ArgSpec::floats("center", "the point that stays").tensor().per_frame().or_computed("the origin"),
    ],
    shared_args: &[ARGS],
    build: &|args, _| {
        let angle = args.arg("angle")?;
        build(Rotation { angle, axis: args.given_arg("axis")?, center: args.given_arg("center")? }, args)
    },
    outputs: &one_output,
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Generator for Rotation {
    fn matrix(&self, sample: &SampleInputs<'_>, _ndim: Option<usize>) -> Result<Affine> {
        let angle = radians(self.angle.float(sample)?);
        let matrix = match &self.axis {
            None => {
                let (sin, cos) = angle.sin_cos();
                let mut matrix = Affine::identity(2)?;
                for (place, value) in [((0, 0), cos), ((0, 1), -sin), ((1, 0), sin), ((1, 1), cos)] {
                    matrix.set(place.0, place.1, value);
                }
                matrix
            }
            Some(axis) => {
                let axis = for_all_axes("axis", &axis.floats(sample)?, 3)?;
                let axis = [axis[0], axis[1], axis[2]];
                let mut matrix = Affine::identity(3)?;
                for (row, values) in rotation_3d(axis, angle)?.iter().enumerate() {
                    for (column, &value) in values.iter().enumerate() {
                        matrix.set(row, column, value);
                    }
                }
                matrix
            }
        };
        let center = self.center.as_ref().map(|center| center.floats(sample)).transpose()?;
        matrix.around(center.as_deref())
    }
}
