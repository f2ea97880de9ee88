//! Blurs and derivatives on a device: a launch for each dimension, with rows of the table for `kernels/convolve.cu`.

use super::Job;
use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::{GpuCx, GpuIo};
use crate::ops::filters::spatial::Spatial;
use crate::tensor::{DType, ValueType};

device_struct! {
    /// A sample, as the kernel sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        /// `taps` of them, an odd number
        window: u64 = "const float *",
        /// what is added; nothing: 0
        more: u64 = "const float *",
        elements: u64,
        /// of the dimension
        extent: u64,
        /// elements of the dimensions behind it
        inner: u64,
        taps: u32,
        scale: f32,
    }
}

fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("convolve", "convolve").dtype("FROM", from).dtype("TO", to)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    [(DType::U8, DType::F32), (DType::F32, DType::U8), (DType::F16, DType::F16), (DType::I64, DType::F32)]
        .map(|(from, to)| kernel(from, to))
        .to_vec()
}

/// Which pass over the dimensions of which term.
#[derive(Clone, Copy)]
struct Pass {
    is_first: bool,
    /// Of its term.
    is_last: bool,
    /// Of all terms.
    is_end: bool,
}

impl Pass {
    /// All between the first and the last go through float32.
    fn kernel(self, from: DType, to: DType) -> KernelSpec {
        kernel(if self.is_first { from } else { DType::F32 }, if self.is_end { to } else { DType::F32 })
    }
}

/// Compiles what an input of type `input` needs, for one term, or for one for each dimension.
pub(super) fn prepare(gpu: &Gpu, input: &ValueType, to: DType, term_for_each: bool) -> Result<()> {
    let (Some(from), Some(layout), Some(ndim)) = (input.dtype, input.layout, input.ndim()) else {
        return Ok(());
    };
    let axes = Spatial::new(layout, ndim)?.axes;
    for pass in 0..axes {
        let is_last = pass + 1 == axes;
        for is_end in [is_last, is_last && !(term_for_each && axes > 1)] {
            gpu.kernel(&Pass { is_first: pass == 0, is_last, is_end }.kernel(from, to))?;
        }
    }
    Ok(())
}

/// Records the work on every live sample.
pub(super) fn run(cx: &mut GpuCx<'_>, io: &GpuIo<'_>, jobs: &[Option<Job>], to: DType) -> Result<()> {
    let from = io.inputs().desc(0)?.dtype;
    let samples = io.rows(|sample| {
        let elements = sample.output_shape(0)?.volume()?;
        Ok((Job::of(jobs, sample.index())?, sample.source(0)?, sample.target(0)?, elements))
    });
    let Some((axes, terms)) = samples.first().map(|(job, ..)| (job.extents.len(), job.terms.len())) else {
        return Ok(());
    };
    let elements: usize = samples.iter().map(|(.., elements)| elements).sum();
    let most = samples.iter().map(|(.., elements)| *elements).max().unwrap_or_default();
    // What lies behind each pass but the last; behind that the sum of the terms so far, if there are several.
    let mut behind = Vec::new();
    for _ in 0..if terms > 1 { axes } else { axes - 1 } {
        behind.push(cx.recorder.scratch(elements * size_of::<f32>())?);
    }
    for (term, number) in (0..terms).flat_map(|term| (0..axes).map(move |number| (term, number))) {
        let is_last = number + 1 == axes;
        let pass = Pass { is_first: number == 0, is_last, is_end: is_last && term + 1 == terms };
        let axis = axes - 1 - number;
        let mut rows: Vec<Row> = Vec::with_capacity(samples.len());
        let mut offset = 0;
        let mut staged: Option<(&[f32], u64)> = None;
        for (job, source, target, elements) in &samples {
            let window = job.terms[term].windows[axis].as_slice();
            // Most batches have one window for all samples: it goes up once.
            let address = match staged {
                Some((known, address)) if known == window => address,
                _ => cx.recorder.stage(bytemuck::cast_slice(window))?.address(),
            };
            staged = Some((window, address));
            rows.push(Row {
                to: if pass.is_end { *target } else { behind[number] + offset },
                from: if pass.is_first { *source } else { behind[number - 1] + offset },
                window: address,
                more: if pass.is_last && term > 0 { behind[number] + offset } else { 0 },
                elements: *elements as u64,
                extent: job.extents[axis] as u64,
                inner: (job.extents[axis + 1..].iter().product::<usize>() * job.inner) as u64,
                taps: window.len() as u32,
                scale: if pass.is_last { job.terms[term].scale } else { 1.0 },
            });
            offset += (elements * size_of::<f32>()) as u64;
        }
        cx.launch(&pass.kernel(from, to), most, &NoParams::default(), &rows)?;
    }
    Ok(())
}
