//! `TensorResize`: `Resize` along two neighbouring dimensions, whatever the layout calls them.

use std::sync::Arc;

use super::axes::Axes;
use super::resize::attributes::ResizeAttributes;
use super::resize::geometry::Geometry;
use super::resize::{Job, ScratchPool, gpu, job, output_shapes};
use super::{Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, one_output};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::tensor::{BatchDesc, Device, Layout, Shape, ValueType};

struct TensorResize {
    attributes: ResizeAttributes,
    sizes: Arg,
    /// Whether a size of 0 keeps the input's.
    stretches: bool,
    /// Whether all dimensions are scaled alike: in DALI also those that are not to be resized.
    keeps_ratio: bool,
    axes: Axes,
    jobs: Vec<Option<Job>>,
    scratch: ScratchPool,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "TensorResize",
    aliases: &["experimental__TensorResize"],
    doc: "Another size along two neighbouring dimensions of a tensor",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::floats(
            "sizes",
            "elements along both dimensions; 0, with `stretch`, keeps it; negative flips",
        )
        .tensor()
        .required(),
        ArgSpec::ints("axes", "the two dimensions, one behind the other").tensor().or_computed("all"),
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
    let sizes = args.arg("sizes")?.ok_or_else(|| Error::invalid("argument `sizes` is missing"))?;
    let mode = args.string("mode")?.unwrap_or("default");
    Ok(Box::new(TensorResize {
        sizes,
        stretches: mode == "stretch",
        keeps_ratio: matches!(mode, "not_larger" | "not_smaller"),
        attributes: ResizeAttributes::new(&args.renamed("sizes", "size"))?,
        axes: Axes::new(args, Axes::All)?,
        jobs: Vec::new(),
        scratch: ScratchPool::default(),
    }))
}

/// A sample as images whose rows and columns are the dimensions `axes`.
fn geometry(shape: &Shape, axes: &[usize]) -> Result<Geometry> {
    match *axes {
        [first, second] if second == first + 1 && second < shape.len() => Ok(Geometry {
            axis: first,
            planes: shape[..first].iter().product(),
            size: [shape[first], shape[second]],
            channels: shape[second + 1..].iter().product(),
        }),
        _ => Err(Error::unsupported(format!(
            "dimensions {axes:?} of a sample with {}, expected two, one behind the other",
            shape.len()
        ))),
    }
}

impl Operator for TensorResize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|dtype| self.attributes.output_dtype(dtype)).transpose()?;
        if let Some(dims) = &mut ty.dims {
            let known = self.axes.known(ty.layout.unwrap_or(Layout::NONE), dims.len());
            match known.transpose()? {
                Some(axes) => {
                    geometry(&Shape::new(vec![1; dims.len()]), &axes)?;
                    for (&axis, size) in axes.iter().zip(self.attributes.known_size::<2>()) {
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
        self.jobs = inputs.map(|sample| {
            let shape = sample.input(0)?.shape;
            if !self.stretches && self.sizes.floats(&sample)?.contains(&0.0) {
                return Err(Error::unsupported("argument `sizes` holds 0, expected both sizes or `stretch`"));
            }
            if self.keeps_ratio && shape.len() > 2 {
                return Err(Error::unsupported(format!(
                    "a sample of shape {shape} resized with its ratio kept, expected 2 dimensions"
                )));
            }
            let geometry = geometry(shape, &self.axes.of(&sample, desc.layout, shape.len())?)?;
            Job::new(geometry, self.attributes.target(&sample, geometry.size)?).map(Some)
        });
        Ok(vec![BatchDesc::new(dtype, desc.layout, output_shapes(desc, &self.jobs))])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (jobs, scratch) = (&self.jobs, &self.scratch);
        io.for_each_sample(cx, |sample| {
            let job = job(jobs, sample.index())?;
            let (input, output) = sample.unary()?;
            scratch.with(|scratch| job.run(&input, output, scratch))
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        gpu::prepare(gpu, &inputs[0], &self.attributes, false)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let to = self.attributes.output_dtype(io.inputs().desc(0)?.dtype)?;
        gpu::run(cx, io, &self.jobs, to, false)
    }
}
