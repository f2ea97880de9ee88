//! `Resize`: images and volumes to another size.

pub(in crate::ops) mod attributes;
pub(in crate::ops) mod exact;
pub(in crate::ops) mod exact_gpu;
pub(in crate::ops) mod frames;
pub(in crate::ops) mod geometry;
pub(in crate::ops) mod gpu;
pub(in crate::ops) mod rows;
mod scratch;
mod sizes;
pub(in crate::ops) mod volume;
pub(in crate::ops) mod volume_gpu;

use std::sync::Arc;

use crate::cpu::convert::ConvertSat;
use crate::cpu::decode::RowSink;
use crate::cpu::exact::{self as libraries, Arithmetic, Elements, Task};
use crate::cpu::resample::{self, FilterSpec, Output, Plan, Stream};
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::layouts;
use crate::operator::{ArgSpec, Args, CpuCx, Deferred, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType, View, ViewMut};
use attributes::{ResizeAttributes, Target};
use exact_gpu::Tables;
use geometry::{Geometry, LAYOUTS, layout_of, rows_axis};
pub(in crate::ops) use scratch::{Scratch, ScratchPool};
use volume::{VolumeJob, is_volume};

pub(in crate::ops) struct Resize {
    attributes: ResizeAttributes,
    /// Whether there is a second output with the input's size.
    save_attrs: bool,
    /// Whether it may get planes of images, on a device.
    reads_planes: bool,
    jobs: Vec<Option<Job>>,
    /// The same for volumes: one of the two lists is used in a batch.
    volumes: Vec<Option<VolumeJob>>,
    scratch: ScratchPool,
    tables: Tables,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Resize",
    aliases: &["experimental__Resize"],
    doc: "Another size, by six filters, with or without antialiasing, of a region or the whole image",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        attributes::antialias(true),
        ArgSpec::bool("save_attrs", "a second output with the input's (depth,) height and width as int32")
            .or_bool(false),
    ],
    shared_args: &[attributes::ARGS, exact::ARGS],
    arithmetics: &Arithmetic::ALL,
    build: &build,
    outputs: &|args, _| Ok(if args.bool("save_attrs")? { 2 } else { 1 }),
    kernels: &[gpu::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Resize::new(args)?))
}

impl Resize {
    /// With the arguments of [`DEF`].
    ///
    /// # Errors
    /// When one of them has no such value.
    pub(in crate::ops) fn new(args: &Args) -> Result<Self> {
        Ok(Self {
            attributes: ResizeAttributes::new(args)?,
            save_attrs: args.bool("save_attrs")?,
            reads_planes: false,
            jobs: Vec::new(),
            volumes: Vec::new(),
            scratch: ScratchPool::default(),
            tables: Tables::default(),
        })
    }

    /// Shapes of the outputs of a batch of volumes.
    fn setup_volumes(&mut self, inputs: &Inputs<'_>) -> Result<Vec<Shape>> {
        let desc = inputs.desc(0)?;
        self.volumes = inputs.map(|sample| VolumeJob::new(&sample, desc.layout, &self.attributes).map(Some));
        let shape = |(shape, job): (&Shape, &Option<VolumeJob>)| match job {
            Some(job) => job.output_shape(shape),
            None => Shape::new(vec![0; shape.len()]),
        };
        Ok(desc.shapes.iter().zip(&self.volumes).map(shape).collect())
    }

    fn run_volumes(&self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let job = self.volumes.get(sample.index()).and_then(Option::as_ref);
            let job = job.ok_or_else(|| Error::internal("a live sample was not planned"))?;
            let watch = cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            job.run(&input, output, &watch)?;
            if self.save_attrs {
                let size = job.size.map(|extent| extent as i32);
                sample.output(1)?.as_slice_mut::<i32>()?.copy_from_slice(&size);
            }
            Ok(())
        })
    }
}

impl Deferred for Resize {
    fn sufficient_size(&self) -> Option<[usize; 2]> {
        self.attributes.whole_image_size().filter(|_| !self.save_attrs)
    }

    fn may_read_planes(&mut self) {
        self.reads_planes = true;
    }
}

