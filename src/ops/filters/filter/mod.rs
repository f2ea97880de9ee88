//! `Filter`: every element becomes a sum of its neighbours, weighted by a rectangle that comes as an input.

mod gpu;

use std::sync::Arc;

use multiversion::multiversion;

use super::spatial::{Spatial, output_dtype};
use crate::cpu::convert::ConvertSat;
use crate::cpu::convolve::{NEAR, Padded, correlate};
use crate::cpu::window::{Border, Outside, WindowCopy};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType, View};

struct Filter {
    /// Which element of the rectangle lies on the one written; -1: the middle one.
    anchor: Arg,
    /// What lies outside of the input.
    outside: Outside,
    /// Whether only elements are written whose rectangle lies inside of the input.
    is_valid: bool,
    dtype: Option<DType>,
    jobs: Vec<Option<Job>>,
    /// Bytes of an element that is read.
    element: usize,
}

/// One sample's work. Pairs are rows and columns.
#[derive(Debug, Clone, PartialEq)]
struct Job {
    planes: usize,
    channels: usize,
    from: [usize; 2],
    to: [usize; 2],
    weights: [usize; 2],
    /// How far the rectangle lies before the element written.
    before: [usize; 2],
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Filter",
    aliases: &["experimental__Filter"],
    doc: "Correlates images with a rectangle of weights",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (2, 3),
    args: &[
        ArgSpec::ints("anchor", "row and column of the weights that lie on the output, -1: the middle")
            .tensor()
            .per_frame()
            .or_ints(&[-1]),
        ArgSpec::string("border", "`reflect_101`, `reflect_1001`, `clamp`, `wrap` or `constant`")
            .or_string("reflect_101"),
        ArgSpec::string("mode", "`same` size or `valid`: without what needs the border").or_string("same"),
        ArgSpec::dtype("dtype", "element type of the output: float32 or the input's")
            .or_computed("the input's"),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let outside = match args.string("border")? {
        "reflect_101" | "101" => Outside::Border(Border::Reflect101),
        "reflect_1001" | "1001" | "reflect" => Outside::Border(Border::Reflect1001),
        "clamp" | "edge" => Outside::Border(Border::Clamp),
        "wrap" => Outside::Border(Border::Wrap),
        "constant" | "fill" | "pad" => Outside::Fill,
        other => {
            return Err(Error::invalid(format!(
                "argument `border` is `{other}`, expected `reflect_101`, `reflect_1001`, `clamp`, `wrap` or `constant`"
            )));
        }
    };
    let is_valid = match args.string("mode")? {
        "same" => false,
        "valid" => true,
        other => {
            return Err(Error::invalid(format!("argument `mode` is `{other}`, expected `same` or `valid`")));
        }
    };
    Ok(Box::new(Filter {
        anchor: args.arg("anchor")?,
        outside,
        is_valid,
        dtype: args.given_dtype("dtype")?,
        jobs: Vec::new(),
        element: 0,
    }))
}

/// The type of the output.
fn output(from: DType, wanted: Option<DType>) -> Result<DType> {
    dtypes::accepted("images", from, &[DType::U8, DType::U16, DType::I16, DType::F32])?;
    output_dtype(from, wanted)
}

/// The two dimensions that are filtered.
fn image(layout: Layout, ndim: usize) -> Result<Spatial> {
    Spatial::new(layout, ndim).and_then(|spatial| match spatial.axes {
        2 => Ok(spatial),
        axes => Err(Error::unsupported(format!(
            "{axes} dimensions to filter, expected 2: the layout must say which are channels"
        ))),
    })
}

impl Filter {
    fn job(&self, sample: &SampleInputs<'_>, inputs: usize) -> Result<Job> {
        let (input, weights) = (sample.input(0)?, sample.input(1)?);
        let spatial = image(input.layout, input.shape.len())?;
        let weights = match weights.shape[..] {
            [rows, columns] if weights.dtype == DType::F32 && rows > 0 && columns > 0 => [rows, columns],
            _ => {
                return Err(Error::invalid(format!(
                    "weights of type {} and shape {}, expected a float32 matrix",
                    weights.dtype, weights.shape
                )));
            }
        };
        if inputs == 3 {
            let fill = sample.input(2)?;
            if fill.dtype != input.dtype || fill.shape.volume()? != 1 {
                return Err(Error::invalid(format!(
                    "a fill value of type {} and shape {}, expected one {}",
                    fill.dtype, fill.shape, input.dtype
                )));
            }
        }
        if weights[0].saturating_mul(weights[1]) > limits::MAX_FILTER_WEIGHTS {
            return Err(Error::invalid(format!(
                "{weights:?} weights, expected at most {} in all",
                limits::MAX_FILTER_WEIGHTS
            )));
        }
        let anchor = super::spatial::per_axis("anchor", &self.anchor.ints(sample)?, 2)?;
        let mut job = Job {
            planes: input.shape[..spatial.start].iter().product(),
            channels: input.shape[spatial.range().end..].iter().product(),
            from: [input.shape[spatial.start], input.shape[spatial.start + 1]],
            to: [0; 2],
            weights,
            before: [0; 2],
        };
        for i in 0..2 {
            let weights = weights[i];
            if !(-1..weights as i64).contains(&anchor[i]) {
                return Err(Error::invalid(format!(
                    "the anchor {} lies outside of {weights} weights",
                    anchor[i]
                )));
            }
            if self.is_valid {
                job.to[i] = (job.from[i] + 1).checked_sub(weights).ok_or_else(|| {
                    Error::invalid(format!(
                        "{weights} weights are more than an image of {} pixels",
                        job.from[i]
                    ))
                })?;
            } else {
                job.to[i] = job.from[i];
                job.before[i] = if anchor[i] < 0 { weights / 2 } else { anchor[i] as usize };
            }
        }
        let padded = [0, 1].map(|i| job.to[i].saturating_add(job.weights[i] - 1));
        let elements = padded[0].checked_mul(padded[1]).and_then(|pixels| pixels.checked_mul(job.channels));
        match elements {
            Some(elements) if elements <= limits::MAX_FILTERED_ELEMENTS => Ok(job),
            _ => Err(Error::invalid(format!(
                "an image of {padded:?} pixels with its border, expected at most {} elements",
                limits::MAX_FILTERED_ELEMENTS
            ))),
        }
    }
}

/// Nanoseconds of an element and one weight.
const WEIGHT_TIME: f64 = 0.15;
/// Bytes of a weight and where it lies.
const WEIGHT_BYTES: usize = 24;
/// Elements that are summed up in the time of one that is worked on alone.
const SUMMED_AT_ONCE: usize = 8;

impl Job {
    /// What it takes, from elements of so many bytes.
    fn effort(&self, element: usize) -> Effort {
        let [rows, columns] = self.weights;
        let written = self.planes as f64 * (self.to[0] * self.to[1] * self.channels) as f64;
        let padded = [0, 1].map(|i| self.to[i] + self.weights[i]);
        // Rows as they lie under the weights, as float32.
        let under = rows * (padded[1].min(NEAR) * self.channels + columns * self.channels) * size_of::<f32>();
        let scratch = padded[0] * padded[1] * self.channels * element + under + rows * columns * WEIGHT_BYTES;
        Effort::new(written * ((rows * columns) as f64 * WEIGHT_TIME + 1.0), scratch)
    }

