//! `decoders__Image`: encoded images to HWC pixels.

use super::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::cpu::decode::{self, ColorSpace, DecodeOptions, Decoder};
use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Dimensions of a decoded image: rows, columns, channels.
const NDIM: usize = 3;

struct Image {
    options: DecodeOptions,
    decoder: Decoder,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "decoders__Image",
    aliases: &["ImageDecoder", "experimental__decoders__Image"],
    doc: "Decodes JPEG, PNG, BMP, TIFF, WebP and PNM to HWC pixels",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: ARGS,
    shared_args: &[],
    build,
    outputs: one_output,
};

/// Arguments of every image decoder.
pub(super) const ARGS: &[ArgSpec] = &[
    ArgSpec::fixed("output_type", "0 RGB (default), 1 BGR, 2 gray, 3 YCbCr, 4 as in the file"),
    ArgSpec::fixed("dtype", "element type, values scaled to its range; default uint8"),
    ArgSpec::fixed("adjust_orientation", "turn the image as its EXIF orientation says; default true"),
    ArgSpec::no_effect("use_fast_idct", "the accurate IDCT is always used"),
    ArgSpec::no_effect(
        "jpeg_fancy_upsampling",
        "chroma is always upsampled smoothly on the CPU, as DALI does",
    ),
    ArgSpec::no_effect("affine", "threads are not bound to cores"),
    ArgSpec::no_effect("cache_batch_copy", "no cache of decoded images"),
    ArgSpec::no_effect("cache_debug", "no cache of decoded images"),
    ArgSpec::no_effect("cache_size", "no cache of decoded images"),
    ArgSpec::no_effect("cache_threshold", "no cache of decoded images"),
    ArgSpec::no_effect("cache_type", "no cache of decoded images"),
    ArgSpec::no_effect("device_memory_padding", "a hint for DALI's decoder"),
    ArgSpec::no_effect("device_memory_padding_jpeg2k", "a hint for DALI's decoder"),
    ArgSpec::no_effect("host_memory_padding", "a hint for DALI's decoder"),
    ArgSpec::no_effect("host_memory_padding_jpeg2k", "a hint for DALI's decoder"),
    ArgSpec::no_effect("hw_decoder_load", "a hint for the GPU"),
    ArgSpec::no_effect("hybrid_huffman_threshold", "a hint for the GPU"),
    ArgSpec::no_effect("memory_stats", "a hint for DALI's decoder"),
    ArgSpec::no_effect("preallocate_height_hint", "a hint for DALI's decoder"),
    ArgSpec::no_effect("preallocate_width_hint", "a hint for DALI's decoder"),
    ArgSpec::no_effect("split_stages", "a hint for DALI's decoder"),
    ArgSpec::no_effect("use_chunk_allocator", "a hint for DALI's decoder"),
];

/// What the arguments of an image decoder ask for.
pub(super) fn options(args: &Args) -> Result<DecodeOptions> {
    let dtype = args.dtype("dtype")?.unwrap_or(DType::U8);
    decode::check_dtype(dtype)?;
    Ok(DecodeOptions {
        color: color_space(args, "output_type")?,
        dtype,
        adjust_orientation: args.bool("adjust_orientation")?.unwrap_or(true),
        fast_idct: false,
        window: None,
    })
}

/// The colour space in argument `name`, RGB by default.
pub(super) fn color_space(args: &Args, name: &str) -> Result<ColorSpace> {
    Ok(match args.int(name)? {
        None | Some(0) => ColorSpace::Rgb,
        Some(1) => ColorSpace::Bgr,
        Some(2) => ColorSpace::Gray,
        Some(3) => ColorSpace::YCbCr,
        Some(4) => ColorSpace::Any,
        Some(other) => return Err(Error::invalid(format!("argument `{name}` is {other}, expected 0 to 4"))),
    })
}

/// Checks that a decoder's input can be encoded images: uint8, one dimension.
pub(super) fn check_encoded(input: &ValueType) -> Result<()> {
    if input.dtype.is_some_and(|dtype| dtype != DType::U8) || input.ndim().is_some_and(|ndim| ndim != 1) {
        return Err(Error::invalid(format!(
            "expected encoded images as uint8 with 1 dimension, found {:?} with {:?} dimensions",
            input.dtype,
            input.ndim()
        )));
    }
    Ok(())
}

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Image { options: options(args)?, decoder: Decoder::new() }))
}

impl Operator for Image {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        check_encoded(&inputs[0])?;
        let channels = (self.options.color != ColorSpace::Any).then(|| self.options.color.channels(0));
        let dims = Some(vec![None, None, channels]);
        Ok(vec![ValueType { dtype: Some(self.options.dtype), dims, layout: Some(Layout::hwc()) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let shapes = inputs.map_shapes(NDIM, |sample| {
            let info = decode::probe(sample.input(0)?.as_slice()?, self.options.adjust_orientation)?;
            Ok(Shape::from(decode::output_shape(&info, &self.options)))
        });
        Ok(vec![BatchDesc::new(self.options.dtype, Layout::hwc(), shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (input, output) = sample.unary()?;
            self.decoder.decode_into(input.as_slice()?, &self.options, output.bytes)
        })
    }
}
