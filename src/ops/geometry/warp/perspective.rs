//! `experimental__WarpPerspective`: an image seen through the projective map that a matrix gives.

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::cpu::perspective::{Border, Matrix, Sampling, View, inverse};
use crate::cpu::resample::Output;
use crate::cpu::warp::Pixels;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::args::numbers;
use crate::operator::shared::border::DeviceBorder;
use crate::operator::shared::{dtypes, layouts};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, SampleIo,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

use super::explicit;

/// Layouts of the images, the one of samples without a layout first.
const LAYOUTS: [&str; 5] = ["HW", "HWC", "CHW", "FHWC", "FCHW"];

/// Most channels of an image.
const MAX_CHANNELS: usize = 4;

struct WarpPerspective {
    /// The argument; the second input when there is none.
    matrix: Option<Arg>,
    /// Whether the matrix leads from the output to the input.
    inverse_map: bool,
    /// Whether coordinates are 0 at the corner of the first pixel, not at its center.
    from_corner: bool,
    size: Option<Arg>,
    fill: Vec<f32>,
    border: Border,
    sampling: Sampling,
    jobs: Vec<Option<Job>>,
    efforts: Vec<Effort>,
}

/// One sample's work.
#[derive(Debug, Clone)]
struct Job {
    matrix: Matrix,
    /// Width and height.
    from: [usize; 2],
    to: [usize; 2],
    /// Channels that are neighbours, and images one behind the other of which as many make a frame.
    channels: usize,
    planes: usize,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "experimental__WarpPerspective",
    doc: "A projective transformation of images",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 2),
    args: &[
        ArgSpec::floats("matrix", "of 3 x 3 elements, from places in the output to those in the input")
            .tensor()
            .per_frame()
            .or_floats(&[]),
        ArgSpec::bool("inverse_map", "whether it leads from the output to the input").or_bool(true),
        ArgSpec::string("pixel_origin", "where coordinates begin in the first pixel: `corner` or `center`")
            .or_string("corner"),
        ArgSpec::floats("size", "height and width of the output; empty: the input's").tensor().or_floats(&[]),
        ArgSpec::string(
            "border_mode",
            "what is outside: `constant`, `replicate`, `reflect`, `reflect_101` or `wrap`",
        )
        .or_string("constant"),
        ArgSpec::floats("fill_value", "a value outside, or one for each channel; empty: 0").or_floats(&[]),
        ArgSpec::interp_type("interp_type", "0 nearest neighbour, 1 linear, 2 cubic").or_int(1),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    host_inputs: Some(1),
    sequences: true,
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let wrong = |name, value: &str, expected| {
        Error::invalid(format!("argument `{name}` is `{value}`, expected {expected}"))
    };
    let matrix = args.given_arg("matrix")?;
    if matrix.is_some() == (inputs == 2) {
        return Err(Error::invalid("expected one matrix: the argument `matrix` or the second input"));
    }
    let border = match args.string("border_mode")? {
        "constant" => Border::Constant,
        "replicate" => Border::Replicate,
        "reflect" => Border::Reflect,
        "reflect_101" => Border::Reflect101,
        "wrap" => Border::Wrap,
        other => {
            let expected = "`constant`, `replicate`, `reflect`, `reflect_101` or `wrap`";
            return Err(wrong("border_mode", other, expected));
        }
    };
    let from_corner = match args.string("pixel_origin")? {
        "corner" => true,
        "center" => false,
        other => return Err(wrong("pixel_origin", other, "`corner` or `center`")),
    };
    let sampling = match args.int("interp_type")? {
        1 => Sampling::Linear,
        0 => Sampling::Nearest,
        2 => Sampling::Cubic,
        other => {
            return Err(Error::unsupported(format!("argument `interp_type` is {other}, expected 0, 1 or 2")));
        }
    };
    Ok(Box::new(WarpPerspective {
        matrix,
        inverse_map: args.bool("inverse_map")?,
        from_corner,
        size: args.given_arg("size")?,
        fill: args.floats("fill_value")?,
        border,
        sampling,
        jobs: Vec::new(),
        efforts: Vec::new(),
    }))
}

/// Height and width: one value is both.
fn both(size: &[f32]) -> Vec<f32> {
    if let [all] = size { vec![*all; 2] } else { size.to_vec() }
}

fn check(dtype: DType) -> Result<()> {
    dtypes::accepted("images", dtype, &[DType::U8, DType::I16, DType::U16, DType::F32])
}

