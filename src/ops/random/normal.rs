//! `random__Normal`: numbers around a mean.

use super::{ARGS, Distribution, Draw, NUMBERS, Random};
use crate::cpu::random::{Philox, normal_f32, normal_f64};
use crate::error::Result;
use crate::operator::{Arg, ArgSpec, Args, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::{DType, Device};

/// The arguments that say which normal distribution.
pub(super) const NORMAL: &[ArgSpec] = &[
    ArgSpec::float("mean", "mean of the numbers").tensor().or_float(0.0),
    ArgSpec::float("stddev", "standard deviation of the numbers").tensor().or_float(1.0),
];

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "random__Normal",
    aliases: &["NormalDistribution"],
    doc: "Random numbers around a mean",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (0, 1),
    args: NORMAL,
    shared_args: &[ARGS],
    build: &|args, inputs| Random::operator(Normal::new(args)?, args, inputs),
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// A normal distribution.
pub(super) struct Normal {
    mean: Arg,
    stddev: Arg,
}

impl Normal {
    /// Reads [`NORMAL`].
    pub(super) fn new(args: &Args) -> Result<Self> {
        Ok(Self { mean: args.arg("mean")?, stddev: args.arg("stddev")? })
    }
}

impl Distribution for Normal {
    /// Mean and standard deviation.
    type Parameters = (f32, f32);

    const DTYPE: DType = DType::F32;

    const DTYPES: &[DType] = NUMBERS;

    const NUMBER_TIME: f64 = 12.0;

    fn parameters(&self, sample: &SampleInputs<'_>, _dtype: DType) -> Result<(f32, f32)> {
        Ok((self.mean.float(sample)?, self.stddev.float(sample)?))
    }

    #[inline(always)]
    fn draw_f32(&(mean, stddev): &(f32, f32), random: &mut Philox) -> f32 {
        normal_f32(random, mean, stddev)
    }

    #[inline(always)]
    fn draw_f64(&(mean, stddev): &(f32, f32), random: &mut Philox) -> f64 {
        normal_f64(random, f64::from(mean), f64::from(stddev))
    }
    fn kernel(&self) -> &'static str {
        "normal"
    }

    fn draw(&(mean, stddev): &(f32, f32), _is_wide: bool) -> Draw<'_> {
        Draw { low: f64::from(mean), factor: f64::from(stddev), ..Draw::default() }
    }
}
