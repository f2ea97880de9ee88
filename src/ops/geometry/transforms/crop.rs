//! `transforms__Crop`: maps one box of coordinates onto another.

use super::{ARGS, Affine, Generator, build, for_all_axes};
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::Device;

/// Where each argument is among [`Crop::corners`].
const NAMES: [&str; 4] = ["from_start", "from_end", "to_start", "to_end"];

struct Crop {
    corners: [Arg; 4],
    absolute: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "transforms__Crop",
    doc: "The matrix that maps one box of coordinates onto another",
    devices: &[Device::Cpu],
    inputs: (0, 1),
    args: &[
        ArgSpec::floats("from_start", "lower corner of the box that is mapped")
            .tensor()
            .per_frame()
            .or_floats(&[0.0]),
        ArgSpec::floats("from_end", "upper corner of the box that is mapped")
            .tensor()
            .per_frame()
            .or_floats(&[1.0]),
        ArgSpec::floats("to_start", "lower corner of the box it becomes")
            .tensor()
            .per_frame()
            .or_floats(&[0.0]),
        ArgSpec::floats("to_end", "upper corner of the box it becomes")
            .tensor()
            .per_frame()
            .or_floats(&[1.0]),
        ArgSpec::bool("absolute", "whether corners in the wrong order are exchanged").or_bool(false),
    ],
    shared_args: &[ARGS],
    build: &|args, _| {
        let [a, b, c, d] = NAMES.map(|name| args.arg(name));
        build(Crop { corners: [a?, b?, c?, d?], absolute: args.bool("absolute")? }, args)
    },
    outputs: &one_output,
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

impl Generator for Crop {
    fn matrix(&self, sample: &SampleInputs<'_>, _ndim: Option<usize>) -> Result<Affine> {
        let mut corners = Vec::with_capacity(4);
        for corner in &self.corners {
            corners.push(corner.floats(sample)?);
        }
        let ndim = corners.iter().map(Vec::len).max().unwrap_or_default();
        let mut matrix = Affine::identity(ndim)?;
        for (corner, name) in corners.iter_mut().zip(NAMES) {
            *corner = for_all_axes(name, corner, ndim)?;
        }
        let [from_start, from_end, to_start, to_end] = [&corners[0], &corners[1], &corners[2], &corners[3]];
        let ranges = from_start.iter().zip(from_end).zip(to_start.iter().zip(to_end));
        for (d, ((&from_start, &from_end), (&to_start, &to_end))) in ranges.enumerate() {
            let (mut from, mut to) = ([from_start, from_end], [to_start, to_end]);
            if self.absolute {
                for range in [&mut from, &mut to] {
                    if range[0] > range[1] {
                        range.swap(0, 1);
                    }
                }
            }
            let scale = (to[1] - to[0]) / (from[1] - from[0]);
            matrix.set(d, d, scale);
            matrix.set(d, ndim, to[0] - scale * from[0]);
        }
        Ok(matrix)
    }
}
