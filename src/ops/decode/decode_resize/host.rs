//! An image decoder and the `Resize` behind it as one operator on the host: an image is resized while it is in the
//! processor's cache, a large one row by row as it is decoded. It computes what the two compute.

use super::{DECODER, Pictures, READER, is_plain, too_few, whole};
use crate::cpu::decode::RowSink;
use crate::deadline::Effort;
use crate::error::Result;
use crate::operator::{Args, CpuCx, Decoded, Deferred, Fusion, Inputs, Io, OpDef, Operator, Preferences};
use crate::ops::decode::decoders_image::Image;
use crate::ops::decode::{decoders_image, decoders_image_crop};
use crate::ops::geometry::resize;
use crate::ops::geometry::resize::attributes::ResizeAttributes;
use crate::ops::geometry::resize::geometry::Geometry;
use crate::ops::geometry::resize::{Job, ScratchPool};
use crate::ops::random::crop;
use crate::tensor::{BatchDesc, DType, Device, Layout, ValueType, View};

/// Pictures of so many bytes stay in a core's second cache until they are resized. To take their rows one by one costs
/// 4 % (500 x 375: 547 us instead of 527), where pictures of 1920 x 1080 gain 17 % in a batch.
const CACHED_BYTES: usize = 1 << 20;

struct DecodeResize {
    image: Image,
    attributes: ResizeAttributes,
    /// What is decoded in the batch at hand.
    decoded: BatchDesc,
    jobs: Vec<Option<Job>>,
    pictures: Pictures,
    scratch: ScratchPool,
}

/// What the graph knows of it: a line for each decoder whose only input is the files.
pub(in crate::ops) const FUSIONS: [Fusion; 3] = [
    fusion("decoders__Image + Resize", &[&decoders_image::DEF, &resize::DEF], |args| make(whole, args)),
    fusion("decoders__ImageCrop + Resize", &[&decoders_image_crop::DEF, &resize::DEF], |args| {
        make(decoders_image_crop::decoder, args)
    }),
    fusion("decoders__ImageRandomCrop + Resize", &[&crop::DECODER, &resize::DEF], |args| {
        make(crop::decoder, args)
    }),
];

const fn fusion(
    name: &'static str,
    of: &'static [&'static OpDef],
    make: fn(&[Args]) -> Result<Box<dyn Operator>>,
) -> Fusion {
    Fusion { name, device: Device::Cpu, of, can: |args, _| is_plain(args), kernels: Vec::new, make }
}

fn make(decoder: fn(&Args) -> Result<Image>, args: &[Args]) -> Result<Box<dyn Operator>> {
    let [first, second] = args else { return Err(too_few(args.len())) };
    Ok(Box::new(DecodeResize {
        image: decoder(first)?,
        attributes: ResizeAttributes::new(second)?,
        decoded: BatchDesc::new(DType::U8, Layout::hwc(), Vec::new()),
        jobs: Vec::new(),
        pictures: Pictures::default(),
        scratch: ScratchPool::default(),
    }))
}

impl Operator for DecodeResize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let decoded = self.image.infer(inputs)?;
        Ok(vec![resize::infer_resized(&decoded[0], &self.attributes, self.attributes.known_size())?])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.decoded = self.image.setup(&inputs.of_part(DECODER))?.swap_remove(0);
        self.jobs = inputs.of_part(READER).map(|sample| {
            let geometry = Geometry::new(&self.decoded.shapes[sample.index], self.decoded.layout)?;
            self.attributes.job(&sample, geometry, self.decoded.dtype, self.decoded.layout, None).map(Some)
        });
        let dtype = self.attributes.output_dtype(self.decoded.dtype)?;
        let shapes = resize::output_shapes(&self.decoded, &self.jobs);
        Ok(vec![BatchDesc::new(dtype, Layout::hwc(), shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        let picture = self.decoded.shapes.get(sample).and_then(|shape| shape.volume().ok()).unwrap_or(0);
        let Effort { time, scratch } = self.image.effort(sample);
        let resize = resize::effort(&self.jobs, sample);
        Effort { time: time + resize.time, scratch: scratch + picture + resize.scratch }
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.set_part(DECODER);
        let (inputs, threads) = (io.inputs(), self.image.by_threads(cx));
        let failures = inputs.failures();
        let Self { jobs, decoded, pictures, scratch, .. } = self;
        let (jobs, decoded, pictures, scratch) = (&*jobs, &*decoded, &*pictures, &*scratch);
        io.for_each_sample(cx, |sample| {
            let index = sample.index();
            let (job, shape) = (resize::job(jobs, index)?, &decoded.shapes[index]);
            // Memory for a large picture takes a while by itself.
            cx.watch(failures, index).check()?;
            let (input, output) = sample.unary()?;
            let (file, bytes) = (input.as_slice()?, shape.volume()?);
            if bytes > CACHED_BYTES && !threads.share(bytes) {
                let rows = |rows: &mut dyn RowSink| threads.decode_rows(failures, index, file, rows);
                // What goes wrong here goes wrong below, which tells whose fault it is.
                if scratch.with(|scratch| job.run_rows(output, scratch, rows)).unwrap_or(false) {
                    return Ok(());
                }
            }
            pictures.with(bytes, |bytes| {
                threads.decode(failures, index, file, bytes)?;
                let picture = View { dtype: decoded.dtype, layout: decoded.layout, shape, bytes };
                let watch = cx.watch(failures, index);
                let resized = scratch.with(|scratch| job.run(&picture, output, scratch, &watch));
                resized.unwrap_or_else(|error| inputs.of_part(READER).fail(index, error));
                Ok(())
            })
        })
    }

    fn take_decoded(&mut self) -> Decoded {
        self.image.take_decoded()
    }

    fn prefer(&mut self, preferences: &Preferences) {
        self.image.prefer(preferences);
        let smaller = self.attributes.whole_image_size();
        self.image.may_reduce_to(smaller.filter(|_| preferences.jpeg_scaled_decode));
    }
}
