//! Operators that see images and volumes through an affine map: [`affine`] and [`rotate`] say which ([`Placement`]),
//! [`Warp`] does it.

pub(in crate::ops) mod affine;
mod gpu;
pub(in crate::ops) mod perspective;
pub(in crate::ops) mod rotate;

pub(in crate::ops) use gpu::kernels;

use std::sync::Arc;

use crate::cpu::warp::{self, Map, Pixels, Sampling, warp};
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::layouts;
use crate::operator::{Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Layout, Shape, ValueType};

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 4] = ["HWC", "FHWC", "DHWC", "FDHWC"];

/// Largest extent of an output: float32 holds every integer up to here.
const MAX_EXTENT: f32 = 16_777_216.0;

/// Arguments of all of them.
const ARGS: &[ArgSpec] = &[
    ArgSpec::floats("size", "height and width of the output, depth first for volumes; empty: the input's, for a rotation what holds all of it").tensor().or_floats(&[]),
    ArgSpec::float("fill_value", "value outside of the input").or_computed("the edge of the input"),
    ArgSpec::interp_type("interp_type", "0 nearest neighbour, 1 linear").or_int(1),
    ArgSpec::dtype("dtype", "element type of the output").or_computed("the input's"),
    ArgSpec::dtype("output_dtype", "the same, in files of DALI before 1.0").deprecated(),
];

/// Where the map of an operator comes from. Sizes are in the order of the layout: height before width, after depth.
trait Placement: Send {
    /// The size of the output for an input of size `from` when the file does not give it.
    fn extents(&self, _sample: &SampleInputs<'_>, from: &[usize]) -> Result<Extents> {
        Ok(Extents::of(from))
    }

    /// From places in the output, of size `to`, to places in the input, of size `from`.
    fn map(&self, sample: &SampleInputs<'_>, from: &[usize], to: &[usize]) -> Result<Map>;

    /// Whether [`Placement::extents`] are the input's.
    fn keeps_size(&self) -> bool;
}

/// The size that an output must have at least, and where it is odd.
#[derive(Debug, Clone, Default)]
struct Extents {
    least: Vec<usize>,
    is_odd: Vec<bool>,
}

impl Extents {
    /// This very size.
    fn of(size: &[usize]) -> Self {
        Self { least: size.to_vec(), is_odd: size.iter().map(|extent| extent % 2 == 1).collect() }
    }

    /// The size of the frames of a sequence: what holds all of them, odd where most of them are.
    fn together(frames: &[Self]) -> Vec<usize> {
        let dimensions = frames.iter().map(|frame| frame.least.len()).max().unwrap_or_default();
        let extent = |d: usize| {
            let least =
                frames.iter().filter_map(|frame| frame.least.get(d)).max().copied().unwrap_or_default();
            let odd = frames.iter().filter(|frame| frame.is_odd.get(d) == Some(&true)).count();
            least + usize::from((least % 2 == 1) != (2 * odd > frames.len()))
        };
        (0..dimensions).map(extent).collect()
    }
}

struct Warp<P> {
    placement: P,
    size: Option<Arg>,
    fill: Option<f32>,
    sampling: Sampling,
    dtype: Option<DType>,
    jobs: Vec<Option<Job>>,
}

/// One sample's work.
#[derive(Debug, Clone)]
struct Job {
    /// Images or volumes in the sample.
    planes: usize,
    /// Sizes along x, y and z.
    from: [usize; 3],
    to: [usize; 3],
    channels: usize,
    map: Map,
    is_volume: bool,
}

fn build<P: Placement + 'static>(placement: P, args: &Args) -> Result<Box<dyn Operator>> {
    let sampling = match args.int("interp_type")? {
        1 => Sampling::Linear,
        0 => Sampling::Nearest,
        other => {
            return Err(Error::unsupported(format!("argument `interp_type` is {other}, expected 0 or 1")));
        }
    };
    Ok(Box::new(Warp {
        placement,
        size: args.given_arg("size")?,
        fill: args.given_float("fill_value")?,
        sampling,
        dtype: args.given_dtype("dtype")?.or(args.given_dtype("output_dtype")?),
        jobs: Vec::new(),
    }))
}

