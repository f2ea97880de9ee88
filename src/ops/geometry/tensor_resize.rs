//! `TensorResize`: `Resize` along any dimensions of a tensor, whatever the layout calls them.

use std::ops::Range;
use std::sync::Arc;

use super::resize::attributes::{ResizeAttributes, Target};
use super::resize::exact_gpu::Tables;
use super::resize::geometry::Geometry;
use super::resize::volume::VolumeJob;
use super::resize::{Job, ScratchPool, effort, gpu, volume_gpu};
use crate::cpu::resample::FilterSpec;
use crate::deadline::Effort;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::axes::Axes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct TensorResize {
    attributes: ResizeAttributes,
    sizes: Option<Arg>,
    /// Whether a size of 0 keeps the input's.
    stretches: bool,
    /// Whether all dimensions are scaled alike: in DALI also those that are not to be resized.
    keeps_ratio: bool,
    axes: Axes,
    /// Per sample: the work where up to two dimensions are resampled, and where three are. One of the two lists is used
    /// in a batch.
    images: Vec<Option<Job>>,
    volumes: Vec<Option<VolumeJob>>,
    scratch: ScratchPool,
}

/// What a sample becomes, one element for each of its dimensions.
struct Plan {
    size: Vec<usize>,
    /// Start and end of what is seen of the input.
    region: Vec<(f32, f32)>,
    filter: FilterSpec,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "TensorResize",
    aliases: &["experimental__TensorResize"],
    doc: "Another size along dimensions of a tensor: three neighbours at most",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::floats(
            "sizes",
            "elements along the dimensions; 0, with `stretch`, keeps them; negative flips",
        )
        .tensor(),
        ArgSpec::floats("scales", "sizes as multiples of the input's, in place of `sizes`").tensor(),
        ArgSpec::string("size_rounding", "how sizes become whole: `round`, `truncate` or `ceil`")
            .or_string("round"),
        ArgSpec::floats("alignment", "the point that stays in place when they do: 0 start, 1 end")
            .tensor()
            .or_floats(&[0.5]),
        ArgSpec::ints("axes", "the dimensions").tensor().or_computed("all"),
        ArgSpec::layout("axis_names", "the same by letters of the layout"),
        ArgSpec::string("mode", "`default`, `stretch`, `not_larger` or `not_smaller`").or_string("default"),
        ArgSpec::floats("max_size", "largest size, one or per dimension"),
        ArgSpec::bool("subpixel_scale", "whether scales stay exact where sizes are rounded").or_bool(true),
        ArgSpec::floats("roi_start", "start of the region that is resized").tensor(),
        ArgSpec::floats("roi_end", "end of the region that is resized").tensor(),
        ArgSpec::bool("roi_relative", "whether they are relative to the size").or_bool(false),
        ArgSpec::interp_type("interp_type", "filter, as of `Resize`").tensor().or_int(1),
        ArgSpec::interp_type("min_filter", "filter for smaller sizes").tensor().or_computed("`interp_type`"),
        ArgSpec::interp_type("mag_filter", "filter for larger sizes").tensor().or_computed("`interp_type`"),
        ArgSpec::bool("antialias", "whether filters widen for smaller sizes").or_bool(true),
        ArgSpec::dtype("dtype", "element type of the output: float32 or the input's")
            .or_computed("the input's"),
        ArgSpec::int("minibatch_size", "how much DALI resizes at once").no_effect().or_int(32),
        ArgSpec::int("temp_buffer_hint", "how much memory DALI reserves").no_effect().or_int(0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::resize::gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    if args.has("sizes") == args.has("scales") {
        return Err(Error::invalid("expected one of the arguments `sizes` and `scales`"));
    }
    let mode = args.string("mode")?;
    Ok(Box::new(TensorResize {
        sizes: args.given_arg("sizes")?,
        stretches: mode == "stretch",
        keeps_ratio: matches!(mode, "not_larger" | "not_smaller"),
        attributes: ResizeAttributes::new(&args.renamed("sizes", "size"))?,
        axes: Axes::new(args, Axes::All)?,
        images: Vec::new(),
        volumes: Vec::new(),
        scratch: ScratchPool::default(),
    }))
}

/// Calls `$f::<N>` for `N` dimensions.
macro_rules! by_count {
    ($count:expr, $f:ident($($arg:expr),*)) => {
        match $count {
            1 => $f::<1>($($arg),*),
            2 => $f::<2>($($arg),*),
            3 => $f::<3>($($arg),*),
            4 => $f::<4>($($arg),*),
            5 => $f::<5>($($arg),*),
            6 => $f::<6>($($arg),*),
            count => Err(Error::unsupported(format!("{count} dimensions to resize, expected 1 to 6"))),
        }
    };
}

/// The plan for a sample of which the `N` dimensions `axes` are resized.
fn plan<const N: usize>(
    attributes: &ResizeAttributes,
    sample: &SampleInputs<'_>,
    shape: &Shape,
    axes: &[usize],
) -> Result<Plan> {
    let Target { size, roi, filter } =
        attributes.target::<N>(sample, std::array::from_fn(|i| shape[axes[i]]))?;
    let mut plan = Plan {
        size: shape.to_vec(),
        region: shape.iter().map(|&extent| (0.0, extent as f32)).collect(),
        filter,
    };
    for ((&axis, size), roi) in axes.iter().zip(size).zip(roi) {
        (plan.size[axis], plan.region[axis]) = (size, roi);
    }
    Ok(plan)
}

/// The sizes of `N` dimensions, as far as they are known at load.
fn known<const N: usize>(attributes: &ResizeAttributes) -> Result<Vec<Option<usize>>> {
    Ok(attributes.known_size::<N>().to_vec())
}

/// The dimensions that are resampled in all samples of a batch, given their shapes and plans: from the first to the
/// last that changes in any of them, and where there are fewer than two, neighbours. So it is in DALI, where a Gaussian
/// blurs also what keeps its size.
fn resampled(ndim: usize, samples: &[(&Shape, &Plan)]) -> Range<usize> {
    let changes = |&d: &usize| {
        let of = |(shape, plan): &(&Shape, &Plan)| {
            plan.size[d] != shape[d] || plan.region[d] != (0.0, shape[d] as f32)
        };
        samples.iter().any(of)
    };
    let first = (0..ndim).find(changes).unwrap_or(ndim).min(ndim.saturating_sub(2));
    let end = (0..ndim).rfind(changes).map_or(0, |last| last + 1);
    first..end.max(ndim.min(first + 2))
}

/// The work on a sample of which `dims` are resampled.
fn work(shape: &Shape, plan: &Plan, dims: Range<usize>) -> Result<(Option<Job>, Option<VolumeJob>)> {
    let (size, region, filter) = (&plan.size, &plan.region, plan.filter);
    let first = dims.start;
    let image = |from, size, roi| {
        let channels = shape[dims.end..].iter().product();
        let planes = shape[..first].iter().product();
        let geometry = Geometry { axis: first, planes, size: from, channels };
        Ok((Some(Job::new(geometry, Target { size, roi, filter })?), None))
    };
    match dims.len() {
        1 => image([1, shape[first]], [1, size[first]], [(0.0, 1.0), region[first]]),
        2 => {
            let [from, to] = [&shape[..], size].map(|size| [size[first], size[first + 1]]);
            image(from, to, [region[first], region[first + 1]])
        }
        3 => {
            let size = std::array::from_fn(|d| size[first + d]);
            let roi = std::array::from_fn(|d| region[first + d]);
            Ok((None, Some(VolumeJob::at(shape, first, Target { size, roi, filter })?)))
        }
        _ => Err(Error::unsupported(format!(
            "dimensions {first} to {} change, expected changes of up to three neighbours in a batch",
            dims.end - 1
        ))),
    }
}

impl TensorResize {
    fn plan(&self, sample: &SampleInputs<'_>, layout: Layout) -> Result<Plan> {
        let shape = sample.input(0)?.shape;
        let axes = self.axes.of(sample, layout, shape.len())?;
        if axes.len() < shape.len() {
            let sizes = self.sizes.as_ref().map(|sizes| sizes.floats(sample)).transpose()?;
            if !self.stretches && sizes.is_some_and(|sizes| sizes.contains(&0.0)) {
                let text = "argument `sizes` holds 0 for some dimensions, expected all sizes or `stretch`";
                return Err(Error::unsupported(text));
            }
            if self.keeps_ratio {
                let text = "some dimensions resized with their ratio kept, expected all of them";
                return Err(Error::unsupported(text));
            }
        }
        let attributes = &self.attributes;
        by_count!(axes.len(), plan(attributes, sample, shape, &axes))
    }
}

impl Operator for TensorResize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|dtype| self.attributes.output_dtype(dtype)).transpose()?;
        if let Some(dims) = &mut ty.dims {
            let axes = self.axes.known(ty.layout.unwrap_or(Layout::NONE), dims.len());
            match axes.transpose()? {
                Some(axes) => {
                    let attributes = &self.attributes;
                    let sizes = by_count!(axes.len(), known(attributes))?;
                    for (&axis, size) in axes.iter().zip(sizes) {
                        dims[axis] = size;
                    }
                }
                None => dims.fill(None),
            }
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.attributes.output_dtype(desc.dtype)?;
        let plans = inputs.map(|sample| self.plan(&sample, desc.layout).map(Some));
        let samples: Vec<_> = desc
            .shapes
            .iter()
            .zip(&plans)
            .filter_map(|(shape, plan)| Some((shape, plan.as_ref()?)))
            .collect();
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let dims = resampled(ndim, &samples);
        let works = inputs.map(|sample| match plans.get(sample.index).and_then(Option::as_ref) {
            Some(plan) => work(sample.input(0)?.shape, plan, dims.clone()),
            None => Ok((None, None)),
        });
        let shapes = plans.iter().zip(&works).map(|(plan, work)| match (plan, work) {
            (Some(plan), (Some(_), _) | (_, Some(_))) => Shape::from(plan.size.clone()),
            _ => Shape::from(vec![0; ndim]),
        });
        let shapes = shapes.collect();
        (self.images, self.volumes) = works.into_iter().unzip();
        Ok(vec![BatchDesc::new(dtype, desc.layout, shapes)])
    }

    fn effort(&self, sample: usize) -> Effort {
        match self.volumes.get(sample).and_then(Option::as_ref) {
            Some(volume) => volume.effort(),
            None => effort(&self.images, sample),
        }
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        let (images, volumes, scratch) = (&self.images, &self.volumes, &self.scratch);
        io.for_each_sample(cx, |sample| {
            let i = sample.index();
            let watch = cx.watch(failures, i);
            let (input, output) = sample.unary()?;
            match (&images[i], &volumes[i]) {
                (Some(image), _) => scratch.with(|scratch| image.run(&input, output, scratch, &watch)),
                (None, Some(volume)) => volume.run(&input, output, &watch),
                (None, None) => Err(Error::internal("a live sample was not planned")),
            }
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        gpu::prepare(gpu, &inputs[0], &self.attributes, false)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let to = self.attributes.output_dtype(io.inputs().desc(0)?.dtype)?;
        match self.volumes.iter().any(Option::is_some) {
            true => volume_gpu::run(cx, io, &self.volumes, to),
            false => gpu::run(cx, io, &self.images, to, &mut Tables::default()),
        }
    }
}
