//! Resizing on the device by `kernels/resample.cu`, and the weights of axes, which are made before.

use std::sync::Arc;

use super::attributes::ResizeAttributes;
use super::exact_gpu::{self, Tables};
use super::geometry::Geometry;
use super::rows::{
    AxisRow, HEADER, MAX_CHANNELS, MAX_TILES, Params, ResampleRow, Resampled, THREADS, TILE_H, TILE_W,
};
use super::{Job, exact, job};
use crate::cpu::resample::{AxisParameters, axis_parameters};
use crate::error::{Error, Result};
use crate::gpu::{Gpu, Grid, KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::{DType, ValueType};

/// Images of which those of few rows a tile have a launch of their own: it makes them sooner, and a launch takes time
/// itself.
const WORTH_A_LAUNCH: usize = 32;

/// Blocks of threads that are enough for any device: where there are more tiles, a block makes several.
const ENOUGH_BLOCKS: usize = 8_192;

/// Records launches over `rows` of elements of type `from`, of which `spec` computes `at_once` channels at once: what
/// makes the weights of their axes, and the kernel.
pub(in crate::ops) fn launch<R: Resampled>(
    cx: &mut GpuCx<'_>,
    spec: &KernelSpec,
    from: DType,
    at_once: usize,
    mut rows: Vec<R>,
) -> Result<()> {
    /// The largest extent of a grid along y.
    const MAX_ROWS: usize = 65_535;
    for row in rows.iter_mut().map(Resampled::resample) {
        let are_bytes = from == DType::U8 && row.step as usize == at_once;
        (row.y.is_split, row.x.is_merged) = (are_bytes.into(), are_bytes.into());
    }
    make_weights(cx, &mut rows)?;
    let has_many = |row: &mut R| {
        let axis = &row.resample().y;
        axis.is_split != 0 && axis.has_many()
    };
    let mut many: Vec<R> = rows.extract_if(.., has_many).collect();
    if !many.is_empty() && rows.len() + many.len() < WORTH_A_LAUNCH {
        many.append(&mut rows);
    }
    for (spec, rows) in [(spec, rows), (&of_many_rows(spec), many)] {
        let counts = |row: &R| {
            let [height, width] = row.size();
            [height.div_ceil(TILE_H), width.div_ceil(TILE_W)]
        };
        let all: usize = rows.iter().map(|row| counts(row).iter().product::<usize>()).sum();
        let tiles = all.div_ceil(ENOUGH_BLOCKS).clamp(1, MAX_TILES);
        for rows in rows.chunks(MAX_ROWS) {
            let blocks = rows.iter().map(counts).map(|[down, across]| down.div_ceil(tiles) * across).max();
            let grid = Grid { blocks: [blocks.unwrap_or(0) as u32, rows.len() as u32, 1], threads: THREADS };
            cx.recorder.launch(spec, grid, &Params { tiles: tiles as u32 }, rows)?;
        }
    }
    Ok(())
}

/// Records what makes the weights of all axes of `rows`. Most images of a batch have those of the one before.
fn make_weights<R: Resampled>(cx: &mut GpuCx<'_>, rows: &mut [R]) -> Result<()> {
    let mut axes: Vec<AxisRow> = Vec::new();
    let (mut recent, mut bytes) = ([None::<AxisRow>; 2], 0);
    for row in &mut *rows {
        let ResampleRow { y, x, .. } = row.resample();
        for (axis, recent) in [y, x].into_iter().zip(&mut recent) {
            match recent.filter(|known| known.as_unmade() == *axis) {
                Some(known) => axis.made = known.made,
                None => {
                    // From the beginning of what is not allocated yet.
                    axis.made = bytes as u64;
                    bytes += axis.made_bytes();
                    axes.push(*axis);
                }
            }
            *recent = Some(*axis);
        }
    }
    if axes.is_empty() {
        return Ok(());
    }
    let most = cx.recorder.gpu().most_of_a_value();
    if bytes > most {
        return Err(Error::invalid(format!("{bytes} bytes of weights of a batch, expected at most {most}")));
    }
    let memory = cx.recorder.scratch(bytes)?;
    let rows = rows.iter_mut().map(Resampled::resample).flat_map(|row| [&mut row.y, &mut row.x]);
    for axis in rows.chain(&mut axes) {
        axis.made += memory;
    }
    let most = axes.iter().map(|axis| axis.size as usize).max().unwrap_or(0);
    cx.launch(&weights_kernel(), most, &NoParams::default(), &axes)
}

/// The kernel that makes weights.
fn weights_kernel() -> KernelSpec {
    KernelSpec::of::<AxisRow, NoParams>("resample_weights", "resample_weights").header(HEADER).early()
}

/// Compiles `kernel`, for elements of type `from`, and what makes weights for it.
pub(in crate::ops) fn compile(gpu: &Gpu, kernel: &KernelSpec, from: DType) -> Result<()> {
    gpu.kernel(&weights_kernel())?;
    if from == DType::U8 {
        gpu.kernel(&of_many_rows(kernel))?;
    }
    gpu.kernel(kernel).map(drop)
}

/// `kernel`, where tiles are made of any number of rows of bytes.
fn of_many_rows(kernel: &KernelSpec) -> KernelSpec {
    kernel.clone().define("MANY_ROWS", 1)
}

/// A kernel for rows of type `R`.
pub(in crate::ops) fn kernel_for<R: Resampled>() -> KernelSpec {
    KernelSpec::of::<R, Params>("resample", "resample").header(HEADER).early()
}

/// The kernel from images of `from` to images of `to`, `channels` channels at once.
pub(super) fn kernel(from: DType, to: DType, channels: usize) -> KernelSpec {
    kernel_for::<ResampleRow>().dtype("SRC", from).dtype("MID", to).dtype("DST", to).define("CH", channels)
}

/// `kernel`, of images of bytes with three channels, for rows of which some may have planes, or none has.
pub(in crate::ops) fn of_planes(kernel: KernelSpec, some: bool) -> KernelSpec {
    if some { kernel.define("PLANES", 1) } else { kernel }
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let types =
        [(DType::U8, DType::U8), (DType::U8, DType::F32), (DType::I16, DType::I16), (DType::F32, DType::U8)];
    let plain = types.into_iter().flat_map(|(from, to)| [1, 3].map(|channels| kernel(from, to, channels)));
    let bytes = kernel(DType::U8, DType::F32, 3);
    let planes = of_planes(bytes.clone(), true);
    let dali = plain.chain([of_many_rows(&bytes), of_many_rows(&planes), planes, weights_kernel()]);
    dali.chain(exact_gpu::kernels()).collect()
}

/// Compiles what images of type `input` need, some of which may be `planes`.
pub(in crate::ops) fn prepare(
    gpu: &Arc<Gpu>,
    input: &ValueType,
    attributes: &ResizeAttributes,
    planes: bool,
) -> Result<()> {
    if let Some(exact) = &attributes.exact {
        exact.check_on_gpu(input.dtype.unwrap_or(DType::U8))?;
        return exact_gpu::prepare(gpu, input, exact.arithmetic);
    }
    let channels = match (input.layout, &input.dims) {
        (Some(layout), Some(dims)) => layout.find(b'C').and_then(|axis| *dims.get(axis)?),
        _ => None,
    };
    match (input.dtype, channels) {
        (Some(from), Some(channels @ 1..=MAX_CHANNELS)) => {
            let kernel = kernel(from, attributes.output_dtype(from)?, channels);
            if planes {
                compile(gpu, &of_planes(kernel.clone(), true), from)?;
            }
            compile(gpu, &kernel, from)
        }
        // Decided by the batch, and compiled then.
        _ => Ok(()),
    }
}

/// How many channels a thread computes at once, of images with `counts` channels: of many, or if not all have as many,
/// one after the other.
pub(super) fn channels_at_once(mut counts: impl Iterator<Item = usize>) -> usize {
    let first = counts.next().unwrap_or(1);
    if first <= MAX_CHANNELS && counts.all(|channels| channels == first) { first } else { 1 }
}

/// Images one behind the other, of elements of a type.
#[derive(Clone, Copy)]
pub(super) struct Images {
    pub(super) address: u64,
    pub(super) dtype: DType,
}

impl Images {
    /// The rows that make these images of `source`, `at_once` channels at once.
    pub(super) fn rows(
        self,
        source: Images,
        geometry: &Geometry,
        target: [usize; 2],
        axes: [AxisParameters; 2],
        at_once: usize,
    ) -> impl Iterator<Item = ResampleRow> {
        let Geometry { size, channels, planes, .. } = *geometry;
        let places =
            (0..planes).flat_map(move |plane| (0..channels).step_by(at_once).map(move |c| (plane, c)));
        places.map(move |(plane, channel)| {
            let place = |images: Images, [height, width]: [usize; 2]| {
                let elements = plane * height * width * channels + channel;
                images.address + (elements * images.dtype.size()) as u64
            };
            ResampleRow::of_axes(place(source, size), place(self, target), geometry, target, axes)
        })
    }
}

/// Records the resize of every live sample to elements of type `to`. `tables` are another library's, kept from batch to
/// batch.
pub(in crate::ops) fn run(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    jobs: &[Option<Job>],
    to: DType,
    tables: &mut Tables,
) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    if jobs.iter().flatten().any(|job| job.task.is_some()) {
        exact::check_on_gpu(from)?;
        return exact_gpu::run(cx, io, jobs, tables);
    }
    let at_once = channels_at_once(jobs.iter().flatten().map(|job| job.geometry.channels));
    let rows = io.rows(|sample| {
        let job = job(jobs, sample.index())?;
        let [address, planes] = sample.elements_or_planes()?;
        let source = Images { address, dtype: from };
        let made = Images { address: sample.target(0)?, dtype: to };
        let Job { geometry, target, .. } = job;
        let axes = axis_parameters(geometry.size, target.size, target.roi, [target.filter; 2]);
        let mut rows: Vec<_> = made.rows(source, geometry, target.size, axes, at_once).collect();
        if planes != 0 {
            let [row] = rows.as_mut_slice() else {
                return Err(Error::internal("planes of a picture are not read at once"));
            };
            row.planes = planes;
        }
        Ok(rows)
    });
    let rows = rows.concat();
    let kernel = of_planes(kernel(from, to, at_once), rows.iter().any(|row| row.planes != 0));
    launch(cx, &kernel, from, at_once, rows)
}
