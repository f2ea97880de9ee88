//! `transforms__Shear`: moves coordinates by multiples of the others.

use super::{ARGS, Affine, Generator, build, radians};
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::Device;

struct Shear {
    /// Factors, or angles in degrees whose tangents they are.
    factors: Arg,
    are_angles: bool,
    center: Option<Arg>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "transforms__Shear",
    doc: "The matrix that moves each coordinate by multiples of the others",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[
        ArgSpec::floats("shear", "factors: x, y; in space xy, xz, yx, yz, zx, zy").tensor().per_frame(),
        ArgSpec::floats("angles", "degrees whose tangents are the factors, instead of `shear`")
            .tensor()
            .per_frame(),
        ArgSpec::floats("center", "the point that stays").tensor().per_frame().or_computed("the origin"),
    ],
    shared_args: &[ARGS],
    build: &|args, _| {
        let (factors, are_angles) = match (args.given_arg("shear")?, args.given_arg("angles")?) {
            (Some(shear), None) => (shear, false),
            (None, Some(angles)) => (angles, true),
            _ => return Err(Error::invalid("expected one of the arguments `shear` and `angles`")),
        };
        build(Shear { factors, are_angles, center: args.given_arg("center")? }, args)
    },
    outputs: &one_output,
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Generator for Shear {
    fn matrix(&self, sample: &SampleInputs<'_>, _ndim: Option<usize>) -> Result<Affine> {
        let mut factors = self.factors.floats(sample)?;
        let ndim = match factors.len() {
            2 => 2,
            6 => 3,
            other => return Err(Error::invalid(format!("{other} factors of a shear, expected 2 or 6"))),
        };
        if self.are_angles {
            if let Some(angle) = factors.iter().find(|angle| !(-90.0..=90.0).contains(*angle)) {
                return Err(Error::invalid(format!("an angle of {angle}, expected -90 to 90 degrees")));
            }
            factors.iter_mut().for_each(|angle| *angle = radians(*angle).tan());
        }
        let mut matrix = Affine::identity(ndim)?;
        let places = (0..ndim * ndim).map(|i| (i / ndim, i % ndim)).filter(|(row, column)| row != column);
        for ((row, column), factor) in places.zip(factors) {
            matrix.set(row, column, factor);
        }
        let center = self.center.as_ref().map(|center| center.floats(sample)).transpose()?;
        matrix.around(center.as_deref())
    }
}