impl WarpPerspective {
    fn matrix(&self, sample: &SampleInputs<'_>) -> Result<Matrix> {
        let values = match &self.matrix {
            Some(matrix) => matrix.numbers(sample)?,
            None => numbers(&sample.input(1)?)?,
        };
        let ([a, b, c], []) = values.as_chunks::<3>() else {
            return Err(Error::invalid(format!("a matrix of {} elements, expected 9", values.len())));
        };
        let matrix = [*a, *b, *c].map(|row| row.map(|value| value as f32));
        let matrix = if self.from_corner { centered(&matrix) } else { matrix };
        let matrix = matrix.map(|row| row.map(f64::from));
        // As in OpenCV, a matrix without an inverse shows one place everywhere.
        Ok(if self.inverse_map { matrix } else { inverse(&matrix).unwrap_or_default() })
    }

    fn job(&self, sample: &SampleInputs<'_>, layout: Layout) -> Result<Job> {
        let shape = sample.input(0)?.shape;
        let rows = rows(layout);
        let channels = shape[rows + 2..].iter().product();
        let all = layout.find(b'C').and_then(|axis| shape.get(axis)).copied().unwrap_or(1);
        if !(1..=MAX_CHANNELS).contains(&all) || !(self.fill.len() <= 1 || self.fill.len() == all) {
            return Err(Error::invalid(format!(
                "an image of {all} channels with {} fill values, expected 1 to {MAX_CHANNELS} channels and as many values or one",
                self.fill.len()
            )));
        }
        let from = [shape[rows], shape[rows + 1]];
        let to = match &self.size {
            Some(size) => explicit(&both(&size.floats(sample)?), 2, true)?,
            None => from.to_vec(),
        };
        if from.contains(&0) {
            return Err(Error::invalid(format!("an image of shape {shape} has no pixels to show")));
        }
        Ok(Job {
            matrix: self.matrix(sample)?,
            from: [from[1], from[0]],
            to: [to[1], to[0]],
            channels,
            planes: if channels == all { 1 } else { all },
        })
    }

    /// What is outside, for each channel.
    fn filled<T>(&self) -> [T; MAX_CHANNELS]
    where
        f32: ConvertSat<T>,
    {
        std::array::from_fn(|c| {
            self.fill.get(if self.fill.len() == 1 { 0 } else { c }).copied().unwrap_or(0.0).convert_sat()
        })
    }

    fn run<T: Output + ConvertSat<f32>>(&self, sample: &mut SampleIo<'_>, watch: &Watch<'_>) -> Result<()>
    where
        f32: ConvertSat<T>,
    {
        let job = job(&self.jobs, sample.index())?;
        let (input, output) = sample.unary()?;
        let fill = self.filled::<T>();
        let [source, target] = [job.from, job.to].map(|size| size[0] * size[1] * job.channels);
        let images = input.as_slice::<T>()?.chunks_exact(source);
        for (i, (values, dst)) in images.zip(output.as_slice_mut()?.chunks_exact_mut(target)).enumerate() {
            let source = Pixels { values, size: [job.from[0], job.from[1], 1], channels: job.channels };
            let view = View {
                source,
                sampling: self.sampling,
                border: self.border,
                fill: &fill[i % job.planes..],
                is_coarse: is_coarse(T::DTYPE, job),
            };
            view.run(&job.matrix, dst, job.to[0], watch)?;
        }
        Ok(())
    }
}

fn job(jobs: &[Option<Job>], index: usize) -> Result<&Job> {
    jobs.get(index).and_then(Option::as_ref).ok_or_else(|| Error::internal("a live sample has no map"))
}

/// Whether OpenCV has no code of its own for such images: their places lie on a grid.
fn is_coarse(dtype: DType, job: &Job) -> bool {
    dtype == DType::I16 || job.channels == 2
}

/// The map with the same effect for coordinates that are 0 at the center of the first pixel, in float32 as in DALI.
fn centered(matrix: &[[f32; 3]; 3]) -> [[f32; 3]; 3] {
    let moved = matrix.map(|[x, y, w]| [x, y, 0.5 * x + 0.5 * y + w]);
    let [x, y, w] = moved;
    [std::array::from_fn(|k| x[k] - 0.5 * w[k]), std::array::from_fn(|k| y[k] - 0.5 * w[k]), w]
}

/// The dimension of the rows.
fn rows(layout: Layout) -> usize {
    layout.find(b'H').unwrap_or_default()
}

