//! `gesso__EncodePng`: images and masks to PNGs.

use super::{Encode, Encoder};
use crate::cpu::encode::{self, Image};
use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, OpDef, Operator, SampleInputs};
use crate::tensor::DType;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__EncodePng",
    doc: "Images of uint8 or uint16 with 1 to 4 channels (gray, gray and alpha, RGB, RGBA) as PNG files: bytes of another number for each",
    args: &[ArgSpec::int("compression_level", "0, stored, to 9, smallest").or_int(6)],
    build: &build,
    ..OpDef::BASE
};

struct EncodePng {
    level: u8,
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let level = args.int("compression_level")?;
    let known = u8::try_from(level).ok().filter(|level| *level <= 9);
    let level = known
        .ok_or_else(|| Error::invalid(format!("argument `compression_level` is {level}, expected 0 to 9")))?;
    Ok(Box::new(Encode::new(EncodePng { level })))
}

impl Encoder for EncodePng {
    type Settings = ();
    const DTYPES: &'static [DType] = &[DType::U8, DType::U16];
    const SAMPLE: f64 = 30.0;

    fn settings(&self, _sample: &SampleInputs<'_>) -> Result<()> {
        Ok(())
    }

    fn encode(&self, image: &Image<'_>, (): &()) -> Result<Vec<u8>> {
        encode::png(image, self.level)
    }
}
