//! The filter on the device: rows of the table for `kernels/filter.cu`. The weights stay where they are.

use super::{Job, job_of};
use crate::cpu::window::Outside;
use crate::error::Result;
use crate::gpu::KernelSpec;
use crate::gpu::layout::device_struct;
use crate::operator::shared::border::DeviceBorder;
use crate::operator::{GpuCx, GpuIo};
use crate::tensor::DType;

device_struct! {
    /// An image, as the kernel sees it. Pairs are rows and columns.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        weights: u64 = "const float *",
        /// nothing: 0
        fill: u64 = "const FROM *",
        /// rows, columns
        source: [i32; 2],
        target: [i32; 2],
        size: [i32; 2],
        before: [i32; 2],
        channels: i32,
        unused: i32,
    }
}

device_struct! {
    struct Params as Params {
        border: u32 = "Border" of DeviceBorder,
    }
}

pub(super) fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("filter", "filter").dtype("FROM", from).dtype("TO", to)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    vec![kernel(DType::U8, DType::U8), kernel(DType::I16, DType::F32)]
}

/// Records the work on every live sample.
pub(super) fn run(
    cx: &mut GpuCx<'_>,
    io: &GpuIo<'_>,
    jobs: &[Option<Job>],
    to: DType,
    outside: Outside,
) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    let has_fill = io.inputs().len() == 3;
    let pair = |size: [usize; 2]| size.map(|extent| extent as i32);
    let mut most = 0;
    let rows = io.rows(|sample| {
        let job = job_of(jobs, sample.index())?;
        let elements = |size: [usize; 2]| size[0] * size[1] * job.channels;
        most = most.max(elements(job.to));
        let (source, target) = (sample.source(0)?, sample.target(0)?);
        let weights = sample.source(1)?;
        let fill = if has_fill { sample.source(2)? } else { 0 };
        let row = |plane: usize| Row {
            to: target + (plane * elements(job.to) * to.size()) as u64,
            from: source + (plane * elements(job.from) * from.size()) as u64,
            weights,
            fill,
            source: pair(job.from),
            target: pair(job.to),
            size: pair(job.weights),
            before: pair(job.before),
            channels: job.channels as i32,
            unused: 0,
        };
        Ok((0..job.planes).map(row).collect::<Vec<_>>())
    });
    let rows: Vec<Row> = rows.into_iter().flatten().collect();
    let border = DeviceBorder::from(outside).number();
    cx.launch(&kernel(from, to), most, &Params { border }, &rows)
}
