//! `gesso__EncodeWebp`: images to WebPs.

use super::{Encode, Encoder};
use crate::cpu::encode::{self, Image, WebP};
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, OpDef, Operator, SampleInputs};
use crate::tensor::DType;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__EncodeWebp",
    doc: "Images of RGB or RGBA as WebP files: bytes of another number for each",
    args: &[
        ArgSpec::float("quality", "of the file, 0 to 100; of a lossless one how much is tried")
            .tensor()
            .or_float(75.0),
        ArgSpec::bool("lossless", "whether pixels stay what they are").or_bool(false),
        ArgSpec::int("method", "0, fastest, to 6, smallest").or_int(4),
    ],
    build: &build,
    ..OpDef::BASE
};

struct EncodeWebp {
    quality: Arg,
    how: WebP,
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let method = match args.int("method")? {
        method @ 0..=6 => method as i32,
        method => return Err(Error::invalid(format!("argument `method` is {method}, expected 0 to 6"))),
    };
    let how = WebP { quality: 0.0, lossless: args.bool("lossless")?, method };
    Ok(Box::new(Encode::new(EncodeWebp { quality: args.arg("quality")?, how })))
}

impl Encoder for EncodeWebp {
    type Settings = WebP;
    const DTYPES: &'static [DType] = &[DType::U8];
    const SAMPLE: f64 = 60.0;

    fn settings(&self, sample: &SampleInputs<'_>) -> Result<WebP> {
        let quality = self.quality.float(sample)?;
        if !(0.0..=100.0).contains(&quality) {
            return Err(Error::invalid(format!("argument `quality` is {quality}, expected 0 to 100")));
        }
        Ok(WebP { quality, ..self.how })
    }

    fn encode(&self, image: &Image<'_>, how: &WebP) -> Result<Vec<u8>> {
        encode::webp(image, how)
    }
}
