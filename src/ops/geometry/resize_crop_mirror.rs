//! `ResizeCropMirror`: resize, crop and mirror in one pass over the image.
//!
//! A window of the resized image shows a region of the source, and mirroring it swaps that region's ends: so this is a
//! resize of another region.

use std::sync::Arc;

use super::resize::attributes::{self, ResizeAttributes, Target};
use super::resize::exact;
use super::resize::exact_gpu::Tables;
use super::resize::geometry::{Geometry, layout_of};
use super::resize::{Job, ScratchPool, effort, gpu, infer_resized, job, output_shapes};
use crate::cpu::exact::{Arithmetic, Task};
use crate::deadline::Effort;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::operator::args::Value;
use crate::operator::shared::window::{CROP_ARGS, CropWindow};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, one_output,
};
use crate::tensor::{BatchDesc, Device, Layout, ValueType};

/// Bits of `mirror`, in the order H, W.
const MIRROR_BITS: [i64; 2] = [2, 1];

const MIRROR: &[ArgSpec] =
    &[ArgSpec::int("mirror", "bit 0: left and right change places, bit 1: top and bottom")
        .tensor()
        .or_int(0)];

struct ResizeCropMirror {
    attributes: ResizeAttributes,
    crop: CropWindow,
    mirror: Arg,
    jobs: Vec<Option<Job>>,
    scratch: ScratchPool,
    tables: Tables,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "ResizeCropMirror",
    doc: "Resize, crop and mirror in one pass",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[attributes::antialias(true)],
    shared_args: &[MIRROR, attributes::ARGS, CROP_ARGS, exact::ARGS],
    arithmetics: &Arithmetic::ALL,
    build: &build,
    outputs: &one_output,
    kernels: &[super::resize::gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

/// The operator's line in [`crate::ops::OPS`]. An old name, for which filters are not stretched unless the file says
/// so.
pub(in crate::ops) const FAST: OpDef = OpDef {
    name: "FastResizeCropMirror",
    args: &[attributes::antialias(false)],
    shared_args: &[MIRROR, attributes::ARGS, CROP_ARGS],
    arithmetics: &[],
    ..DEF
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let attributes = ResizeAttributes::new(args)?;
    let args = &attributes
        .rounding_of_windows()
        .map_or_else(|| args.clone(), |rounding| args.or("rounding", Value::Strings(vec![rounding.into()])));
    Ok(Box::new(ResizeCropMirror {
        attributes,
        crop: CropWindow::new(args)?,
        mirror: args.arg("mirror")?,
        jobs: Vec::new(),
        scratch: ScratchPool::default(),
        tables: Tables::default(),
    }))
}

impl Operator for ResizeCropMirror {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let size = self.crop.infer(&self.attributes.known_size::<2>(), hw(), false)?;
        let size = [0, 1].map(|d| size.get(d).copied().flatten());
        Ok(vec![infer_resized(&inputs[0], &self.attributes, size)?])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.attributes.output_dtype(desc.dtype)?;
        self.jobs = inputs.map(|sample| {
            let geometry = Geometry::new(sample.input(0)?.shape, desc.layout)?;
            if let Some(task) = self.attributes.task(&sample, &geometry, desc.dtype, desc.layout, None)? {
                return Ok(Some(Job::exact(geometry, self.task(&sample, &task)?)));
            }
            let target = self.attributes.target(&sample, geometry.size)?;
            Job::new(geometry, self.window(&sample, &target)?).map(Some)
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

impl ResizeCropMirror {
    /// [`ResizeCropMirror::window`] with another library's arithmetic.
    fn task(&self, sample: &SampleInputs<'_>, task: &Task) -> Result<Task> {
        let window = self.crop.place(sample, &task.size, hw())?;
        let mirror = self.mirror.int(sample)?;
        exact::windowed(task, &window.anchor, &window.extent, MIRROR_BITS.map(|bit| mirror & bit != 0))
    }

    /// The resize that makes just the crop window of `target`, mirrored.
    fn window(&self, sample: &SampleInputs<'_>, target: &Target) -> Result<Target> {
        // A window that leaves the resized image shows its edge again, as a region that leaves an image does.
        let window = self.crop.place(sample, &target.size, hw())?;
        let mirror = self.mirror.int(sample)?;
        let mut size = target.size;
        let mut roi = target.roi;
        for d in 0..2 {
            let (start, end) = (f64::from(target.roi[d].0), f64::from(target.roi[d].1));
            let scale = (end - start) / target.size[d] as f64;
            let place = |pixel: f64| (start + pixel * scale) as f32;
            let first = window.anchor[d] as f64;
            size[d] = window.extent[d];
            roi[d] = (place(first), place(first + window.extent[d] as f64));
            if mirror & MIRROR_BITS[d] != 0 {
                roi[d] = (roi[d].1, roi[d].0);
            }
        }
        Ok(Target { size, roi, ..*target })
    }
}

fn hw() -> Layout {
    Layout::from_letters(b"HW")
}