impl Operator for Resize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let volume = inputs[0].layout.filter(|&layout| is_volume(layout));
        let mut types = vec![match volume {
            Some(layout) => volume::infer(&inputs[0], layout, &self.attributes)?,
            None => infer_resized(&inputs[0], &self.attributes, self.attributes.known_size())?,
        }];
        if self.save_attrs {
            let sides = inputs[0].layout.map(|_| if volume.is_some() { 3 } else { 2 });
            types.push(ValueType {
                dtype: Some(DType::I32),
                dims: Some(vec![sides]),
                layout: Some(Layout::NONE),
            });
        }
        Ok(types)
    }

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.attributes.output_dtype(desc.dtype)?;
        let is_volume = is_volume(desc.layout);
        let shapes = if is_volume {
            self.setup_volumes(inputs)?
        } else {
            self.volumes.clear();
            self.jobs = inputs.map(|sample| {
                let geometry = Geometry::new(sample.input(0)?.shape, desc.layout)?;
                self.attributes.job(&sample, geometry, desc.dtype, desc.layout, None).map(Some)
            });
            output_shapes(desc, &self.jobs)
        };
        let mut descs = vec![BatchDesc::new(dtype, layout_of(desc), shapes)];
        if self.save_attrs {
            let shapes = vec![Shape::from([if is_volume { 3 } else { 2 }]); desc.shapes.len()];
            descs.push(BatchDesc::new(DType::I32, Layout::NONE, shapes));
        }
        Ok(descs)
    }

    fn effort(&self, sample: usize) -> Effort {
        match self.volumes.get(sample).and_then(Option::as_ref) {
            Some(volume) => volume.effort(),
            None => effort(&self.jobs, sample),
        }
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        if is_volume(io.inputs().desc(0)?.layout) {
            return self.run_volumes(cx, io);
        }
        let failures = io.inputs().failures();
        io.for_each_sample(cx, |sample| {
            let (job, watch) = (job(&self.jobs, sample.index())?, cx.watch(failures, sample.index()));
            let (input, output) = sample.unary()?;
            self.scratch.with(|scratch| job.run(&input, output, scratch, &watch))?;
            if self.save_attrs {
                let size = job.geometry.size.map(|extent| extent as i32);
                sample.output(1)?.as_slice_mut::<i32>()?.copy_from_slice(&size);
            }
            Ok(())
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        if inputs[0].layout.is_some_and(is_volume) {
            return volume_gpu::prepare(gpu, &inputs[0], &self.attributes);
        }
        gpu::prepare(gpu, &inputs[0], &self.attributes, self.reads_planes)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let desc = io.inputs().desc(0)?;
        let (is_volume, to) = (is_volume(desc.layout), self.attributes.output_dtype(desc.dtype)?);
        if is_volume {
            volume_gpu::run(cx, io, &self.volumes, to)?;
        } else {
            gpu::run(cx, io, &self.jobs, to, &mut self.tables)?;
        }
        if self.save_attrs {
            let mut sizes = Vec::new();
            for (place, size) in io.rows(|sample| {
                let size: &[usize] = match self.volumes.get(sample.index()) {
                    Some(Some(job)) if is_volume => &job.size,
                    _ => &job(&self.jobs, sample.index())?.geometry.size,
                };
                let size: Vec<i32> = size.iter().map(|&extent| extent as i32).collect();
                Ok((sample.output(1)?.clone(), size))
            }) {
                sizes.push((place, cx.recorder.stage(bytemuck::cast_slice(&size))?));
            }
            cx.copy(&sizes)?;
        }
        Ok(())
    }
}

/// One image's (or one sequence's) resize.
pub(in crate::ops) struct Job {
    pub(in crate::ops) geometry: Geometry,
    pub(in crate::ops) target: Target,
    /// What is done in place of `target`, which has its size, with another library's arithmetic.
    pub(in crate::ops) task: Option<Task>,
}

impl Job {
    /// To make `target` of the images in `geometry`. Weights are made later, on the thread that resizes or on the
    /// device.
    ///
    /// # Errors
    /// Those of [`resample::check`].
    pub(in crate::ops) fn new(geometry: Geometry, target: Target) -> Result<Self> {
        let filters = [target.filter; 2];
        resample::check(geometry.size, geometry.channels, target.size, target.roi, filters)?;
        Ok(Self { geometry, target, task: None })
    }

    /// To do `task`, which was checked, with each of the images in `geometry`.
    pub(super) fn exact(geometry: Geometry, task: Task) -> Self {
        let (size, roi) = (task.made(), task.region);
        Self { geometry, target: Target { size, roi, filter: FilterSpec::default() }, task: Some(task) }
    }

    /// What it is expected to take.
    pub(in crate::ops) fn effort(&self) -> Effort {
        let (geometry, target) = (&self.geometry, &self.target);
        let filters = [target.filter; 2];
        let Effort { time, scratch } = match &self.task {
            Some(task) => task.effort(),
            None => resample::effort(geometry.size, geometry.channels, target.size, target.roi, filters),
        };
        let planes = u32::try_from(geometry.planes).unwrap_or(u32::MAX);
        Effort { time: time.saturating_mul(planes), scratch }
    }

    /// Resizes one sample.
    ///
    /// # Errors
    /// Those of [`Plan::new`]; when nobody waits any more; internal, when a buffer does not have the planned size or an
    /// unplanned type.
    pub(in crate::ops) fn run(
        &self,
        input: &View<'_>,
        output: &mut ViewMut<'_>,
        scratch: &mut Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        if let Some(task) = &self.task {
            return self.run_task(task, input, output, &mut scratch.exact, watch);
        }
        let scratch = &mut scratch.dali;
        match (input.dtype, output.dtype) {
            (DType::U8, DType::U8) => self.run_as::<u8, u8>(input, output, scratch, watch),
            (DType::I16, DType::I16) => self.run_as::<i16, i16>(input, output, scratch, watch),
            (DType::U16, DType::U16) => self.run_as::<u16, u16>(input, output, scratch, watch),
            (DType::U8, DType::F32) => self.run_as::<u8, f32>(input, output, scratch, watch),
            (DType::I16, DType::F32) => self.run_as::<i16, f32>(input, output, scratch, watch),
            (DType::U16, DType::F32) => self.run_as::<u16, f32>(input, output, scratch, watch),
            (DType::F32, DType::F32) => self.run_as::<f32, f32>(input, output, scratch, watch),
            (from, to) => Err(Error::internal(format!("resize from {from} to {to} was not planned"))),
        }
    }

    /// Resizes an image of bytes that `make` makes row by row; it says whether it made all of them. False: it did not,
    /// or rows cannot come one by one. Then `output` holds anything.
    ///
    /// # Errors
    /// Those of [`Job::run`].
    pub(in crate::ops) fn run_rows(
        &self,
        output: &mut ViewMut<'_>,
        scratch: &mut Scratch,
        make: impl FnOnce(&mut dyn RowSink) -> bool,
    ) -> Result<bool> {
        if self.task.is_some() {
            return Ok(false);
        }
        let scratch = &mut scratch.dali;
        let (geometry, target) = (&self.geometry, &self.target);
        let plan = Plan::new(geometry.size, geometry.channels, target.size, target.roi, [target.filter; 2])?;
        if geometry.planes != 1 || !plan.takes_rows() {
            return Ok(false);
        }
        match output.dtype {
            DType::F32 => Ok(Rows(plan.stream(output.as_slice_mut::<f32>()?, scratch)?).fill(make)),
            _ => Ok(Rows(plan.stream(output.as_slice_mut::<u8>()?, scratch)?).fill(make)),
        }
    }

    fn run_task(
        &self,
        task: &Task,
        input: &View<'_>,
        output: &mut ViewMut<'_>,
        scratch: &mut libraries::Scratch,
        watch: &Watch<'_>,
    ) -> Result<()> {
        let elements = |size: [usize; 2]| size.iter().product::<usize>() * self.geometry.channels;
        let (from, to) = (elements(self.geometry.size), elements(task.made()));
        match task.elements {
            Elements::Bytes => each(input, from, output, to, |src, dst| task.run(src, dst, scratch, watch)),
            Elements::Words => {
                each(input, from, output, to, |src, dst| task.run_words(src, dst, scratch, watch))
            }
            Elements::Floats => {
                each(input, from, output, to, |src, dst| task.run_floats(src, dst, scratch, watch))
            }
        }
    }

    fn run_as<S, T>(
        &self,
        input: &View<'_>,
        output: &mut ViewMut<'_>,
        scratch: &mut resample::Scratch,
        watch: &Watch<'_>,
    ) -> Result<()>
    where
        S: Element + ConvertSat<f32> + ConvertSat<T>,
        T: Output,
    {
        let (geometry, target) = (&self.geometry, &self.target);
        let plan = Plan::new(geometry.size, geometry.channels, target.size, target.roi, [target.filter; 2])?;
        let from = geometry.size.iter().product::<usize>() * geometry.channels;
        let to = target.size.iter().product::<usize>() * geometry.channels;
        let sources = input.as_slice::<S>()?.chunks_exact(from);
        for (src, dst) in sources.zip(output.as_slice_mut::<T>()?.chunks_exact_mut(to)) {
            plan.run_watched(src, dst, scratch, watch)?;
        }
        Ok(())
    }
}

/// Runs `f` for each image, which has `from` elements and becomes `to`.
fn each<T: Element>(
    input: &View<'_>,
    from: usize,
    output: &mut ViewMut<'_>,
    to: usize,
    mut f: impl FnMut(&[T], &mut [T]) -> Result<()>,
) -> Result<()> {
    let images = input.as_slice()?.chunks_exact(from).zip(output.as_slice_mut()?.chunks_exact_mut(to));
    images.into_iter().try_for_each(|(src, dst)| f(src, dst))
}

/// What is resized row by row.
struct Rows<'a, T>(Stream<'a, T>);

