//! `Resize` and the `CropMirrorNormalize` behind it as one kernel on a device: the resized image is never written. The
//! graph puts it in place of the two (`graph/fuse.rs`); it stands in no file. It computes what the two compute,
//! rounding of the resized pixels included.

use std::sync::Arc;

use super::crop_mirror_normalize::{self, CropMirrorNormalize, Order, Recent};
use super::resize::attributes::ResizeAttributes;
use super::resize::geometry::Geometry;
use super::resize::gpu::{compile, kernel_for, launch, of_planes};
use super::resize::rows::{MAX_CHANNELS, NormalizedRow, ResampleRow};
use super::resize::{self, Job};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::{Args, CpuCx, Deferred, Fusion, GpuCx, GpuIo, Inputs, Io, Operator};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

/// Dimensions of an image.
const NDIM: usize = 3;

pub(in crate::ops) struct ResizeNormalize {
    attributes: ResizeAttributes,
    normalize: CropMirrorNormalize,
    order: Order,
    /// Whether it may get planes of images.
    reads_planes: bool,
    jobs: Vec<Option<(Job, Arc<crop_mirror_normalize::Job>)>>,
}

/// `Resize` and `CropMirrorNormalize` in one.
pub(in crate::ops) const FUSION: Fusion = Fusion {
    name: "Resize + CropMirrorNormalize",
    device: Device::Gpu,
    of: &[&resize::DEF, &crop_mirror_normalize::DEF],
    can,
    kernels,
    make: |args| Ok(Box::new(ResizeNormalize::new(args)?)),
};

/// Whether the two can be one kernel, for images of type `input` and resized images of type `between`.
pub(in crate::ops) fn can(args: &[&Args], types: &[&ValueType]) -> bool {
    let (&[first, second], &[input, between]) = (args, types) else { return false };
    let channels = input.dims.as_ref().and_then(|dims| *dims.get(NDIM - 1)?);
    let plain_order = second.string("output_layout").is_ok_and(|order| matches!(order, "" | "HWC" | "CHW"));
    let is_dali = |args: &Args| {
        args.given_string("arithmetic").is_ok_and(|name| name.is_none_or(|name| name == "dali"))
    };
    !first.bool("save_attrs").is_ok_and(|save| save)
        && is_dali(first)
        && is_dali(second)
        && plain_order
        && between.layout == Some(Layout::hwc())
        && input.ndim() == Some(NDIM)
        && channels.is_some_and(|channels| (1..=MAX_CHANNELS).contains(&channels))
}

impl ResizeNormalize {
    /// With the arguments of the two.
    ///
    /// # Errors
    /// When one of them has no such value.
    pub(in crate::ops) fn new(args: &[Args]) -> Result<Self> {
        let [first, second] = args else {
            return Err(Error::internal(format!("{} operators, expected 2", args.len())));
        };
        Ok(Self {
            attributes: ResizeAttributes::new(first)?,
            normalize: CropMirrorNormalize::new(second)?,
            order: Order::default(),
            reads_planes: false,
            jobs: Vec::new(),
        })
    }
}

impl Deferred for ResizeNormalize {
    fn sufficient_size(&self) -> Option<[usize; 2]> {
        self.attributes.whole_image_size()
    }

    fn may_read_planes(&mut self) {
        self.reads_planes = true;
    }
}

fn kernel(from: DType, between: DType, to: DType, channels: usize) -> KernelSpec {
    kernel_for::<NormalizedRow>()
        .dtype("SRC", from)
        .dtype("MID", between)
        .dtype("DST", to)
        .define("CH", channels)
        .define("NORMALIZE", 1)
}

/// Those that tests compile.
fn kernels() -> Vec<KernelSpec> {
    vec![
        kernel(DType::U8, DType::U8, DType::F32, 3),
        kernel(DType::U8, DType::F32, DType::F16, 3),
        kernel(DType::U8, DType::U8, DType::I8, 1),
        kernel(DType::F32, DType::F32, DType::U8, 4),
        of_planes(kernel(DType::U8, DType::U8, DType::F32, 3), true),
    ]
}

impl Operator for ResizeNormalize {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let resized = resize::infer_resized(&inputs[0], &self.attributes, self.attributes.known_size())?;
        self.normalize.infer(&[resized])
    }

    fn deferred(&mut self) -> Option<&mut dyn Deferred> {
        Some(self)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        self.attributes.output_dtype(desc.dtype)?;
        let order = self.normalize.order_of(desc.layout, NDIM)?;
        let channels = desc.shapes.iter().find_map(|shape| shape.get(NDIM - 1).copied().filter(|&c| c > 0));
        let mut recent = Recent::default();
        self.jobs = inputs.map(|sample| {
            let geometry = Geometry::new(sample.input(0)?.shape, desc.layout)?;
            if geometry.planes != 1 || Some(geometry.channels) != channels {
                return Err(Error::internal(format!("an image of shape {}", sample.input(0)?.shape)));
            }
            let target = self.attributes.target(&sample, geometry.size)?;
            let resized = Shape::from([target.size[0], target.size[1], geometry.channels]);
            let normalize = self.normalize.job(&sample, &resized, &order, &mut recent)?;
            Ok(Some((Job::new(geometry, target)?, normalize)))
        });
        let shapes = self.jobs.iter().map(|job| match job {
            Some((_, normalize)) => normalize.output_shape(&order),
            None => Shape::new(vec![0; NDIM]),
        });
        let desc = BatchDesc::new(self.normalize.dtype(), order.layout(), shapes.collect());
        self.order = order;
        Ok(vec![desc])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("resize and normalize are one operator on a GPU only"))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let channels = inputs[0].dims.as_ref().and_then(|dims| *dims.get(NDIM - 1)?);
        if let (Some(from), Some(channels)) = (inputs[0].dtype, channels) {
            let between = self.attributes.output_dtype(from)?;
            let kernel = kernel(from, between, self.normalize.dtype(), channels);
            if self.reads_planes {
                compile(gpu, &of_planes(kernel.clone(), true), from)?;
            }
            compile(gpu, &kernel, from)?;
        }
        Ok(())
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let between = self.attributes.output_dtype(from)?;
        let mut channels = 1;
        let rows = io.rows(|sample| {
            let job = self.jobs.get(sample.index()).and_then(Option::as_ref);
            let (resize, normalize) = job.ok_or_else(|| Error::internal("a live sample was not planned"))?;
            let window = normalize.image_window()?;
            channels = resize.geometry.channels;
            let padded = |values: &[f32]| {
                let mut padded = [0.0; MAX_CHANNELS];
                padded.iter_mut().zip(values).for_each(|(to, from)| *to = *from);
                padded
            };
            let [factor, bias, fill] = normalize.per_channel();
            let [source, planes] = sample.elements_or_planes()?;
            let mut resample = ResampleRow::new(source, sample.target(0)?, &resize.geometry, &resize.target);
            resample.planes = planes;
            Ok(NormalizedRow {
                resample,
                window: window.extent.map(|extent| extent as i32),
                anchor: window.anchor,
                mirror: window.mirror.into(),
                planar: self.order.is_planar().into(),
                channels: fill.len() as i32,
                unused: 0,
                factor: padded(factor),
                bias: padded(bias),
                fill: padded(fill),
            })
        });
        let kernel = kernel(from, between, self.normalize.dtype(), channels);
        let kernel = of_planes(kernel, rows.iter().any(|row| row.resample.planes != 0));
        launch(cx, &kernel, from, channels, rows)
    }
}
