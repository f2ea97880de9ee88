//! `Laplacian`: the sum of second derivatives along the dimensions, each smoothed along the others.

use std::sync::Arc;

use super::separable::{self, Job, Term};
use super::spatial::{ScratchPool, Spatial, output_dtype, per_axis};
use super::{Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, SampleInputs, one_output};
use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::tensor::{BatchDesc, DType, Device, Element, ValueType};

/// Largest window: from there on float32 does not hold its weights.
const MAX_WINDOW: i64 = 31;

struct Laplacian {
    window_size: Arg,
    /// The window size when it is not given.
    smoothing_size: Option<Arg>,
    scale: Arg,
    is_normalized: bool,
    dtype: Option<DType>,
    jobs: Vec<Option<Job>>,
    scratch: ScratchPool,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Laplacian",
    aliases: &[],
    doc: "The sum of second derivatives along one to three dimensions",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::tensor(
            "window_size",
            "elements of a derivative's window, odd, one or per dimension; default 3",
        )
        .per_frame(),
        ArgSpec::tensor("smoothing_size", "elements of the windows across it; default the window's")
            .per_frame(),
        ArgSpec::tensor("scale", "factor of the derivatives, one or per dimension; default 1").per_frame(),
        ArgSpec::fixed("normalized_kernel", "whether the windows' sums are scaled to 1; default false"),
        ArgSpec::fixed("dtype", "element type of the output: float32 or, by default, the input's"),
    ],
    shared_args: &[],
    build: &build,
    outputs: &one_output,
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let arg = |name, default: f64| args.arg_or(name, &[default]);
    let is_normalized = args.bool("normalized_kernel")?.unwrap_or(false);
    if is_normalized && args.has("scale") {
        return Err(Error::invalid("arguments `scale` and `normalized_kernel` are both given, expected one"));
    }
    Ok(Box::new(Laplacian {
        window_size: arg("window_size", 3.0)?,
        smoothing_size: args.arg("smoothing_size")?,
        scale: arg("scale", 1.0)?,
        is_normalized,
        dtype: args.dtype("dtype")?,
        jobs: Vec::new(),
        scratch: ScratchPool::default(),
    }))
}

/// The type of the output.
fn output(from: DType, wanted: Option<DType>) -> Result<DType> {
    if matches!(from, DType::Bool | DType::F64) {
        return Err(Error::unsupported(format!("samples of type {from} have no derivatives here")));
    }
    output_dtype(from, wanted)
}

/// Sizes of windows, each odd and at least `least`.
fn sizes(name: &str, values: &[i64], axes: usize, least: i64) -> Result<Vec<usize>> {
    let values = per_axis(name, values, axes)?;
    match values.iter().find(|size| !(least..=MAX_WINDOW).contains(*size) || *size % 2 == 0) {
        None => Ok(values.iter().map(|&size| size as usize).collect()),
        Some(size) => Err(Error::invalid(format!(
            "argument `{name}` holds {size}, expected odd sizes from {least} to {MAX_WINDOW}"
        ))),
    }
}

/// `window` convolved with 1 and `second`.
fn spread(window: &[f32], second: f32) -> Vec<f32> {
    let padded = |i: usize| window.get(i).copied().unwrap_or_default();
    (0..=window.len()).map(|i| padded(i) * second + if i > 0 { padded(i - 1) } else { 0.0 }).collect()
}

/// The binomial coefficients: `size` of them.
fn smoothing(size: usize) -> Vec<f32> {
    (1..size).fold(vec![1.0], |window, _| spread(&window, 1.0))
}

/// The second difference of a smoothing window, `size` elements in all.
fn derivative(size: usize) -> Vec<f32> {
    spread(&spread(&smoothing(size - 2), -1.0), -1.0)
}

impl Laplacian {
    fn job(&self, sample: &SampleInputs<'_>) -> Result<Job> {
        let input = sample.input(0)?;
        let spatial = Spatial::new(input.layout, input.shape.len())?;
        let axes = spatial.axes;
        let deriving = sizes("window_size", &self.window_size.ints(sample)?, axes, 3)?;
        let across = match &self.smoothing_size {
            Some(size) => Some(sizes("smoothing_size", &size.ints(sample)?, axes, 1)?),
            None => None,
        };
        let scale = per_axis("scale", &self.scale.floats(sample)?, axes)?;
        let terms = (0..axes).map(|i| {
            let size = |j: usize| match &across {
                Some(across) if i != j => across[j],
                Some(_) => deriving[i],
                None => deriving[i],
            };
            let windows: Vec<Vec<f32>> =
                (0..axes).map(|j| if i == j { derivative(size(j)) } else { smoothing(size(j)) }).collect();
            let total: usize = (0..axes).map(size).sum();
            let normal = (-(total as f32 - axes as f32 - 2.0)).exp2();
            Term { windows, scale: if self.is_normalized { normal } else { scale[i] } }
        });
        Job::new(&input, spatial, terms.collect())
    }

    fn run<S, T>(&self, src: &[S], dst: &mut [T], job: &Job)
    where
        S: Element + ConvertSat<f32>,
        T: Element,
        f32: ConvertSat<T>,
    {
        let plane = job.plane();
        if plane == 0 {
            return;
        }
        let mut sums = vec![0.0f32; plane];
        self.scratch.with(|scratch| {
            for (src, dst) in src.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)) {
                sums.fill(0.0);
                for Term { windows, scale } in &job.terms {
                    let derivative = scratch.separable(src, &job.extents, job.inner, windows);
                    for (sum, value) in sums.iter_mut().zip(derivative) {
                        *sum += value * scale;
                    }
                }
                convert_slice(&sums, dst);
            }
        });
    }
}

impl Operator for Laplacian {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|from| output(from, self.dtype)).transpose()?;
        if let (Some(layout), Some(ndim)) = (ty.layout, ty.ndim()) {
            Spatial::new(layout, ndim)?;
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = output(desc.dtype, self.dtype)?;
        self.jobs = inputs.map(|sample| self.job(&sample).map(Some));
        Ok(vec![BatchDesc { dtype, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let this = &*self;
        let from = io.inputs().desc(0)?.dtype;
        let to = output(from, self.dtype)?;
        dispatch!(from, S => io.for_each_sample(cx, |sample| {
            let job = Job::of(&this.jobs, sample.index())?;
            let (input, output) = sample.unary()?;
            if to == from {
                this.run::<S, S>(input.as_slice()?, output.as_slice_mut()?, job);
            } else {
                this.run::<S, f32>(input.as_slice()?, output.as_slice_mut()?, job);
            }
            Ok(())
        }))
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        separable::prepare(gpu, &inputs[0], output(from, self.dtype)?, true)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        separable::run(cx, io, &self.jobs, output(from, self.dtype)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_opencv() {
        assert_eq!(smoothing(1), [1.0]);
        assert_eq!(smoothing(5), [1.0, 4.0, 6.0, 4.0, 1.0]);
        assert_eq!(derivative(3), [1.0, -2.0, 1.0]);
        assert_eq!(derivative(5), [1.0, 0.0, -2.0, 0.0, 1.0]);
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for size in [0, 1, 4, 33, -3, i64::MAX] {
            assert!(sizes("window_size", &[size], 2, 3).is_err(), "{size}");
        }
        assert!(sizes("window_size", &[3, 3, 3], 2, 3).is_err());
    }
}
