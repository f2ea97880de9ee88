//! An image decoder and what resizes its images as one operator on a device: images are read a group at a time as they
//! are decoded, planes in place of pixels where these are enough, and the next group has their memory. It computes what
//! the operators compute.

use std::sync::Arc;

use super::{DECODER, READER, is_plain, too_few, whole};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::{
    Args, CpuCx, Decoded, Deferred, DeviceOutput, Fusion, GpuCx, GpuIo, Inputs, Io, OpDef, Operator,
    Preferences,
};
use crate::ops::decode::decoders_image::Image;
use crate::ops::decode::{decoders_image, decoders_image_crop};
use crate::ops::geometry::resize::Resize;
use crate::ops::geometry::resize_normalize::ResizeNormalize;
use crate::ops::geometry::{crop_mirror_normalize, resize, resize_normalize};
use crate::ops::random::crop;
use crate::tensor::{Batch, BatchDesc, DType, Device, Layout, Sample, ValueType};

struct DecodeAndRead {
    image: Image,
    reader: Box<dyn Operator>,
    /// Whether errors of the reader are those of one operator.
    is_pair: bool,
    /// What is decoded in the batch at hand: shapes, no bytes.
    decoded: Batch<'static>,
}

/// What the graph knows of it: two lines for each decoder whose only input is the files.
pub(in crate::ops) const FUSIONS: [Fusion; 6] = [
    normalized(
        "decoders__Image + Resize + CropMirrorNormalize",
        &[&decoders_image::DEF, &resize::DEF, &crop_mirror_normalize::DEF],
        |args| make_normalized(whole, args),
    ),
    normalized(
        "decoders__ImageCrop + Resize + CropMirrorNormalize",
        &[&decoders_image_crop::DEF, &resize::DEF, &crop_mirror_normalize::DEF],
        |args| make_normalized(decoders_image_crop::decoder, args),
    ),
    normalized(
        "decoders__ImageRandomCrop + Resize + CropMirrorNormalize",
        &[&crop::DECODER, &resize::DEF, &crop_mirror_normalize::DEF],
        |args| make_normalized(crop::decoder, args),
    ),
    resized("decoders__Image + Resize", &[&decoders_image::DEF, &resize::DEF], |args| {
        make_resized(whole, args)
    }),
    resized("decoders__ImageCrop + Resize", &[&decoders_image_crop::DEF, &resize::DEF], |args| {
        make_resized(decoders_image_crop::decoder, args)
    }),
    resized("decoders__ImageRandomCrop + Resize", &[&crop::DECODER, &resize::DEF], |args| {
        make_resized(crop::decoder, args)
    }),
];

type Make = fn(&[Args]) -> Result<Box<dyn Operator>>;

const fn resized(name: &'static str, of: &'static [&'static OpDef], make: Make) -> Fusion {
    Fusion { name, device: Device::Gpu, of, can: |args, _| is_plain(args), kernels: Vec::new, make }
}

const fn normalized(name: &'static str, of: &'static [&'static OpDef], make: Make) -> Fusion {
    Fusion { name, device: Device::Gpu, of, can, kernels: Vec::new, make }
}

fn can(args: &[&Args], types: &[&ValueType]) -> bool {
    let readers = args.get(READER..).zip(types.get(READER..));
    is_plain(args) && readers.is_some_and(|(args, types)| resize_normalize::can(args, types))
}

fn make_resized(decoder: fn(&Args) -> Result<Image>, args: &[Args]) -> Result<Box<dyn Operator>> {
    let [first, second] = args else { return Err(too_few(args.len())) };
    make(decoder(first)?, Box::new(Resize::new(second)?), true)
}

fn make_normalized(decoder: fn(&Args) -> Result<Image>, args: &[Args]) -> Result<Box<dyn Operator>> {
    let [first, readers @ ..] = args else { return Err(too_few(args.len())) };
    make(decoder(first)?, Box::new(ResizeNormalize::new(readers)?), false)
}

fn make(image: Image, reader: Box<dyn Operator>, is_pair: bool) -> Result<Box<dyn Operator>> {
    let decoded = Batch::new(BatchDesc::new(DType::U8, Layout::hwc(), Vec::new()), Vec::new())?;
    Ok(Box::new(DecodeAndRead { image, reader, is_pair, decoded }))
}

/// Inputs of the reader of images `decoded`.
fn of_reader<'a>(inputs: Inputs<'a>, is_pair: bool, decoded: &'a [&'a Batch<'a>]) -> Inputs<'a> {
    let inputs = if is_pair { inputs.of_part(READER) } else { inputs };
    inputs.with(decoded, inputs.arguments(), inputs.failures())
}

impl DecodeAndRead {
    /// Lets `record` record the decoder, with what records the reader.
    fn with_reader<T>(
        &mut self,
        cx: &mut GpuCx<'_>,
        io: &GpuIo<'_>,
        record: impl FnOnce(&mut Image, &mut GpuCx<'_>, Inputs<'_>, decoders_image::Read<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self { image, reader, is_pair, decoded } = self;
        let inputs = io.inputs();
        let decoded = [&*decoded];
        let inputs_of_reader = of_reader(inputs, *is_pair, &decoded);
        let outputs =
            || io.outputs().iter().map(|output| DeviceOutput { samples: output.samples.clone(), ..*output });
        record(image, cx, inputs.of_part(DECODER), &mut |cx, sources| {
            reader.run_gpu(cx, &mut GpuIo::of(inputs_of_reader, outputs().collect(), sources))
        })
    }
}

impl Operator for DecodeAndRead {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        self.reader.infer(&self.image.infer(inputs)?)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = self.image.setup(&inputs.of_part(DECODER))?.swap_remove(0);
        let nowhere = vec![Sample::Missing; desc.shapes.len()];
        self.decoded = Batch::new(desc, nowhere)?;
        let decoded = [&self.decoded];
        self.reader.setup(&of_reader(*inputs, self.is_pair, &decoded))
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("an operator of a GPU runs on a host"))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        if let Some(reader) = self.reader.deferred()
            && self.image.may_leave_planes()
        {
            reader.may_read_planes();
        }
        self.image.prepare_gpu(gpu, inputs)?;
        self.reader.prepare_gpu(gpu, &self.image.infer(inputs)?)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.with_reader(cx, io, |image, cx, inputs, read| image.run_for(cx, inputs, read))
    }

    fn prefer(&mut self, preferences: &Preferences) {
        self.image.prefer(preferences);
        self.reader.prefer(preferences);
        let enough = self.reader.deferred().and_then(|reader| reader.sufficient_size());
        self.image.may_reduce_to(enough.filter(|_| preferences.jpeg_scaled_decode));
    }

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn take_decoded(&mut self) -> Decoded {
        self.image.take_decoded()
    }
}

impl Deferred for DecodeAndRead {
    fn must_be_exact(&mut self) {
        self.image.must_be_exact();
    }

    fn is_unsettled(&self) -> bool {
        self.image.is_unsettled()
    }

    fn settle(&mut self, cx: &mut GpuCx<'_>, io: &GpuIo<'_>) -> Result<bool> {
        self.with_reader(cx, io, |image, cx, inputs, read| image.settle_for(cx, inputs, read))
    }
}
