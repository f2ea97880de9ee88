//! `ColorTwist`, `Hsv`, `Hue` and `Saturation`: a rotation and scaling of chroma in the space YIQ, which is one matrix
//! over red, green and blue.

use super::{PixelMap, Rule, build};
use crate::cpu::color::Mix;
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, ArgTable, Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::{DType, Device};

/// Degrees, and factors of everything else.
struct ColorTwist {
    hue: Arg,
    saturation: Arg,
    value: Arg,
    brightness: Arg,
    contrast: Arg,
}

const HUE: &[ArgSpec] =
    &[ArgSpec::float("hue", "degrees by which hues are turned").tensor().per_frame().or_float(0.0)];
const SATURATION: &[ArgSpec] =
    &[ArgSpec::float("saturation", "factor of the saturation").tensor().per_frame().or_float(1.0)];
const IMAGE: &[ArgSpec] = &[
    ArgSpec::dtype("dtype", "element type of the output").or_computed("the input's"),
    ArgSpec::image_type("image_type", "images are taken as RGB whatever it says").no_effect().or_int(0),
];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ColorTwist",
    doc: "Hue, saturation, contrast and brightness of RGB images at once",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("brightness", "factor of all values").tensor().per_frame().or_float(1.0),
        ArgSpec::float("contrast", "factor of the distance to middle gray")
            .tensor()
            .per_frame()
            .or_float(1.0),
    ],
    shared_args: &[HUE, SATURATION, IMAGE],
    build: &|args, _| new(args, None),
    outputs: &one_output,
    kernels: &[super::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const HSV_DEF: OpDef = OpDef {
    name: "Hsv",
    doc: "Hue, saturation and value of RGB images, approximated by a matrix",
    args: &[
        ArgSpec::float("value", "factor of all values").tensor().per_frame().or_float(1.0),
        ArgSpec::dtype("dtype", "element type of the output").or_dtype(DType::U8),
    ],
    shared_args: &[HUE, SATURATION],
    build: &|args, _| new(args, Some(DType::U8)),
    sequences: true,
    ..DEF
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const HUE_DEF: OpDef = OpDef {
    name: "Hue",
    doc: "Turns the hues of RGB images",
    args: &[],
    shared_args: &[HUE, IMAGE],
    sequences: true,
    ..DEF
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const SATURATION_DEF: OpDef = OpDef {
    name: "Saturation",
    doc: "Scales the saturation of RGB images",
    args: &[],
    shared_args: &[SATURATION, IMAGE],
    sequences: true,
    ..DEF
};

fn new(args: &Args, dtype: Option<DType>) -> Result<Box<dyn Operator>> {
    // An operator with some of these arguments has the defaults of the others as well.
    let args = &args.with_defaults(ArgTable { own: DEF.args, shared: &[HUE, SATURATION, HSV_DEF.args] });
    let rule = ColorTwist {
        hue: args.arg("hue")?,
        saturation: args.arg("saturation")?,
        value: args.arg("value")?,
        brightness: args.arg("brightness")?,
        contrast: args.arg("contrast")?,
    };
    build(rule, args, dtype)
}

impl Rule for ColorTwist {
    fn map(&self, sample: &SampleInputs<'_>, from: DType, _to: DType) -> Result<PixelMap> {
        let hue = (f64::from(self.hue.float(sample)?) * std::f64::consts::PI / 180.0) as f32;
        let saturation = self.saturation.float(sample)?;
        let brightness = self.brightness.float(sample)?;
        let contrast = self.contrast.float(sample)?;
        let (sin, cos) = hue.sin_cos();
        let rotation = [[1.0, 0.0, 0.0], [0.0, cos, sin], [0.0, -sin, cos]];
        let stretch = [[1.0, 0.0, 0.0], [0.0, saturation, 0.0], [0.0, 0.0, saturation]];
        let value = scalar(self.value.float(sample)?);
        let matrix = [scalar(contrast), TO_RGB, rotation, stretch, value, TO_YIQ]
            .into_iter()
            .fold(scalar(brightness), |product, factor| multiply(&product, &factor));
        let middle = if from.is_float() { 0.5 } else { 128.0 };
        Ok(PixelMap::Mix(Mix { matrix, offset: (middle - middle * contrast) * brightness }))
    }

    fn mixes(&self) -> bool {
        true
    }
}

type Matrix = [[f32; 3]; 3];

/// From RGB to luma and the two axes of chroma.
const TO_YIQ: Matrix = [[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]];

/// The inverse of [`TO_YIQ`], as elimination in single precision finds it.
const TO_RGB: Matrix = [
    [0.999_664_37, 0.956_541_2, 0.620_861_7],
    [0.999_624_85, -0.272_274_46, -0.647_451_3],
    [1.002_812_3, -1.106_848, 1.705_405_6],
];

fn scalar(value: f32) -> Matrix {
    [[value, 0.0, 0.0], [0.0, value, 0.0], [0.0, 0.0, value]]
}

fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
    let element = |i: usize, j: usize| a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
    std::array::from_fn(|i| std::array::from_fn(|j| element(i, j)))
}
