//! `MultiPaste`: regions of images on one black canvas, later ones above earlier ones.

mod gpu;

use std::sync::Arc;

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::layouts;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{Batch, BatchDesc, DType, Device, Element, Origins, Shape, ValueType};

/// Layouts of the images.
const LAYOUTS: [&str; 1] = ["HWC"];

/// Element types of images and canvas.
const TYPES: [DType; 4] = [DType::U8, DType::I16, DType::I32, DType::F32];

struct MultiPaste {
    in_ids: Option<Arg>,
    output_size: Option<Arg>,
    in_anchors: Corners,
    shapes: Corners,
    out_anchors: Corners,
    dtype: Option<DType>,
    jobs: Vec<Job>,
}

/// Pairs of y and x, one for each region: in pixels or relative to a size; neither is the default.
struct Corners {
    absolute: Option<Arg>,
    relative: Option<Arg>,
}

/// What one sample is made of.
#[derive(Debug, Clone, Default)]
struct Job {
    canvas: [usize; 2],
    channels: usize,
    regions: Vec<Region>,
}

/// A part of an image and where it goes; rows first.
#[derive(Debug, Clone)]
struct Region {
    /// Regular input, and sample of it.
    source: (usize, usize),
    from: [usize; 2],
    size: [usize; 2],
    to: [usize; 2],
}

/// As DALI.
const MAX_INPUTS: usize = 64;

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "MultiPaste",
    doc: "Regions of several images on one canvas",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, MAX_INPUTS),
    args: &[
        ArgSpec::ints("in_ids", "samples of the only input that are pasted")
            .tensor()
            .or_computed("each input's own"),
        ArgSpec::ints("output_size", "height and width of the canvas; more values are not looked at")
            .tensor()
            .or_computed("that of all images, which must be one size"),
        ArgSpec::int("in_anchors", "rows and columns where regions begin")
            .tensor()
            .per_frame()
            .or_computed("0"),
        ArgSpec::float("in_anchors_rel", "the same, relative to the image").tensor().per_frame(),
        ArgSpec::int("shapes", "heights and widths of regions")
            .tensor()
            .per_frame()
            .or_computed("to the end of the image"),
        ArgSpec::float("shapes_rel", "the same, relative to the image").tensor().per_frame(),
        ArgSpec::int("out_anchors", "rows and columns of the canvas where regions go")
            .tensor()
            .per_frame()
            .or_computed("0"),
        ArgSpec::float("out_anchors_rel", "the same, relative to the canvas").tensor().per_frame(),
        ArgSpec::dtype("dtype", "element type of the output").or_computed("the input's"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu::kernels],
    sequences: true,
    splits_inputs: true,
    reads_in_place: InputSet::All,
    mixes_samples: |args| args.has("in_ids"),
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let place = |absolute, relative| {
        if args.has(absolute) && args.has(relative) {
            let text = format!("arguments `{absolute}` and `{relative}` exclude each other");
            return Err(Error::invalid(text));
        }
        Ok(Corners { absolute: args.given_arg(absolute)?, relative: args.given_arg(relative)? })
    };
    if args.has("in_ids") && inputs != 1 {
        return Err(Error::invalid(format!("argument `in_ids` with {inputs} inputs, expected one")));
    }
    Ok(Box::new(MultiPaste {
        in_ids: args.given_arg("in_ids")?,
        output_size: args.given_arg("output_size")?,
        in_anchors: place("in_anchors", "in_anchors_rel")?,
        shapes: place("shapes", "shapes_rel")?,
        out_anchors: place("out_anchors", "out_anchors_rel")?,
        dtype: args.given_dtype("dtype")?,
        jobs: Vec::new(),
    }))
}

