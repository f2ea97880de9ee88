//! `random__CoinFlip`: ones with a probability, else zeros.

use super::{ARGS, Distribution, Draw, Random};
use crate::cpu::random::Philox;
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::{DType, Device};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "random__CoinFlip",
    aliases: &["CoinFlip"],
    doc: "Random ones and zeros",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (0, 1),
    args: &[ArgSpec::float("probability", "probability of a one").tensor().or_float(0.5)],
    shared_args: &[ARGS],
    build: &|args, inputs| {
        let probability = args.arg("probability")?;
        Random::operator(CoinFlip { probability }, args, inputs)
    },
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

struct CoinFlip {
    probability: Arg,
}

impl Distribution for CoinFlip {
    /// The largest word that means one.
    type Parameters = u32;

    const DTYPE: DType = DType::I32;

    const DTYPES: &[DType] = &[DType::Bool, DType::U8, DType::I32];

    const NUMBER_TIME: f64 = 3.0;

    fn parameters(&self, sample: &SampleInputs<'_>, _dtype: DType) -> Result<u32> {
        let probability = self.probability.float(sample)?;
        if !(0.0..=1.0).contains(&probability) {
            return Err(Error::invalid(format!("argument `probability` is {probability}, expected 0 to 1")));
        }
        // A cast saturates.
        Ok((probability * 2f32.powi(32)) as u32)
    }

    #[inline(always)]
    fn draw_f32(&most: &u32, random: &mut Philox) -> f32 {
        f32::from(u8::from(random.next_u32() <= most))
    }

    #[inline(always)]
    fn draw_f64(&most: &u32, random: &mut Philox) -> f64 {
        f64::from(u8::from(random.next_u32() <= most))
    }
    fn kernel(&self) -> &'static str {
        "coin_flip"
    }

    fn draw(&most: &u32, _is_wide: bool) -> Draw<'_> {
        Draw { most, ..Draw::default() }
    }
}