    /// Filters one sample with values outside of it where those are wanted.
    fn run<S, T>(
        &self,
        src: &[S],
        dst: &mut [T],
        weights: &[f32],
        (outside, fill): (Outside, S),
        watch: &Watch<'_>,
    ) -> Result<()>
    where
        S: Element + ConvertSat<f32>,
        T: Element,
        f32: ConvertSat<T>,
    {
        let Self { channels, from, to, .. } = *self;
        let padded = [0, 1].map(|i| to[i] + self.weights[i] - 1);
        let anchor = [-(self.before[0] as i64), -(self.before[1] as i64), 0];
        let shape = |size: [usize; 2]| [size[0], size[1], channels];
        let copy = WindowCopy::new(&shape(from), &anchor, &shape(padded), outside)?;
        let size = |size: [usize; 2]| size[0] * size[1] * channels;
        if size(to) == 0 {
            return Ok(());
        }
        let mut values = vec![fill; size(padded)];
        for (src, dst) in src.chunks_exact(size(from)).zip(dst.chunks_exact_mut(size(to))) {
            copy.copy(src, &mut values)?;
            let source = Padded { values: &values, pitch: padded[1] * channels, channels };
            let width = to[1] * channels;
            correlate(source, width, weights, self.weights[1], |at, sums| {
                if let Some(dst) = dst.get_mut(at..at + sums.len()) {
                    store(sums, dst);
                }
                watch.charge(sums.len().saturating_mul(weights.len()) / SUMMED_AT_ONCE)
            })?;
        }
        Ok(())
    }
}

#[multiversion(targets("x86_64+avx+avx2"))]
fn store<T: Element>(sums: &[f32], dst: &mut [T])
where
    f32: ConvertSat<T>,
{
    for (to, sum) in dst.iter_mut().zip(sums) {
        // Halves go to the even neighbour, unlike elsewhere on the host.
        *to = if T::DTYPE == DType::F32 { *sum } else { sum.round_ties_even() }.convert_sat();
    }
}

fn job_of(jobs: &[Option<Job>], index: usize) -> Result<&Job> {
    jobs.get(index).and_then(Option::as_ref).ok_or_else(|| Error::internal("a live sample was not planned"))
}

/// The value outside of an image, 0 where no input gives it.
fn fill<S: Element>(view: Option<View<'_>>) -> Result<S> {
    Ok(view
        .map(|view| view.as_slice::<S>())
        .transpose()?
        .and_then(|v| v.first().copied())
        .unwrap_or_default())
}

impl Operator for Filter {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|from| output(from, self.dtype)).transpose()?;
        if let (Some(layout), Some(dims)) = (ty.layout, &mut ty.dims) {
            let spatial = image(layout, dims.len())?;
            if self.is_valid {
                dims[spatial.range()].fill(None);
            }
        } else if self.is_valid {
            ty.dims = ty.dims.map(|dims| vec![None; dims.len()]);
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = output(desc.dtype, self.dtype)?;
        self.element = desc.dtype.size();
        self.jobs = inputs.map(|sample| self.job(&sample, inputs.len()).map(Some));
        let shapes = desc.shapes.iter().zip(&self.jobs).map(|(shape, job)| {
            let mut dims = shape.to_vec();
            match (job, image(desc.layout, dims.len())) {
                (Some(job), Ok(spatial)) => dims[spatial.range()].copy_from_slice(&job.to),
                _ => dims.fill(0),
            }
            Shape::new(dims)
        });
        Ok(vec![BatchDesc::new(dtype, desc.layout, shapes.collect())])
    }