impl Corners {
    /// The pairs of `count` regions.
    fn pairs(&self, sample: &SampleInputs<'_>, count: usize) -> Result<Option<Pairs>> {
        let Some(arg) = self.absolute.as_ref().or(self.relative.as_ref()) else { return Ok(None) };
        let values = arg.floats(sample)?;
        let (pairs, rest) = values.as_chunks::<2>();
        if pairs.len() != count || !rest.is_empty() {
            return Err(Error::invalid(format!(
                "{} values for {count} regions, expected two for each",
                values.len()
            )));
        }
        Ok(Some(Pairs { values: pairs.to_vec(), is_relative: self.relative.is_some() }))
    }
}

/// The pairs of all regions of a sample.
struct Pairs {
    values: Vec<[f32; 2]>,
    is_relative: bool,
}

impl Pairs {
    /// The pair of region `i`, in an image of `size`; relative ones are rounded by `round`.
    fn of(
        pairs: &Option<Self>,
        i: usize,
        size: [usize; 2],
        round: fn(f32) -> f32,
    ) -> Result<Option<[usize; 2]>> {
        let Some(Self { values, is_relative }) = pairs else { return Ok(None) };
        let pixels = |d: usize| {
            let value = values[i][d];
            let value = if *is_relative { round(value * size[d] as f32) } else { value };
            if (0.0..=limits::MAX_SAMPLE_BYTES as f32).contains(&value) {
                return Ok(value as usize);
            }
            Err(Error::invalid(format!("a region at or of {value} pixels, expected 0 or more")))
        };
        Ok(Some([pixels(0)?, pixels(1)?]))
    }
}

/// Height, width and channels of an image.
fn extents(shape: &Shape) -> Result<([usize; 2], usize)> {
    match shape[..] {
        [height, width, channels] => Ok(([height, width], channels)),
        _ => Err(Error::invalid(format!("an image of shape {shape}, expected 3 dimensions"))),
    }
}

impl MultiPaste {
    fn output_dtype(&self, from: DType) -> Result<DType> {
        let to = self.dtype.unwrap_or(from);
        if TYPES.contains(&from) && TYPES.contains(&to) {
            return Ok(to);
        }
        Err(Error::unsupported(format!("from {from} to {to}, expected uint8, int16, int32 or float32")))
    }

    /// The images that a sample is made of: input and sample.
    fn sources(
        &self,
        sample: &SampleInputs<'_>,
        inputs: &Inputs<'_>,
        failed: &[bool],
    ) -> Result<Vec<(usize, usize)>> {
        let Some(ids) = &self.in_ids else {
            return Ok((0..inputs.len()).map(|input| (input, sample.index)).collect());
        };
        let samples = failed.len();
        let source = |&id: &i64| {
            let id = usize::try_from(id).ok().filter(|&id| id < samples);
            let id =
                id.ok_or_else(|| Error::invalid(format!("an image that is not in the batch of {samples}")))?;
            if failed[id] {
                return Err(Error::invalid(format!("image {id}, which is pasted, failed before")));
            }
            Ok((0, id))
        };
        ids.ints(sample)?.iter().map(source).collect()
    }

    /// The size of the canvas of `sample`.
    fn canvas(&self, sample: &SampleInputs<'_>, inputs: &Inputs<'_>) -> Result<[usize; 2]> {
        let Some(size) = &self.output_size else {
            let (size, _) = extents(sample.input(0)?.shape)?;
            for input in 0..inputs.len() {
                for shape in &inputs.desc(input)?.shapes {
                    if extents(shape)?.0 != size {
                        return Err(Error::invalid(format!(
                            "images of {size:?} and {shape} without an `output_size`, expected one size"
                        )));
                    }
                }
            }
            return Ok(size);
        };
        match size.ints(sample)?[..] {
            // What follows, such as channels, is not looked at, as in DALI.
            [height, width, ..] if height >= 0 && width >= 0 => Ok([height as usize, width as usize]),
            ref other => Err(Error::invalid(format!("argument `output_size` is {other:?}"))),
        }
    }

