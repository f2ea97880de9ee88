//! What blurs and derivatives are made of: sums of neighbours along one dimension after the other. An operator gives
//! only its weights ([`Weights`]).

mod gpu;

use std::sync::Arc;
use std::time::Duration;

use super::spatial::{ScratchPool, Spatial, output_dtype};
use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::cpu::convolve::Along;
use crate::deadline::{Effort, Watch};
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::{Args, CpuCx, GpuCx, GpuIo, Inputs, Io, Operator, SampleInputs};
use crate::tensor::{BatchDesc, DType, Element, ValueType, View};
use crate::{dispatch, limits};

pub(in crate::ops) use gpu::kernels;

/// One sample's work: a sum of terms.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ops) struct Job {
    /// The dimensions that are filtered.
    pub(in crate::ops) extents: Vec<usize>,
    /// Channels of an element.
    pub(in crate::ops) inner: usize,
    pub(in crate::ops) terms: Vec<Term>,
}

/// The weights along each dimension, and what the result is multiplied by.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::ops) struct Term {
    pub(in crate::ops) windows: Vec<Vec<f32>>,
    pub(in crate::ops) scale: f32,
}

impl Job {
    /// The work on `input`.
    ///
    /// # Errors
    /// When a frame of it has too many elements.
    pub(in crate::ops) fn new(input: &View<'_>, spatial: Spatial, terms: Vec<Term>) -> Result<Self> {
        let inner =
            input.shape[spatial.range().end..].iter().try_fold(1, |all: usize, &n| all.checked_mul(n));
        let extents = input.shape[spatial.range()].to_vec();
        let plane = extents.iter().try_fold(inner.unwrap_or(usize::MAX), |all, &n| all.checked_mul(n));
        // Extents of nothing may be huge.
        let (Some(inner), Some(..=limits::MAX_FILTERED_ELEMENTS)) = (inner, plane) else {
            return Err(Error::invalid(format!(
                "an image of shape {}, expected at most {} elements",
                input.shape,
                limits::MAX_FILTERED_ELEMENTS
            )));
        };
        Ok(Self { extents, inner, terms })
    }

    /// The work on sample `index`.
    ///
    /// # Errors
    /// Internal, for a sample that failed.
    pub(in crate::ops) fn of(jobs: &[Option<Job>], index: usize) -> Result<&Job> {
        jobs.get(index).and_then(Option::as_ref).ok_or_else(|| Error::internal("a live sample has no window"))
    }

    /// Elements of a frame.
    pub(in crate::ops) fn plane(&self) -> usize {
        self.extents.iter().product::<usize>() * self.inner
    }

    /// What it takes for so many elements.
    fn effort(&self, elements: usize) -> Effort {
        let mut nanoseconds = 0.0;
        for term in &self.terms {
            let mut inner = self.inner;
            for (&extent, window) in self.extents.iter().zip(&term.windows).rev() {
                nanoseconds += Along { extent, inner }.nanoseconds(elements, window.len());
                inner = inner.saturating_mul(extent);
            }
        }
        // What lies behind the passes along two dimensions; and the sum of several terms.
        let buffers = 2 + usize::from(self.terms.len() > 1);
        Effort {
            time: Duration::from_nanos(nanoseconds as u64),
            scratch: self.plane().saturating_mul(buffers * size_of::<f32>()),
        }
    }
}

/// Where the weights of a sample come from.
pub(in crate::ops) trait Weights: Send + Sync {
    /// Whether there is a term for each dimension, not one in all.
    const TERM_FOR_EACH: bool;

    /// The work on one sample.
    ///
    /// # Errors
    /// When its arguments make no windows.
    fn job(&self, sample: &SampleInputs<'_>) -> Result<Job>;
}

struct Separable<W> {
    weights: W,
    dtype: Option<DType>,
    jobs: Vec<Option<Job>>,
    efforts: Vec<Effort>,
    scratch: ScratchPool,
}

/// An operator that filters by `weights`, to `dtype` of `args`.
///
/// # Errors
/// When `dtype` is no type.
pub(in crate::ops) fn operator<W: Weights + 'static>(weights: W, args: &Args) -> Result<Box<dyn Operator>> {
    let dtype = args.given_dtype("dtype")?;
    let (jobs, efforts, scratch) = (Vec::new(), Vec::new(), ScratchPool::default());
    Ok(Box::new(Separable { weights, dtype, jobs, efforts, scratch }))
}

impl<W: Weights> Separable<W> {
    fn output(&self, from: DType) -> Result<DType> {
        if matches!(from, DType::Bool | DType::F64) {
            return Err(Error::unsupported(format!("samples of type {from} cannot be filtered")));
        }
        output_dtype(from, self.dtype)
    }

    fn run<S, T>(&self, src: &[S], dst: &mut [T], job: &Job, watch: &Watch<'_>) -> Result<()>
    where
        S: Element + ConvertSat<f32>,
        T: Element,
        f32: ConvertSat<T>,
    {
        let plane = job.plane();
        if plane == 0 {
            return Ok(());
        }
        self.scratch.with(|scratch| {
            let mut sums = Vec::new();
            for (src, dst) in src.chunks_exact(plane).zip(dst.chunks_exact_mut(plane)) {
                if let [Term { windows, scale: 1.0 }] = job.terms.as_slice() {
                    convert_slice(scratch.separable(src, &job.extents, job.inner, windows, watch)?, dst);
                    continue;
                }
                sums.clear();
                sums.resize(plane, 0.0f32);
                for Term { windows, scale } in &job.terms {
                    let term = scratch.separable(src, &job.extents, job.inner, windows, watch)?;
                    sums.iter_mut().zip(term).for_each(|(sum, value)| *sum += value * scale);
                }
                convert_slice(&sums, dst);
            }
            Ok(())
        })
    }
}

impl<W: Weights> Operator for Separable<W> {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = ty.dtype.map(|from| self.output(from)).transpose()?;
        if let (Some(layout), Some(ndim)) = (ty.layout, ty.ndim()) {
            Spatial::new(layout, ndim)?;
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        let dtype = self.output(desc.dtype)?;
        self.jobs = inputs.map(|sample| self.weights.job(&sample).map(Some));
        let efforts = self.jobs.iter().zip(&desc.shapes).map(|(job, shape)| {
            job.as_ref().map_or_else(Effort::default, |job| job.effort(shape.volume().unwrap_or(usize::MAX)))
        });
        self.efforts = efforts.collect();
        Ok(vec![BatchDesc { dtype, ..desc.clone() }])
    }

    fn effort(&self, sample: usize) -> Effort {
        self.efforts.get(sample).copied().unwrap_or_default()
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (this, failures) = (&*self, io.inputs().failures());
        let from = io.inputs().desc(0)?.dtype;
        let to = self.output(from)?;
        dispatch!(from, S => io.for_each_sample(cx, |sample| {
            let job = Job::of(&this.jobs, sample.index())?;
            let watch = cx.watch(failures, sample.index());
            let (input, output) = sample.unary()?;
            if to == from {
                this.run::<S, S>(input.as_slice()?, output.as_slice_mut()?, job, &watch)
            } else {
                this.run::<S, f32>(input.as_slice()?, output.as_slice_mut()?, job, &watch)
            }
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        let Some(from) = inputs[0].dtype else { return Ok(()) };
        gpu::prepare(gpu, &inputs[0], self.output(from)?, W::TERM_FOR_EACH)
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        gpu::run(cx, io, &self.jobs, self.output(from)?)
    }
}