/// The type of the output for an input of type `from`.
fn output_dtype(from: DType, wanted: Option<DType>) -> Result<DType> {
    const TYPES: [DType; 4] = [DType::U8, DType::I16, DType::I32, DType::F32];
    let to = wanted.unwrap_or(from);
    let between = from == to || from == DType::F32 || to == DType::F32;
    if between && TYPES.contains(&from) && TYPES.contains(&to) {
        return Ok(to);
    }
    Err(Error::unsupported(format!(
        "from {from} to {to}, expected uint8, int16, int32 or float32 to itself, or to or from float32"
    )))
}

impl<P: Placement> Warp<P> {
    /// The dimensions of a sample before those of its images, its channels aside, and of those.
    fn split(shape: &Shape, layout: Layout) -> Result<(&[usize], &[usize], usize)> {
        let spatial = if layout.find(b'D').is_some() { 3 } else { 2 };
        match shape.split_last().filter(|(_, dims)| dims.len() >= spatial) {
            Some((&channels, dims)) => {
                let (planes, from) = dims.split_at(dims.len() - spatial);
                Ok((planes, from, channels))
            }
            None => Err(Error::invalid(format!("a sample of shape {shape} for the layout `{layout}`"))),
        }
    }

    fn extents(&self, sample: &SampleInputs<'_>, layout: Layout) -> Result<Extents> {
        let (_, from, _) = Self::split(sample.input(0)?.shape, layout)?;
        match &self.size {
            Some(size) => {
                Ok(Extents::of(&explicit(&size.floats(sample)?, from.len(), size.known().is_some())?))
            }
            None => self.placement.extents(sample, from),
        }
    }

    fn job(&self, sample: &SampleInputs<'_>, layout: Layout, to: &[usize]) -> Result<Job> {
        let shape = sample.input(0)?.shape;
        let (planes, from, channels) = Self::split(shape, layout)?;
        let map = self.placement.map(sample, from, to)?;
        if from.contains(&0) && !to.contains(&0) {
            return Err(Error::invalid(format!("an image of shape {shape} has no pixels to show")));
        }
        let spatial = from.len();
        let is_volume = spatial == 3;
        let xyz =
            |size: &[usize]| [size[spatial - 1], size[spatial - 2], if is_volume { size[0] } else { 1 }];
        let planes = planes.iter().product();
        Ok(Job { planes, from: xyz(from), to: xyz(to), channels, map, is_volume })
    }

    /// The output of a sample of shape `input`.
    fn shape(input: &Shape, job: Option<&Job>) -> Shape {
        let Some(job) = job else { return Shape::new(vec![0; input.len()]) };
        let mut dims = input.to_vec();
        let last = dims.len() - 1;
        let axes = if job.is_volume { 3 } else { 2 };
        for (axis, extent) in (0..axes).zip(job.to) {
            dims[last - 1 - axis] = extent;
        }
        Shape::new(dims)
    }
}

/// The argument `size`: rounded when it is fixed, else without its fraction.
fn explicit(size: &[f32], spatial: usize, is_fixed: bool) -> Result<Vec<usize>> {
    if size.len() != spatial {
        return Err(Error::invalid(format!("argument `size` has {} values, expected {spatial}", size.len())));
    }
    let extent = |&size: &f32| {
        let size = if is_fixed { size.round() } else { size.trunc() };
        if (1.0..=MAX_EXTENT).contains(&size) {
            return Ok(size as usize);
        }
        Err(Error::invalid(format!("argument `size` holds {size}, expected 1 to {MAX_EXTENT}")))
    };
    size.iter().map(extent).collect()
}

fn job(jobs: &[Option<Job>], index: usize) -> Result<&Job> {
    jobs.get(index).and_then(Option::as_ref).ok_or_else(|| Error::internal("a live sample has no map"))
}

