//! `JpegCompressionDistortion`: an image as it comes back from a JPEG file.

use super::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, layouts, one_output};
use crate::cpu::decode::{DecodeOptions, Decoder};
use crate::cpu::encode;
use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 2] = ["HWC", "FHWC"];

struct JpegCompressionDistortion {
    quality: Arg,
    qualities: Vec<i32>,
    decoder: Decoder,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "JpegCompressionDistortion",
    aliases: &[],
    doc: "RGB images as they come back from a JPEG file",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[ArgSpec::tensor("quality", "of the file, 1 to 100; default 50")],
    shared_args: &[],
    build: &build,
    outputs: &one_output,
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let quality = args.arg_or("quality", &[50.0])?;
    Ok(Box::new(JpegCompressionDistortion { quality, qualities: Vec::new(), decoder: Decoder::new() }))
}

fn check(dtype: DType) -> Result<()> {
    if dtype == DType::U8 {
        return Ok(());
    }
    Err(Error::unsupported(format!("images of type {dtype}, expected uint8")))
}

impl Operator for JpegCompressionDistortion {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), check)?;
        let layout = layouts::of_type(&inputs[0], &LAYOUTS)?;
        Ok(vec![ValueType { dtype: Some(DType::U8), layout, dims: inputs[0].dims.clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        self.qualities = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            if shape.last() != Some(&3) || shape.contains(&0) {
                return Err(Error::invalid(format!(
                    "an image of shape {shape}, expected pixels of 3 channels"
                )));
            }
            let quality = self.quality.int(&sample)?;
            let valid = i32::try_from(quality).ok().filter(|quality| (1..=100).contains(quality));
            valid.ok_or_else(|| Error::invalid(format!("argument `quality` is {quality}, expected 1 to 100")))
        });
        Ok(vec![BatchDesc { layout, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (qualities, decoder) = (&self.qualities, &self.decoder);
        io.for_each_sample(cx, |sample| {
            let quality = qualities.get(sample.index()).copied().unwrap_or_default();
            let (input, output) = sample.unary()?;
            let [.., height, width, _] = input.shape[..] else {
                return Err(Error::internal("an image without height and width"));
            };
            let frame = height * width * 3;
            for (src, dst) in input.bytes.chunks_exact(frame).zip(output.bytes.chunks_exact_mut(frame)) {
                let file = encode::jpeg(src, [height, width], quality)?;
                let options = DecodeOptions { adjust_orientation: false, ..DecodeOptions::default() };
                decoder.decode_into(&file, &options, dst)?;
            }
            Ok(())
        })
    }
}
