//! `PeekImageShape`: height, width and channels of an encoded image, from its header.

use super::decoders_image::{check_encoded, color_space};
use crate::cpu::convert::ConvertSat;
use crate::cpu::decode::{self, DecodeOptions};
use crate::cpu::encoded::Encoded;
use crate::dispatch;
use crate::error::Result;
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct PeekImageShape {
    dtype: DType,
    options: DecodeOptions,
    /// Per sample: height, width, channels.
    found: Vec<[i64; 3]>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "PeekImageShape",
    aliases: &["experimental__PeekImageShape"],
    doc: "Height, width and channels of an encoded image, without decoding it",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::dtype("dtype", "element type of the result").or_dtype(DType::I64),
        ArgSpec::image_type("image_type", "colours that a decoder would make: 0 RGB to 4 as in the file")
            .or_int(0),
        ArgSpec::bool("adjust_orientation", "size after the EXIF orientation").or_bool(true),
    ],
    build: &build,
    outputs: &one_output,
    encoded: Some(Encoded::Picture),
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let options = DecodeOptions {
        color: color_space(args, "image_type")?,
        adjust_orientation: args.bool("adjust_orientation")?,
        ..DecodeOptions::default()
    };
    Ok(Box::new(PeekImageShape { dtype: args.dtype("dtype")?, options, found: Vec::new() }))
}

impl Operator for PeekImageShape {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        check_encoded(&inputs[0])?;
        Ok(vec![ValueType { dtype: Some(self.dtype), dims: Some(vec![Some(3)]), layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.found = inputs.map(|sample| {
            let info = decode::probe(sample.input(0)?.as_slice()?, self.options.adjust_orientation)?;
            Ok(decode::output_shape(&info, &self.options).map(|extent| extent as i64))
        });
        let shapes = vec![Shape::from([3]); inputs.batch_size()];
        Ok(vec![BatchDesc::new(self.dtype, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let extents = self.found[sample.index()];
            let output = sample.output(0)?;
            dispatch!(output.dtype, T => for (to, from) in output.as_slice_mut::<T>()?.iter_mut().zip(extents) {
                *to = from.convert_sat();
            });
            Ok(())
        })
    }
}