impl<T: Output> Rows<'_, T> {
    /// Whether `make` gave all rows.
    fn fill(mut self, make: impl FnOnce(&mut dyn RowSink) -> bool) -> bool {
        make(&mut self) && self.0.is_complete()
    }
}

impl<T: Output> RowSink for Rows<'_, T> {
    fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    fn row(&mut self, y: usize) -> &mut [u8] {
        self.0.row(y)
    }

    fn done(&mut self, y: usize) {
        self.0.done(y);
    }
}

/// The job of a live sample.
pub(in crate::ops) fn job(jobs: &[Option<Job>], index: usize) -> Result<&Job> {
    jobs.get(index).and_then(Option::as_ref).ok_or_else(|| Error::internal("a live sample was not planned"))
}

/// What the job of a sample is expected to take, if it has one.
pub(in crate::ops) fn effort(jobs: &[Option<Job>], index: usize) -> Effort {
    jobs.get(index).and_then(Option::as_ref).map_or_else(Effort::default, Job::effort)
}

/// Shapes of the outputs: the inputs' with rows and columns as planned, empty for failed samples.
pub(in crate::ops) fn output_shapes(desc: &BatchDesc, jobs: &[Option<Job>]) -> Vec<Shape> {
    desc.shapes
        .iter()
        .zip(jobs)
        .map(|(shape, job)| {
            let mut dims = shape.to_vec();
            match job {
                Some(job) => dims[job.geometry.axis..job.geometry.axis + 2].copy_from_slice(&job.target.size),
                None => dims.fill(0),
            }
            Shape::new(dims)
        })
        .collect()
}

/// The type of a resized image whose height and width are `size` where they are known.
pub(in crate::ops) fn infer_resized(
    input: &ValueType,
    attributes: &ResizeAttributes,
    size: [Option<usize>; 2],
) -> Result<ValueType> {
    let mut ty = input.clone();
    ty.dtype = input.dtype.map(|dtype| attributes.output_dtype(dtype)).transpose()?;
    ty.layout = layouts::of_type_or_first(input, &LAYOUTS);
    if let (Some(dims), Some(layout)) = (&mut ty.dims, input.layout) {
        let axis = rows_axis(layout, dims.len())?;
        dims[axis..axis + 2].copy_from_slice(&size);
    }
    Ok(ty)
}