impl<P: Placement> Operator for Warp<P> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|from| output_dtype(from, self.dtype)).transpose()?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?.or(ty.layout.filter(|layout| !layout.is_none()));
        let is_volume = ty.layout.map(|layout| layout.find(b'D').is_some());
        if self.size.is_none() && self.placement.keeps_size() {
            return Ok(vec![ty]);
        }
        let fixed = self.size.as_ref().and_then(Arg::known);
        match (ty.dims.as_mut(), is_volume) {
            (Some(dims), Some(is_volume)) => {
                let spatial = if is_volume { 3 } else { 2 };
                let last = dims.len().saturating_sub(1);
                let size = fixed.map(|size| size.iter().map(|&s| s as f32).collect::<Vec<f32>>());
                let size = size.map(|size| explicit(&size, spatial, true)).transpose()?;
                for axis in 0..spatial.min(last) {
                    let known = size.as_ref().and_then(|size| size.get(axis).copied());
                    dims[last - spatial.min(last) + axis] = known;
                }
            }
            (Some(dims), None) => {
                let last = dims.len().saturating_sub(1);
                dims[..last].fill(None);
            }
            (None, _) => {}
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.setup_frames(inputs, &vec![1; inputs.batch_size()])
    }

    fn setup_frames(&mut self, inputs: &Inputs<'_>, counts: &[usize]) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = output_dtype(desc.dtype, self.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        let extents = inputs.map(|sample| self.extents(&sample, layout));
        let (mut sizes, mut rest) = (Vec::with_capacity(extents.len()), extents.as_slice());
        for &count in counts {
            let (frames, others) = rest.split_at(count.min(rest.len()));
            rest = others;
            sizes.extend(vec![Extents::together(frames); frames.len()]);
        }
        self.jobs = inputs.map(|sample| {
            let size = sizes.get(sample.index).ok_or_else(|| Error::internal("a frame of no sequence"))?;
            self.job(&sample, layout, size).map(Some)
        });
        let shapes = desc.shapes.iter().zip(&self.jobs);
        let shapes = shapes.map(|(input, job)| Self::shape(input, job.as_ref())).collect();
        Ok(vec![BatchDesc::new(dtype, layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.jobs.get(sample).and_then(Option::as_ref).map_or_else(Effort::default, |job| {
            let pixels = job.to.iter().fold(job.planes, |pixels, &extent| pixels.saturating_mul(extent));
            warp::effort(pixels, job.channels, self.sampling, job.is_volume)
        })
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (from, failures) = (io.inputs().desc(0)?.dtype, io.inputs().failures());
        let (jobs, sampling, fill) = (&self.jobs, self.sampling, self.fill);
        macro_rules! run {
            ($from:ty, $to:ty) => {
                io.for_each_sample(cx, |sample| {
                    let (job, watch) = (job(jobs, sample.index())?, cx.watch(failures, sample.index()));
                    let (input, output) = sample.unary()?;
                    let (src, dst) = (input.as_slice::<$from>()?, output.as_slice_mut::<$to>()?);
                    let [source, target] =
                        [job.from, job.to].map(|size| size.iter().product::<usize>() * job.channels);
                    if target == 0 {
                        return Ok(());
                    }
                    for (values, dst) in src.chunks_exact(source).zip(dst.chunks_exact_mut(target)) {
                        let source = Pixels { values, size: job.from, channels: job.channels };
                        warp(source, dst, job.to, &job.map, sampling, fill, job.is_volume, &watch)?;
                    }
                    Ok(())
                })
            };
        }
        match (from, output_dtype(from, self.dtype)?) {
            (DType::U8, DType::U8) => run!(u8, u8),
            (DType::U8, DType::F32) => run!(u8, f32),
            (DType::F32, DType::U8) => run!(f32, u8),
            (DType::I16, DType::I16) => run!(i16, i16),
            (DType::I16, DType::F32) => run!(i16, f32),
            (DType::F32, DType::I16) => run!(f32, i16),
            (DType::I32, DType::I32) => run!(i32, i32),
            (DType::I32, DType::F32) => run!(i32, f32),
            (DType::F32, DType::I32) => run!(f32, i32),
            (DType::F32, DType::F32) => run!(f32, f32),
            (from, to) => Err(Error::internal(format!("a warp from {from} to {to} was not planned"))),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let layout = inputs[0].layout.filter(|layout| !layout.is_none());
        let (Some(from), Some(layout)) = (inputs[0].dtype, layout) else { return Ok(()) };
        let is_volume = layout.find(b'D').is_some();
        gpu.kernel(&gpu::kernel(from, output_dtype(from, self.dtype)?, self.sampling, is_volume)).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        gpu::run(cx, io, &self.jobs, output_dtype(from, self.dtype)?, self.sampling, self.fill)
    }
}