impl Operator for WarpPerspective {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype.map_or(Ok(()), check)?;
        ty.layout = layouts::of_type(&ty, &LAYOUTS)?;
        if let (Some(size), Some(dims)) = (&self.size, &mut ty.dims) {
            let known = size.known().map(|size| size.iter().map(|&s| s as f32).collect::<Vec<f32>>());
            let known = known.map(|size| explicit(&both(&size), 2, true)).transpose()?;
            match ty.layout {
                None => dims.fill(None),
                Some(layout) => {
                    for (d, extent) in dims.iter_mut().skip(rows(layout)).take(2).enumerate() {
                        *extent = known.as_ref().and_then(|size| size.get(d).copied());
                    }
                }
            }
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        let layout = layouts::of_batch(desc, &LAYOUTS)?;
        self.jobs = inputs.map(|sample| self.job(&sample, layout).map(Some));
        let shapes = desc.shapes.iter().zip(&self.jobs).map(|(shape, job)| {
            let mut dims = shape.to_vec();
            match job {
                Some(job) => dims[rows(layout)..rows(layout) + 2].copy_from_slice(&[job.to[1], job.to[0]]),
                None => dims.fill(0),
            }
            Shape::from(dims)
        });
        let shapes: Vec<Shape> = shapes.collect();
        let nanoseconds = match self.sampling {
            Sampling::Nearest => 12.0,
            Sampling::Linear => 25.0,
            Sampling::Cubic => 80.0,
        };
        let elements = shapes.iter().map(|shape| shape.volume().unwrap_or(usize::MAX));
        self.efforts = elements.map(|elements| Effort::new(elements as f64 * nanoseconds, 0)).collect();
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (this, failures) = (&*self, io.inputs().failures());
        let watch = |sample: &SampleIo<'_>| cx.watch(failures, sample.index());
        match io.inputs().desc(0)?.dtype {
            DType::U8 => io.for_each_sample(cx, |sample| this.run::<u8>(sample, &watch(sample))),
            DType::I16 => io.for_each_sample(cx, |sample| this.run::<i16>(sample, &watch(sample))),
            DType::U16 => io.for_each_sample(cx, |sample| this.run::<u16>(sample, &watch(sample))),
            DType::F32 => io.for_each_sample(cx, |sample| this.run::<f32>(sample, &watch(sample))),
            other => check(other),
        }
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&kernel(dtype, self.sampling)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        let fill = match dtype {
            DType::U8 => self.filled::<u8>().map(f32::from),
            DType::I16 => self.filled::<i16>().map(f32::from),
            DType::U16 => self.filled::<u16>().map(f32::from),
            _ => self.filled::<f32>(),
        };
        let rows = io.rows(|sample| {
            let job = job(&self.jobs, sample.index())?;
            let (target, source) = (sample.target(0)?, sample.source(0)?);
            let [from, to] = [job.from, job.to].map(|size| size[0] * size[1] * job.channels * dtype.size());
            let row = |image: usize| Row {
                to: target + (image * to) as u64,
                from: source + (image * from) as u64,
                matrix: job.matrix,
                pixels: (job.to[0] * job.to[1]) as u64,
                source: job.from.map(|extent| extent as i32),
                width: job.to[0] as u32,
                channels: job.channels as u32,
                is_coarse: is_coarse(dtype, job).into(),
                border: DeviceBorder::from(self.border).number(),
                fill: std::array::from_fn(|c| fill[(image % job.planes + c) % MAX_CHANNELS]),
            };
            let images =
                sample.input(0)?.shape.volume()?.checked_div(job.from[0] * job.from[1] * job.channels);
            Ok((0..images.unwrap_or_default()).map(row).collect::<Vec<Row>>())
        });
        let rows = rows.concat();
        let most = rows.iter().map(|row| row.pixels).max().unwrap_or_default();
        cx.launch(&kernel(dtype, self.sampling), most as usize, &NoParams::default(), &rows)
    }
}

device_struct! {
    /// An image, as `kernels/perspective.cu` sees it.
    struct Row as Row {
        to: u64 = "ELEMENT *",
        from: u64 = "const ELEMENT *",
        matrix: Matrix,
        pixels: u64,
        /// columns, rows
        source: [i32; 2],
        /// of the output
        width: u32,
        channels: u32,
        /// places lie on a grid
        is_coarse: u32,
        border: u32 = "Border" of DeviceBorder,
        /// for each channel, as an element holds it
        fill: [f32; MAX_CHANNELS],
    }
}

fn kernel(dtype: DType, sampling: Sampling) -> KernelSpec {
    let number = match sampling {
        Sampling::Nearest => 0,
        Sampling::Linear => 1,
        Sampling::Cubic => 2,
    };
    KernelSpec::of::<Row, NoParams>("perspective", "perspective")
        .dtype("ELEMENT", dtype)
        .define("SAMPLING", number)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    let all = [Sampling::Nearest, Sampling::Linear, Sampling::Cubic];
    all.map(|sampling| [kernel(DType::U8, sampling), kernel(DType::F32, sampling)]).concat()
}
