//! Resizing on the device: rows of the table for `kernels/resample.cu`.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use super::attributes::{Geometry, ResizeAttributes, Target};
use super::{Job, job};
use crate::cpu::resample::AxisParameters;
use crate::error::Result;
use crate::gpu::{Gpu, Grid, KernelSpec, NoParams};
use crate::ops::{GpuCx, GpuIo};
use crate::tensor::{DType, ValueType};

/// Rows and columns of the output that a block makes, and its threads; as in the kernel.
const TILE: [usize; 2] = [16, 32];
const THREADS: u32 = 128;

/// Channels that one thread computes at once, at most.
pub(in crate::ops) const MAX_CHANNELS: usize = 4;

/// One axis, as the kernel sees it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct AxisRow {
    start: f32,
    scale: f32,
    table_scale: f32,
    filter: i32,
    taps: i32,
    length: i32,
    size: i32,
}

/// One image, or one channel of an image, as the kernel sees it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(in crate::ops) struct ResampleRow {
    src: u64,
    dst: u64,
    y: AxisRow,
    x: AxisRow,
    pitch: u32,
    step: u32,
}

impl ResampleRow {
    /// To make `target` of the image at `src` with interleaved channels.
    pub(in crate::ops) fn new(src: u64, dst: u64, geometry: &Geometry, target: &Target) -> Self {
        let axis = |d: usize| {
            let parameters = AxisParameters::new(target.filter, target.roi[d], target.size[d]);
            AxisRow {
                start: parameters.start,
                scale: parameters.scale,
                table_scale: parameters.table_scale,
                filter: parameters.filter,
                taps: parameters.taps as i32,
                length: geometry.size[d] as i32,
                size: target.size[d] as i32,
            }
        };
        let pitch = (geometry.size[1] * geometry.channels) as u32;
        Self { src, dst, y: axis(0), x: axis(1), pitch, step: geometry.channels as u32 }
    }
}

/// Blocks along x for an output of `size` pixels.
pub(in crate::ops) fn tiles(size: [usize; 2]) -> usize {
    size[0].div_ceil(TILE[0]) * size[1].div_ceil(TILE[1])
}

/// Records a launch over `rows`, the largest of which has `tiles` tiles.
pub(in crate::ops) fn launch<R: Pod>(
    cx: &mut GpuCx<'_>,
    spec: &KernelSpec,
    tiles: usize,
    rows: &[R],
) -> Result<()> {
    /// The largest extent of a grid along y.
    const MAX_ROWS: usize = 65_535;
    for rows in rows.chunks(MAX_ROWS) {
        let grid = Grid { blocks: [tiles as u32, rows.len() as u32, 1], threads: THREADS };
        cx.recorder.launch(spec, grid, &NoParams::default(), rows)?;
    }
    Ok(())
}

/// The kernel from images of `from` to images of `to`, `channels` channels at once.
fn kernel(from: DType, to: DType, channels: usize) -> KernelSpec {
    KernelSpec::new::<ResampleRow, NoParams>("resample", "resample")
        .dtype("SRC", from)
        .dtype("MID", to)
        .dtype("DST", to)
        .define("CH", channels)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let types = [(DType::U8, DType::U8), (DType::U8, DType::F32), (DType::I16, DType::I16)];
    types.into_iter().flat_map(|(from, to)| [1, 3].map(|channels| kernel(from, to, channels))).collect()
}

/// Compiles what images of type `input` need.
pub(in crate::ops) fn prepare(
    gpu: &Arc<Gpu>,
    input: &ValueType,
    attributes: &ResizeAttributes,
) -> Result<()> {
    let channels = match (input.layout, &input.dims) {
        (Some(layout), Some(dims)) => layout.find(b'C').and_then(|axis| *dims.get(axis)?),
        _ => None,
    };
    match (input.dtype, channels) {
        (Some(from), Some(channels @ 1..=MAX_CHANNELS)) => {
            gpu.kernel(&kernel(from, attributes.output_dtype(from)?, channels)).map(drop)
        }
        // Decided by the batch, and compiled then.
        _ => Ok(()),
    }
}

/// Records the resize of every live sample to elements of type `to`.
pub(in crate::ops) fn run(cx: &mut GpuCx<'_>, io: &GpuIo<'_>, jobs: &[Option<Job>], to: DType) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    let mut counts = jobs.iter().flatten().map(|job| job.geometry.channels);
    let first = counts.next().unwrap_or(1);
    // Images with many channels, or not all with as many: one channel after the other.
    let together = first <= MAX_CHANNELS && counts.all(|channels| channels == first);
    let mut most = 0;
    let rows = io.rows(|sample| {
        let job = job(jobs, sample.index())?;
        let Geometry { size, channels, planes, .. } = job.geometry;
        most = most.max(tiles(job.target.size));
        let (source, target) = (sample.source(0)?, sample.target(0)?);
        let bytes = |size: [usize; 2], dtype: DType| (size[0] * size[1] * channels * dtype.size()) as u64;
        let groups = if together { 1 } else { channels };
        let mut rows = Vec::with_capacity(planes * groups);
        for plane in 0..planes as u64 {
            for channel in 0..groups as u64 {
                rows.push(ResampleRow::new(
                    source + plane * bytes(size, from) + channel * from.size() as u64,
                    target + plane * bytes(job.target.size, to) + channel * to.size() as u64,
                    &job.geometry,
                    &job.target,
                ));
            }
        }
        Ok(rows)
    });
    let rows: Vec<ResampleRow> = rows.into_iter().flatten().collect();
    launch(cx, &kernel(from, to, if together { first } else { 1 }), most, &rows)
}
