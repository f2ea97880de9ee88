//! Affine maps on the device: rows of the table for `kernels/warp.cu`.

use super::{Job, job};
use crate::cpu::warp::{Map, Sampling};
use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::DType;

device_struct! {
    /// An image or a volume, as the kernel sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        /// coefficients of x, y, z and an offset, for x, y and z
        map: Map,
        source: [i32; 3],
        target: [i32; 3],
        channels: u32,
        has_fill: u32,
        fill: f32,
        unused: u32,
    }
}

pub(super) fn kernel(from: DType, to: DType, sampling: Sampling, is_volume: bool) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("warp", "warp")
        .dtype("FROM", from)
        .dtype("TO", to)
        .define("LINEAR", u8::from(sampling == Sampling::Linear))
        .define("NDIM", if is_volume { 3 } else { 2 })
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    [
        kernel(DType::U8, DType::U8, Sampling::Linear, false),
        kernel(DType::U8, DType::F32, Sampling::Nearest, false),
        kernel(DType::F32, DType::I16, Sampling::Linear, true),
        kernel(DType::I32, DType::I32, Sampling::Nearest, true),
    ]
    .to_vec()
}

/// Records the work on every live sample.
pub(super) fn run(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    jobs: &[Option<Job>],
    to: DType,
    sampling: Sampling,
    fill: Option<f32>,
) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    let (mut most, mut is_volume) = (0, false);
    let rows = io.rows(|sample| {
        let job = job(jobs, sample.index())?;
        let bytes = |size: [usize; 3], dtype: DType| {
            (size.iter().product::<usize>() * job.channels * dtype.size()) as u64
        };
        most = most.max(job.to.iter().product());
        is_volume = job.is_volume;
        let (source, target) = (sample.source(0)?, sample.target(0)?);
        let row = |plane: u64| Row {
            to: target + plane * bytes(job.to, to),
            from: source + plane * bytes(job.from, from),
            map: job.map,
            source: job.from.map(|extent| extent as i32),
            target: job.to.map(|extent| extent as i32),
            channels: job.channels as u32,
            has_fill: u32::from(fill.is_some()),
            fill: fill.unwrap_or_default(),
            unused: 0,
        };
        Ok((0..job.planes as u64).map(row).collect::<Vec<_>>())
    });
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    cx.launch(&kernel(from, to, sampling, is_volume), most, &NoParams::default(), &rows)
}
