//! Volumes in `Resize` on a device: their slices as images, then their depth as the rows of an image whose pixels are
//! the elements of a slice. Between the two passes lie float32.

use std::sync::Arc;

use super::attributes::{ResizeAttributes, Target};
use super::geometry::Geometry;
use super::gpu::{Images, channels_at_once, compile, kernel, launch};
use super::rows::{AxisRow, MAX_CHANNELS, ResampleRow};
use super::volume::VolumeJob;
use crate::cpu::resample::volume_parameters;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::limits;
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::{DType, ValueType};

/// Elements of a resized slice: the kernel counts them in float32, in halves.
const MAX_SLICE: usize = 1 << 23;

impl VolumeJob {
    /// Elements of a resized slice, and of all of them before their depth is resized.
    fn between(&self) -> Result<(usize, usize)> {
        let [_, height, width] = self.target.size;
        let slice = height * width * self.channels;
        let all = slice.checked_mul(self.size[0]).and_then(|n| n.checked_mul(self.count));
        let most = limits::MAX_SAMPLE_BYTES / size_of::<f32>();
        match all.filter(|&all| all <= most && slice <= MAX_SLICE) {
            Some(all) => Ok((slice, all)),
            None => Err(Error::invalid(format!(
                "{} volumes of {} slices resized to {slice} elements each, expected at most {MAX_SLICE} on a device and {most} of all slices",
                self.count, self.size[0]
            ))),
        }
    }

    /// The slices as images.
    fn slices(&self) -> Geometry {
        let [depth, height, width] = self.size;
        Geometry { axis: 0, planes: self.count * depth, size: [height, width], channels: self.channels }
    }
}

/// Compiles what volumes of type `input` need.
pub(super) fn prepare(gpu: &Arc<Gpu>, input: &ValueType, attributes: &ResizeAttributes) -> Result<()> {
    let Some(from) = input.dtype else { return Ok(()) };
    compile(gpu, &kernel(DType::F32, attributes.output_dtype(from)?, 1), DType::F32)?;
    let channels = match (input.layout.and_then(|layout| layout.find(b'C')), &input.dims) {
        (Some(axis), Some(dims)) if axis + 1 == dims.len() => dims[axis],
        _ => Some(1),
    };
    match channels {
        Some(channels @ 1..=MAX_CHANNELS) => compile(gpu, &kernel(from, DType::F32, channels), from),
        // Decided by the batch, and compiled then.
        _ => Ok(()),
    }
}

/// Records the resize of every live sample to elements of type `to`.
pub(in crate::ops) fn run(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    jobs: &[Option<VolumeJob>],
    to: DType,
) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    let mut between = 0;
    let volumes = io.rows(|sample| {
        let job = jobs.get(sample.index()).and_then(Option::as_ref);
        let job = job.ok_or_else(|| Error::internal("a live sample was not planned"))?;
        let (source, target) = (sample.source(0)?, sample.target(0)?);
        let (slice, all) = job.between()?;
        let begin = between;
        between += all;
        Ok((job, source, target, slice, begin))
    });
    if volumes.is_empty() {
        return Ok(());
    }
    let middle = cx.recorder.scratch(between * size_of::<f32>())?;
    let at_once = channels_at_once(volumes.iter().map(|(job, ..)| job.channels));
    let (mut slices, mut depths) = (Vec::new(), Vec::new());
    for (job, source, target, slice, begin) in volumes {
        let resized = Images { address: middle + (begin * size_of::<f32>()) as u64, dtype: DType::F32 };
        let (Target { size, roi, filter }, geometry) = (&job.target, job.slices());
        let ([depth, height, width], source) = (*size, Images { address: source, dtype: from });
        let [z, y, x] = volume_parameters(job.size, *size, *roi, *filter);
        slices.extend(resized.rows(source, &geometry, [height, width], [y, x], at_once));
        depths.extend((0..job.count).map(|volume| ResampleRow {
            src: resized.address + (volume * job.size[0] * slice * size_of::<f32>()) as u64,
            dst: target + (volume * depth * slice * to.size()) as u64,
            planes: 0,
            y: AxisRow::new(z, job.size[0], depth),
            x: AxisRow::whole(slice),
            pitch: slice as u32,
            step: 1,
        }));
    }
    launch(cx, &kernel(from, DType::F32, at_once), from, at_once, slices)?;
    launch(cx, &kernel(DType::F32, to, 1), DType::F32, 1, depths)
}