    fn job(&self, sample: &SampleInputs<'_>, inputs: &Inputs<'_>, failed: &[bool]) -> Result<Job> {
        let (_, channels) = extents(sample.input(0)?.shape)?;
        let mut job = Job { canvas: self.canvas(sample, inputs)?, channels, regions: Vec::new() };
        let sources = self.sources(sample, inputs, failed)?;
        if sources.len() > limits::MAX_REGIONS {
            return Err(Error::invalid(format!(
                "{} regions, expected at most {}",
                sources.len(),
                limits::MAX_REGIONS
            )));
        }
        let of = |place: &Corners| place.pairs(sample, sources.len());
        let (in_anchors, shapes, out_anchors) =
            (of(&self.in_anchors)?, of(&self.shapes)?, of(&self.out_anchors)?);
        for (i, &(input, id)) in sources.iter().enumerate() {
            let (size, found) = extents(&inputs.desc(input)?.shapes[id])?;
            if i == 0 {
                job.channels = found;
            }
            if found != job.channels {
                return Err(Error::invalid(format!("images of {} and {found} channels", job.channels)));
            }
            let from = Pairs::of(&in_anchors, i, size, f32::floor)?.unwrap_or_default();
            let rest = [0, 1].map(|d| size[d].saturating_sub(from[d]));
            let extent = Pairs::of(&shapes, i, size, f32::ceil)?.unwrap_or(rest);
            let to = Pairs::of(&out_anchors, i, job.canvas, f32::floor)?.unwrap_or_default();
            for d in 0..2 {
                if from[d] + extent[d] > size[d] || to[d] + extent[d] > job.canvas[d] {
                    return Err(Error::invalid(format!(
                        "a region of {extent:?} at {from:?} of {size:?} pixels goes to {to:?} of {:?}, expected it inside",
                        job.canvas
                    )));
                }
            }
            job.regions.push(Region { source: (input, id), from, size: extent, to });
        }
        Ok(job)
    }
}

/// Nanoseconds of a row of a region, and of an element.
const ROW_TIME: f64 = 10.0;
const ELEMENT_TIME: f64 = 0.5;

impl Job {
    /// What it takes: regions may all lie over one another.
    fn effort(&self) -> Effort {
        let of = |Region { size: [rows, columns], .. }: &Region| {
            *rows as f64 * (ROW_TIME + (columns * self.channels) as f64 * ELEMENT_TIME)
        };
        Effort::new(self.regions.iter().map(of).sum(), 0)
    }

