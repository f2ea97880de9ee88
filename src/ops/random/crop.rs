//! Random crop windows, and the operators that use them: `RandomCropGenerator`, `RandomResizedCrop`,
//! `decoders__ImageRandomCrop`.

use std::sync::Arc;

use super::{SEED, seed};
use crate::cpu::exact::Arithmetic;
use crate::cpu::random::{BatchRandom, Philox, Seed, canonical_f32, uniform_int};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::args::numbers;
use crate::operator::shared::window::Window;
use crate::operator::{
    ArgSpec, ArgTable, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs,
    one_output,
};
use crate::ops::decode::decoders_image;
use crate::ops::decode::decoders_image::{Image, Region};
use crate::ops::geometry::resize::attributes::{self, ResizeAttributes};
use crate::ops::geometry::resize::exact;
use crate::ops::geometry::resize::exact_gpu::Tables;
use crate::ops::geometry::resize::geometry::{Geometry, layout_of};
use crate::ops::geometry::resize::{Job, ScratchPool, effort, gpu, infer_resized, job, output_shapes};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// What DALI combines the seed of a crop window with.
const SEED_MASK: u64 = 0x0123_4567_8abc_defe;

/// Arguments that say which windows.
const ARGS: &[ArgSpec] = &[
    SEED,
    ArgSpec::floats("random_area", "least and largest part of the image's area").or_floats(&[0.08, 1.0]),
    ArgSpec::floats("random_aspect_ratio", "least and largest width by height")
        .or_floats(&[3.0 / 4.0, 4.0 / 3.0]),
    ArgSpec::int("num_attempts", "windows that are drawn until one fits").or_int(10),
];

/// Draws windows of images.
struct RandomCrop {
    area: [f32; 2],
    ratio: [f32; 2],
    attempts: i64,
    seed: Seed,
    batch: BatchRandom,
}

impl RandomCrop {
    fn new(args: &Args) -> Result<Self> {
        // An area may begin at nothing, a ratio may not.
        let pair = |name: &str, may_be_zero: bool| {
            let begins = |low: f32| low > 0.0 || may_be_zero && low == 0.0;
            match args.floats(name)?[..] {
                // One value is both, as in DALI.
                [both] if both > 0.0 && both.is_finite() => Ok([both; 2]),
                [low, high] if begins(low) && low <= high && 0.0 < high && high.is_finite() => {
                    Ok([low, high])
                }
                ref other => Err(Error::invalid(format!(
                    "argument `{name}` is {other:?}, expected two positive numbers that rise"
                ))),
            }
        };
        let attempts = args.int("num_attempts")?;
        if !(1..=limits::MAX_CROP_ATTEMPTS).contains(&attempts) {
            return Err(Error::invalid(format!(
                "argument `num_attempts` is {attempts}, expected 1 to {}",
                limits::MAX_CROP_ATTEMPTS
            )));
        }
        Ok(Self {
            area: pair("random_area", true)?,
            ratio: pair("random_aspect_ratio", false)?,
            attempts,
            seed: seed(args)?.masked(SEED_MASK),
            batch: BatchRandom::default(),
        })
    }

    /// Must come before the windows of each batch; `samples` were before it.
    fn begin(&mut self, samples: u64) {
        self.batch = self.seed.batch(samples);
    }

    /// The window of sample `sample`, an image of `size` (height, width).
    fn window(&self, sample: usize, size: &[usize]) -> Result<Window> {
        let &[height, width] = size else {
            return Err(Error::internal("a window of an image without height and width"));
        };
        if height == 0 || width == 0 || height.saturating_mul(width) > limits::MAX_SAMPLE_BYTES {
            return Err(Error::invalid(format!("a random window of an image of {width} x {height} pixels")));
        }
        let mut random = self.batch.sample(sample);
        let [h, w] = self.size(&mut random, [height, width]);
        let y = uniform_int(&mut random, (height - h) as u32);
        let x = uniform_int(&mut random, (width - w) as u32);
        Ok(Window { anchor: vec![i64::from(y), i64::from(x)], extent: vec![h, w] })
    }

