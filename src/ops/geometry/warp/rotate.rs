//! `Rotate`: an image turned around its center, a volume around an axis through its center.

use super::{ARGS, Extents, Placement, build};
use crate::cpu::warp::Map;
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::ops::geometry::transforms::{radians, rotation_3d};
use crate::tensor::Device;

/// Part of a pixel by which a turned image may stand out of its canvas.
const TOLERANCE: f64 = 1e-2;

struct Rotate {
    angle: Arg,
    axis: Option<Arg>,
    keep_size: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Rotate",
    doc: "Turns images, and volumes around an axis",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("angle", "degrees, counter-clockwise").tensor().per_frame().required(),
        ArgSpec::floats("axis", "of volumes: the axis x, y, z").tensor().per_frame(),
        ArgSpec::bool("keep_size", "whether the output is as large as the input; else it holds all of it")
            .or_bool(false),
    ],
    shared_args: &[ARGS],
    build: &new,
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

fn new(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let angle = args.arg("angle")?;
    let keep_size = args.bool("keep_size")?;
    build(Rotate { angle, axis: args.given_arg("axis")?, keep_size }, args)
}

impl Rotate {
    /// The rotation from a volume to its output by `angle`, over x, y, z.
    fn rotation(&self, sample: &SampleInputs<'_>, angle: f32) -> Result<[[f32; 3]; 3]> {
        let axis = self.axis.as_ref().ok_or_else(|| Error::invalid("argument `axis` is missing"))?;
        let axis = axis.floats(sample)?;
        let axis = <[f32; 3]>::try_from(axis.as_slice())
            .map_err(|_| Error::invalid(format!("argument `axis` has {} values, expected 3", axis.len())))?;
        rotation_3d(axis, angle)
    }

    fn angle(&self, sample: &SampleInputs<'_>) -> Result<f32> {
        let angle = self.angle.float(sample)?;
        if angle.is_finite() { Ok(angle) } else { Err(Error::invalid(format!("an angle of {angle}"))) }
    }
}

impl Placement for Rotate {
    fn extents(&self, sample: &SampleInputs<'_>, from: &[usize]) -> Result<Extents> {
        if self.keep_size {
            return Ok(Extents::of(from));
        }
        let angle = self.angle(sample)?;
        match *from {
            [h, w] => Ok(sides(h, w, f64::from(radians(-angle)))),
            [d, h, w] => Ok(volume([w, h, d], &self.rotation(sample, radians(angle))?)),
            _ => Err(Error::internal("a rotation of neither an image nor a volume")),
        }
    }

    fn map(&self, sample: &SampleInputs<'_>, from: &[usize], to: &[usize]) -> Result<Map> {
        let angle = self.angle(sample)?;
        // Images turn the other way, as their y points down.
        let rotation = if from.len() == 2 {
            let (sin, cos) = (-radians(-angle)).sin_cos();
            [[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]]
        } else {
            self.rotation(sample, -radians(angle))?
        };
        let mut map = Map::default();
        let halves = |size: &[usize], i: usize| size[size.len() - 1 - i] as f32 * 0.5;
        for (i, (row, values)) in map.iter_mut().zip(rotation).take(from.len()).enumerate() {
            row[..3].copy_from_slice(&values);
            let moved =
                (1..from.len()).fold(values[0] * -halves(to, 0), |sum, k| sum + values[k] * -halves(to, k));
            row[3] = moved + halves(from, i);
        }
        Ok(map)
    }

    fn keeps_size(&self) -> bool {
        self.keep_size
    }
}

/// Height and width that hold an image turned by `angle`.
pub(in crate::ops) fn canvas(h: usize, w: usize, angle: f64) -> [usize; 2] {
    let size = Extents::together(&[sides(h, w, angle)]);
    [size[0], size[1]]
}

/// The sides that it takes at least; they are odd where the side of the image that mostly lies along them is, so that
/// its middle stays sharp.
fn sides(h: usize, w: usize, angle: f64) -> Extents {
    let (sin, cos) = (angle.sin().abs(), angle.cos().abs());
    let (height, width) = (h as f64, w as f64);
    let sides = [cos * height + sin * width, cos * width + sin * height];
    let along = if sin <= cos { [h, w] } else { [w, h] };
    Extents {
        least: sides.map(|side| (side - TOLERANCE).ceil().max(0.0) as usize).to_vec(),
        is_odd: along.map(|side| side % 2 == 1).to_vec(),
    }
}

/// The same for a volume of this size over x, y, z.
fn volume(size: [usize; 3], rotation: &[[f32; 3]; 3]) -> Extents {
    let (mut least, mut is_odd) = (Vec::new(), Vec::new());
    for i in [2, 1, 0] {
        let weights = rotation[i].map(f32::abs);
        let side = weights[0] * size[0] as f32 + weights[1] * size[1] as f32 + weights[2] * size[2] as f32;
        least.push((side - TOLERANCE as f32).ceil().max(0.0) as usize);
        let main = (0..3).fold(i, |best, j| if weights[j] > weights[best] { j } else { best });
        is_odd.push(size[main] % 2 == 1);
    }
    Extents { least, is_odd }
}