    fn run<S: Element + ConvertSat<T>, T: Element>(
        &self,
        batches: &[&Batch<'_>],
        dst: &mut [T],
        watch: &Watch<'_>,
    ) -> Result<()> {
        dst.fill(T::default());
        for region in &self.regions {
            let image = batches[region.source.0].view(region.source.1);
            let (src, width, channels) = (image.as_slice::<S>()?, image.shape[1], self.channels);
            let len = region.size[1] * channels;
            for row in 0..region.size[0] {
                let from = ((region.from[0] + row) * width + region.from[1]) * channels;
                let to = ((region.to[0] + row) * self.canvas[1] + region.to[1]) * channels;
                convert_slice(&src[from..from + len], &mut dst[to..to + len]);
                watch.charge(len)?;
            }
        }
        Ok(())
    }
}

impl Operator for MultiPaste {
    fn origins(&self, inputs: &Inputs<'_>, _output: usize) -> Option<Origins> {
        let origin = |job: &Job| {
            let sources =
                job.regions.iter().map(|region| inputs.sample(region.source.1).origin(region.source.0));
            sources.filter(|origin| !origin.is_empty()).collect::<Vec<_>>().join(";").into()
        };
        Some(self.jobs.iter().map(origin).collect())
    }

    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|from| self.output_dtype(from)).transpose()?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        if let (Some(size), Some(dims)) = (&self.output_size, &mut ty.dims) {
            let known = size.known().filter(|size| size.len() >= 2);
            for (d, extent) in dims.iter_mut().take(2).enumerate() {
                *extent = known.map(|size| size[d] as usize);
            }
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.output_dtype(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        for input in 1..inputs.len() {
            let other = inputs.desc(input)?.dtype;
            if other != desc.dtype {
                return Err(Error::invalid(format!("images of types {} and {other}", desc.dtype)));
            }
        }
        let failures = inputs.failures();
        let failed: Vec<bool> = (0..inputs.batch_size()).map(|i| failures.get(i).is_some()).collect();
        self.jobs = inputs.map(|sample| self.job(&sample, inputs, &failed));
        let shape = |job: &Job| Shape::from([job.canvas[0], job.canvas[1], job.channels]);
        Ok(vec![BatchDesc::new(dtype, layout, self.jobs.iter().map(shape).collect())])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.jobs.get(sample).map_or_else(Effort::default, Job::effort)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (inputs, jobs) = (io.inputs(), &self.jobs);
        let batches = (0..inputs.len()).map(|i| inputs.batch(i)).collect::<Result<Vec<_>>>()?;
        macro_rules! run {
            ($S:ty, $to:expr) => {
                io.for_each_sample(cx, |sample| {
                    let job = &jobs[sample.index()];
                    let watch = &cx.watch(inputs.failures(), sample.index());
                    let output = sample.output(0)?;
                    match $to {
                        DType::U8 => job.run::<$S, u8>(&batches, output.as_slice_mut()?, watch),
                        DType::I16 => job.run::<$S, i16>(&batches, output.as_slice_mut()?, watch),
                        DType::I32 => job.run::<$S, i32>(&batches, output.as_slice_mut()?, watch),
                        _ => job.run::<$S, f32>(&batches, output.as_slice_mut()?, watch),
                    }
                })
            };
        }
        let from = inputs.desc(0)?.dtype;
        let to = self.output_dtype(from)?;
        match from {
            DType::U8 => run!(u8, to),
            DType::I16 => run!(i16, to),
            DType::I32 => run!(i32, to),
            _ => run!(f32, to),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        gpu.kernel(&gpu::kernel(from, self.output_dtype(from)?)).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        gpu::run(cx, io, &self.jobs, [from, self.output_dtype(from)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::args::Value;
    use crate::operator::testing::{args, batch, run};

    #[test]
    fn regions_outside_fail_their_sample() {
        let pixels = [1u8, 2, 3, 4];
        let images = || batch::<u8>(&[(&[2, 2, 1], &pixels), (&[2, 2, 1], &pixels)]);
        let given = args(&[("output_size", Value::Ints(vec![3, 3]))], &["in_ids", "out_anchors"]);
        let ids = || batch::<i32>(&[(&[1], &[1]), (&[1], &[0])]);
        let inside = batch::<i32>(&[(&[1, 2], &[1, 1]), (&[1, 2], &[2, 0])]);
        let done = run(&DEF, &given, &[images()], &[ids(), inside]).unwrap();
        assert_eq!(done.values::<u8>(0), [0, 0, 0, 0, 1, 2, 0, 3, 4]);
        assert!(done.error(1).contains("inside"), "{}", done.error(1));

        let far = batch::<i32>(&[(&[1, 2], &[i32::MAX, -1]), (&[1, 3], &[0, 0, 0])]);
        let done = run(&DEF, &given, &[images()], &[ids(), far]).unwrap();
        assert!(!done.error(0).is_empty() && done.error(1).contains("two for each"));

        let wrong = batch::<i32>(&[(&[1], &[-1]), (&[1], &[2])]);
        let zero = batch::<i32>(&[(&[1, 2], &[0, 0]), (&[1, 2], &[0, 0])]);
        let done = run(&DEF, &given, &[images()], &[wrong, zero]).unwrap();
        assert!(done.error(0).contains("batch of 2") && done.error(1).contains("batch of 2"));
    }
}
