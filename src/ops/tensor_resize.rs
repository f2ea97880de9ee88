//! `TensorResize`: `Resize` along any dimensions of a tensor, whatever the layout calls them.

use std::sync::Arc;

use super::axes::Axes;
use super::resize::attributes::{ResizeAttributes, Target};
use super::resize::geometry::Geometry;
use super::resize::volume::VolumeJob;
use super::resize::{Job, ScratchPool, gpu, volume_gpu};
use super::{Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, SampleInputs, one_output};
use crate::cpu::resample::FilterSpec;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct TensorResize {
    attributes: ResizeAttributes,
    sizes: Option<Arg>,
    /// Whether a size of 0 keeps the input's.
    stretches: bool,
    /// Whether all dimensions are scaled alike: in DALI also those that are not to be resized.
    keeps_ratio: bool,
    axes: Axes,
    /// Per sample: the work on those of which one or two neighbouring dimensions change, and on those where they are three.
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

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
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
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    if args.has("sizes") == args.has("scales") {
        return Err(Error::invalid("expected one of the arguments `sizes` and `scales`"));
    }
    let mode = args.string("mode")?.unwrap_or("default");
    Ok(Box::new(TensorResize {
        sizes: args.arg("sizes")?,
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

/// The work on a sample of which one or two, or three neighbouring dimensions change.
fn work(shape: &Shape, plan: &Plan) -> Result<(Option<Job>, Option<VolumeJob>)> {
    let changes = |d: &usize| plan.size[*d] != shape[*d] || plan.region[*d] != (0.0, shape[*d] as f32);
    let mut changed = (0..shape.len()).filter(changes);
    let first = changed.next().unwrap_or(shape.len() - 1);
    let last = changed.next_back().unwrap_or(first);
    let geometry = |size, end: usize| Geometry {
        axis: first,
        planes: shape[..first].iter().product(),
        size,
        channels: shape[end..].iter().product(),
    };
    let (size, region, filter) = (&plan.size, &plan.region, plan.filter);
    match last - first {
        0 if last + 1 == shape.len() => {
            // A row.
            let target = Target { size: [1, size[first]], roi: [(0.0, 1.0), region[first]], filter };
            Ok((Some(Job::new(geometry([1, shape[first]], last + 1), target)?), None))
        }
        0 => {
            let target = Target { size: [size[first], 1], roi: [region[first], (0.0, 1.0)], filter };
            Ok((Some(Job::new(geometry([shape[first], 1], last + 1), target)?), None))
        }
        1 => {
            let target =
                Target { size: [size[first], size[last]], roi: [region[first], region[last]], filter };
            Ok((Some(Job::new(geometry([shape[first], shape[last]], last + 1), target)?), None))
        }
        2 => {
            let (size, roi) =
                (std::array::from_fn(|d| size[first + d]), std::array::from_fn(|d| region[first + d]));
            Ok((None, Some(VolumeJob::at(shape, first, Target { size, roi, filter })?)))
        }
        _ => Err(Error::unsupported(format!(
            "dimensions {first} to {last} change, expected changes of up to three neighbours"
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
        let plans = inputs.map(|sample| {
            let plan = self.plan(&sample, desc.layout)?;
            let work = work(sample.input(0)?.shape, &plan)?;
            Ok(Some((plan.size, work)))
        });
        let ndim = desc.shapes.first().map_or(0, |shape| shape.len());
        let mut shapes = Vec::with_capacity(plans.len());
        (self.images, self.volumes) = plans
            .into_iter()
            .map(|plan| {
                let (size, work) = plan.unwrap_or_else(|| (vec![0; ndim], (None, None)));
                shapes.push(Shape::from(size));
                work
            })
            .unzip();
        Ok(vec![BatchDesc::new(dtype, desc.layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (images, volumes, scratch) = (&self.images, &self.volumes, &self.scratch);
        io.for_each_sample(cx, |sample| {
            let i = sample.index();
            let (input, output) = sample.unary()?;
            match (&images[i], &volumes[i]) {
                (Some(image), _) => scratch.with(|scratch| image.run(&input, output, scratch)),
                (None, Some(volume)) => volume.run(&input, output),
                (None, None) => Err(Error::internal("a live sample was not planned")),
            }
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        gpu::prepare(gpu, &inputs[0], &self.attributes, false)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let to = self.attributes.output_dtype(io.inputs().desc(0)?.dtype)?;
        match (self.images.iter().any(Option::is_some), self.volumes.iter().any(Option::is_some)) {
            (true, true) => Err(Error::unsupported(
                "samples of which three dimensions change beside others, in one batch on a GPU; expected them in all or none",
            )),
            (_, true) => volume_gpu::run(cx, io, &self.volumes, to),
            (_, false) => gpu::run(cx, io, &self.images, to, false),
        }
    }
}