    /// Height and width of a window. All of it is float32, as in DALI.
    fn size(&self, random: &mut Philox, [height, width]: [usize; 2]) -> [usize; 2] {
        let [least_ratio, most_ratio] = self.ratio;
        let (h, w) = (height as f32, width as f32);
        let pixels = (height * width) as f32;
        // Casts drop fractions.
        let widest = ((h * most_ratio) as usize).max(1);
        let highest = ((w * (1.0 / least_ratio)) as usize).max(1);
        let least_area = pixels * self.area[0];
        if (((height * widest) as f32) < least_area) && widest <= width {
            return [height, widest];
        }
        if (((width * highest) as f32) < least_area) && highest <= height {
            return [highest, width];
        }
        for _ in 0..self.attempts {
            let area = canonical_f32(random, self.area[0], self.area[1]) * pixels;
            let ratio = canonical_f32(random, least_ratio.ln(), most_ratio.ln()).exp();
            let side = |squared: f32| (squared.sqrt().round() as usize).max(1);
            let (w, h) = (side(area * ratio), side(area / ratio));
            let ratio = w as f32 / h as f32;
            if w <= width && h <= height && (least_ratio..=most_ratio).contains(&ratio) {
                return [h, w];
            }
        }
        let ratio = w / h;
        let whole = if ratio > most_ratio {
            [height, widest]
        } else if ratio < least_ratio {
            [highest, width]
        } else {
            [height, width]
        };
        let scale = (self.area[1] * pixels / (whole[0] * whole[1]) as f32).min(1.0).sqrt();
        let side = |side: usize, most: usize| ((side as f32 * scale) as usize).clamp(1, most);
        [side(whole[0], height), side(whole[1], width)]
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DECODER: OpDef = OpDef {
    name: "decoders__ImageRandomCrop",
    aliases: &["ImageDecoderRandomCrop", "experimental__decoders__ImageRandomCrop"],
    doc: "Decodes images and keeps a random window of each",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[decoders_image::ARGS, ARGS],
    arithmetics: &Arithmetic::PILLOW,
    build: &|args, _| Ok(Box::new(decoder(args)?)),
    outputs: &one_output,
    kernels: &[decoders_image::kernels],
    host_inputs: Some(0),
    copies_input: InputSet::First,
    ..OpDef::BASE
};

/// The decoder that these arguments describe.
///
/// # Errors
/// When one of them has no such value.
pub(in crate::ops) fn decoder(args: &Args) -> Result<Image> {
    Image::new(args, Some(Box::new(RandomCrop::new(args)?)))
}

impl Region for RandomCrop {
    fn infer(&self) -> Result<Vec<Option<usize>>> {
        Ok(vec![None, None])
    }

    fn begin(&mut self, samples: u64) {
        RandomCrop::begin(self, samples);
    }

    fn place(&self, sample: &SampleInputs<'_>, size: &[usize]) -> Result<Window> {
        self.window(sample.index, size)
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const GENERATOR: OpDef = OpDef {
    name: "RandomCropGenerator",
    doc: "Random windows for images of given shapes: where they begin, and how large they are",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[],
    shared_args: &[ARGS],
    build: &|args, _| Ok(Box::new(Generator(RandomCrop::new(args)?))),
    outputs: &|_, _| Ok(2),
    ..OpDef::BASE
};

struct Generator(RandomCrop);

impl Operator for Generator {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let ty = ValueType { dtype: Some(DType::I32), dims: Some(vec![Some(2)]), layout: Some(Layout::NONE) };
        Ok(vec![ty; 2])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.0.begin(inputs.first_sample());
        Ok(vec![BatchDesc::new(DType::I32, Layout::NONE, vec![Shape::from([2]); inputs.batch_size()]); 2])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let shape = sample.input(0)?;
            if shape.shape.volume()? > limits::MAX_NDIM {
                return Err(Error::invalid(format!("the shape is a tensor of shape {}", shape.shape)));
            }
            let [height, width, ..] = numbers(&shape)?[..] else {
                return Err(Error::invalid("a shape without height and width"));
            };
            let window = self.0.window(sample.index(), &[height as usize, width as usize])?;
            let anchor: Vec<i32> = window.anchor.iter().map(|&at| at as i32).collect();
            let extent: Vec<i32> = window.extent.iter().map(|&extent| extent as i32).collect();
            sample.output(0)?.as_slice_mut::<i32>()?.copy_from_slice(&anchor);
            sample.output(1)?.as_slice_mut::<i32>()?.copy_from_slice(&extent);
            Ok(())
        })
    }
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const RESIZED: OpDef = OpDef {
    name: "RandomResizedCrop",
    doc: "Random windows of images, resized",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("size", "height and width").required(),
        ArgSpec::interp_type("interp_type", "filter, as of `Resize`").tensor().or_int(1),
        ArgSpec::interp_type("min_filter", "filter when the image gets smaller")
            .tensor()
            .or_computed("`interp_type`"),
        ArgSpec::interp_type("mag_filter", "filter when the image gets larger")
            .tensor()
            .or_computed("`interp_type`"),
        ArgSpec::bool("antialias", "stretch the filter when the image gets smaller").or_bool(true),
        ArgSpec::dtype("dtype", "element type of the output: the input's or float32")
            .or_computed("the input's"),
        ArgSpec::int("minibatch_size", "a hint for DALI's GPU kernel").no_effect().or_int(32),
        ArgSpec::int("temp_buffer_hint", "a hint for DALI's memory").no_effect().or_int(0),
    ],
    shared_args: &[ARGS, exact::ARGS],
    arithmetics: &Arithmetic::ALL,
    build: &build_resized,
    outputs: &one_output,
    kernels: &[crate::ops::geometry::resize::gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build_resized(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    // Arguments of `Resize` that a file cannot give here have its defaults.
    let of_resize = ArgTable { own: RESIZED.args, shared: &[exact::ARGS, attributes::ARGS] };
    Ok(Box::new(RandomResizedCrop {
        attributes: ResizeAttributes::new(&args.with_defaults(of_resize))?,
        crop: RandomCrop::new(args)?,
        jobs: Vec::new(),
        scratch: ScratchPool::default(),
        tables: Tables::default(),
    }))
}

struct RandomResizedCrop {
    attributes: ResizeAttributes,
    crop: RandomCrop,
    jobs: Vec<Option<Job>>,
    scratch: ScratchPool,
    tables: Tables,
}

impl Operator for RandomResizedCrop {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![infer_resized(&inputs[0], &self.attributes, self.attributes.known_size())?])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.attributes.output_dtype(desc.dtype)?;
        self.crop.begin(inputs.first_sample());
        self.jobs = inputs.map(|sample| {
            let geometry = Geometry::new(sample.input(0)?.shape, desc.layout)?;
            let Window { anchor, extent } = self.crop.window(sample.index, &geometry.size)?;
            let part = [0, 1].map(|d| (anchor[d] as usize, anchor[d] as usize + extent[d]));
            self.attributes.job(&sample, geometry, desc.dtype, desc.layout, Some(part)).map(Some)
        });
        Ok(vec![BatchDesc::new(dtype, layout_of(desc), output_shapes(desc, &self.jobs))])
    }

    fn effort(&self, sample: usize) -> Effort {
        effort(&self.jobs, sample)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let (job, watch) = (job(&self.jobs, sample.index())?, cx.watch(failures, sample.index()));
            let (input, output) = sample.unary()?;
            self.scratch.with(|scratch| job.run(&input, output, scratch, &watch))
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        gpu::prepare(gpu, &inputs[0], &self.attributes, false)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let to = self.attributes.output_dtype(io.inputs().desc(0)?.dtype)?;
        gpu::run(cx, io, &self.jobs, to, &mut self.tables)
    }
}
