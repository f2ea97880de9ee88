//! The blur on the device: a launch for each dimension, rows of the table for `kernels/convolve.cu`.

use bytemuck::{Pod, Zeroable};

use super::{Job, job_of, output};
use crate::error::Result;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::ops::spatial::{MAX_AXES, Spatial};
use crate::ops::{GpuCx, GpuIo};
use crate::tensor::{DType, ValueType};

/// A sample, as the kernel sees it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    to: u64,
    from: u64,
    window: u64,
    elements: u64,
    extent: u64,
    inner: u64,
    taps: u64,
}

fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::new::<Row, NoParams>("convolve", "convolve").dtype("FROM", from).dtype("TO", to)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    [(DType::U8, DType::F32), (DType::F32, DType::U8), (DType::F16, DType::F16), (DType::I64, DType::F32)]
        .map(|(from, to)| kernel(from, to))
        .to_vec()
}

/// The types of one pass of `axes`, which go through float32.
fn types(pass: usize, axes: usize, from: DType, to: DType) -> (DType, DType) {
    (if pass == 0 { from } else { DType::F32 }, if pass + 1 == axes { to } else { DType::F32 })
}

/// Compiles what an input of type `input` needs.
pub(super) fn prepare(gpu: &Gpu, input: &ValueType, wanted: Option<DType>) -> Result<()> {
    let (Some(from), Some(layout), Some(ndim)) = (input.dtype, input.layout, input.ndim()) else {
        return Ok(());
    };
    let axes = Spatial::new(layout, ndim)?.axes;
    for pass in 0..axes {
        let (from, to) = types(pass, axes, from, output(from, wanted)?);
        gpu.kernel(&kernel(from, to))?;
    }
    Ok(())
}

/// Records the work on every live sample.
pub(super) fn run(cx: &mut GpuCx<'_>, io: &GpuIo<'_>, jobs: &[Option<Job>], to: DType) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    let samples = io.rows(|sample| {
        let elements = sample.output_shape(0)?.volume()?;
        Ok((job_of(jobs, sample.index())?, sample.source(0)?, sample.target(0)?, elements))
    });
    let Some(axes) = samples.first().map(|(job, ..)| job.extents.len()) else { return Ok(()) };
    let elements: usize = samples.iter().map(|(.., elements)| elements).sum();
    let most = samples.iter().map(|(.., elements)| *elements).max().unwrap_or_default();
    // What lies between two passes; the third of three reads what the second made.
    let mut between = Vec::new();
    for _ in 1..axes.min(MAX_AXES) {
        between.push(cx.recorder.allocate(elements * size_of::<f32>())?.address());
    }
    for pass in 0..axes {
        let axis = axes - 1 - pass;
        let mut rows: Vec<Row> = Vec::with_capacity(samples.len());
        let mut offset = 0;
        let mut staged: Option<(&[f32], u64)> = None;
        for (job, source, target, elements) in &samples {
            let window = job.windows[axis].as_slice();
            // Most batches have one window for all samples: it goes up once.
            let address = match staged {
                Some((known, address)) if known == window => address,
                _ => cx.recorder.stage(bytemuck::cast_slice(window))?.address(),
            };
            staged = Some((window, address));
            rows.push(Row {
                to: if pass + 1 == axes { *target } else { between[pass] + offset },
                from: if pass == 0 { *source } else { between[pass - 1] + offset },
                window: address,
                elements: *elements as u64,
                extent: job.extents[axis] as u64,
                inner: (job.extents[axis + 1..].iter().product::<usize>() * job.inner) as u64,
                taps: window.len() as u64,
            });
            offset += (elements * size_of::<f32>()) as u64;
        }
        let (from, to) = types(pass, axes, from, to);
        cx.launch(&kernel(from, to), most, &NoParams::default(), &rows)?;
    }
    Ok(())
}