    fn effort(&self, sample: usize) -> Effort {
        let job = self.jobs.get(sample).and_then(Option::as_ref);
        job.map_or_else(Effort::default, |job| job.effort(self.element))
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (jobs, outside, failures) = (&self.jobs, self.outside, io.inputs().failures());
        let has_fill = io.inputs().len() == 3;
        macro_rules! run {
            ($from:ty, $to:ty) => {
                io.for_each_sample(cx, |sample| {
                    let job = job_of(jobs, sample.index())?;
                    let watch = cx.watch(failures, sample.index());
                    let weights = sample.input(1)?;
                    let fill = fill(if has_fill { Some(sample.input(2)?) } else { None })?;
                    let (input, output) = sample.unary()?;
                    let (src, dst) = (input.as_slice::<$from>()?, output.as_slice_mut::<$to>()?);
                    job.run(src, dst, weights.as_slice()?, (outside, fill), &watch)
                })
            };
        }
        let from = io.inputs().desc(0)?.dtype;
        match (from, output(from, self.dtype)?) {
            (DType::U8, DType::F32) => run!(u8, f32),
            (DType::U8, _) => run!(u8, u8),
            (DType::U16, DType::F32) => run!(u16, f32),
            (DType::U16, _) => run!(u16, u16),
            (DType::I16, DType::F32) => run!(i16, f32),
            (DType::I16, _) => run!(i16, i16),
            _ => run!(f32, f32),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        gpu.kernel(&gpu::kernel(from, output(from, self.dtype)?)).map(drop)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        gpu::run(cx, io, &self.jobs, output(from, self.dtype)?, self.outside)
    }
}
