//! `BrightnessContrast`, `Brightness` and `Contrast`:
//! `brightness_shift * range + brightness * (contrast_center + contrast * (in - contrast_center))`.

use super::{PixelMap, Rule, build};
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, Args, InputSet, OpDef, Operator, SampleInputs, one_output};
use crate::tensor::{DType, Device};

struct BrightnessContrast {
    brightness: Arg,
    brightness_shift: Arg,
    contrast: Arg,
    /// Half of the input type's range when it is not given.
    contrast_center: Option<Arg>,
}

const BRIGHTNESS: &[ArgSpec] = &[
    ArgSpec::float("brightness", "multiplies every value").tensor().per_frame().or_float(1.0),
    ArgSpec::float("brightness_shift", "is added, 1 being the largest value of the output's type")
        .tensor()
        .per_frame()
        .or_float(0.0),
];

const CONTRAST: &[ArgSpec] = &[
    ArgSpec::float("contrast", "multiplies the distance to the center").tensor().per_frame().or_float(1.0),
    ArgSpec::float("contrast_center", "the value that contrast leaves")
        .tensor()
        .per_frame()
        .or_computed("half of the input's range"),
];

const OUTPUT: &[ArgSpec] =
    &[ArgSpec::dtype("dtype", "element type of the output").or_computed("the input's")];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "BrightnessContrast",
    doc: "Scales and shifts all values, and their distance to a center",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[BRIGHTNESS, CONTRAST, OUTPUT],
    build: &new,
    outputs: &one_output,
    kernels: &[super::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const BRIGHTNESS_DEF: OpDef = OpDef {
    name: "Brightness",
    doc: "Scales and shifts all values",
    shared_args: &[BRIGHTNESS, OUTPUT],
    sequences: true,
    ..DEF
};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const CONTRAST_DEF: OpDef = OpDef {
    name: "Contrast",
    doc: "Scales the distance of all values to a center",
    shared_args: &[CONTRAST, OUTPUT],
    sequences: true,
    ..DEF
};

fn new(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    // An operator with one of the two has the other's defaults as well.
    let args = &args.with_defaults(DEF.arg_table());
    let rule = BrightnessContrast {
        brightness: args.arg("brightness")?,
        brightness_shift: args.arg("brightness_shift")?,
        contrast: args.arg("contrast")?,
        contrast_center: args.given_arg("contrast_center")?,
    };
    build(rule, args, None)
}

impl Rule for BrightnessContrast {
    fn map(&self, sample: &SampleInputs<'_>, from: DType, to: DType) -> Result<PixelMap> {
        let brightness = self.brightness.float(sample)?;
        let shift = self.brightness_shift.float(sample)?;
        let contrast = self.contrast.float(sample)?;
        let center = match &self.contrast_center {
            Some(center) => center.float(sample)?,
            None => half_range(from),
        };
        Ok(PixelMap::Scale {
            factor: brightness * contrast,
            addend: shift * full_range(to) + brightness * (center - contrast * center),
        })
    }

    fn mixes(&self) -> bool {
        false
    }
}

/// The largest value of an integer type, 1 for floats.
fn full_range(dtype: DType) -> f32 {
    match dtype {
        DType::U8 => 255.0,
        DType::I16 => 32_767.0,
        DType::I32 => i32::MAX as f32,
        _ => 1.0,
    }
}

/// Half of the positive range, rounded up.
fn half_range(dtype: DType) -> f32 {
    match dtype {
        DType::U8 => 128.0,
        DType::I16 => 16_384.0,
        DType::I32 => 1_073_741_824.0,
        _ => 0.5,
    }
}
