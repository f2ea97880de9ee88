//! `gesso__EncodeJpeg`: images to JPEGs, the bytes that libjpeg-turbo writes.

use super::encode_jpeg_on_device::{OnBoth, kernels};
use super::{Encode, Encoder};
use crate::cpu::encode::{self, Image, Jpeg, Subsampling};
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, OpDef, Operator, SampleInputs};
use crate::tensor::{DType, Device};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "gesso__EncodeJpeg",
    doc: "Images, gray or RGB, as JPEG files: bytes of another number for each",
    devices: &[Device::Cpu, Device::Gpu],
    args: &[
        ArgSpec::int("quality", "of the file, 1 to 100").tensor().or_int(75),
        ArgSpec::string("subsampling", "of chroma: `4:4:4`, `4:2:2` or `4:2:0`").or_string("4:2:0"),
        ArgSpec::bool("optimize", "whether codes are made for each image: smaller files, more work")
            .or_bool(false),
        ArgSpec::bool("progressive", "whether a file comes in scans, each of which shows more")
            .or_bool(false),
    ],
    build: &build,
    kernels: &[kernels],
    sizes_by_work: true,
    ..OpDef::BASE
};

struct EncodeJpeg {
    quality: Arg,
    how: Jpeg,
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let subsampling = match args.string("subsampling")? {
        "4:4:4" => Subsampling::S444,
        "4:2:2" => Subsampling::S422,
        "4:2:0" => Subsampling::S420,
        other => {
            return Err(Error::invalid(format!(
                "argument `subsampling` is `{other}`, expected `4:4:4`, `4:2:2` or `4:2:0`"
            )));
        }
    };
    let (optimize, progressive) = (args.bool("optimize")?, args.bool("progressive")?);
    let how = Jpeg { quality: 0, subsampling, optimize, progressive };
    Ok(Box::new(OnBoth::new(Encode::new(EncodeJpeg { quality: args.arg("quality")?, how }))))
}

impl Encoder for EncodeJpeg {
    type Settings = Jpeg;
    const DTYPES: &'static [DType] = &[DType::U8];
    const SAMPLE: f64 = 3.0;

    fn settings(&self, sample: &SampleInputs<'_>) -> Result<Jpeg> {
        match self.quality.int(sample)? {
            quality @ 1..=100 => Ok(Jpeg { quality: quality as i32, ..self.how }),
            quality => Err(Error::invalid(format!("argument `quality` is {quality}, expected 1 to 100"))),
        }
    }

    fn encode(&self, image: &Image<'_>, how: &Jpeg) -> Result<Vec<u8>> {
        encode::jpeg(image, how)
    }
}
