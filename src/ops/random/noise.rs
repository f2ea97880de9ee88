//! `noise__Gaussian`: elements with normal numbers added.

use std::sync::Arc;

use multiversion::multiversion;

use super::gpu::{Change, noise_kernel, run_noise};
use super::normal::{NORMAL, Normal};
use super::{Distribution, SEED, STRETCH, counts, drawing, is_wide, seed};
use crate::cpu::convert::ConvertSat;
use crate::cpu::random::{BatchRandom, Elements, Seed};
use crate::deadline::Effort;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::operator::shared::dtypes;
use crate::operator::{CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "noise__Gaussian",
    doc: "Adds normal random numbers to every element",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[SEED],
    shared_args: &[NORMAL],
    build: &|args, _| {
        let (normal, seed) = (Normal::new(args)?, seed(args)?);
        Ok(Box::new(Gaussian {
            normal,
            seed,
            batch: BatchRandom::default(),
            parameters: Vec::new(),
            counts: Vec::new(),
        }))
    },
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

struct Gaussian {
    normal: Normal,
    seed: Seed,
    batch: BatchRandom,
    parameters: Vec<(f32, f32)>,
    counts: Vec<usize>,
}

/// Noise is for numbers that DALI draws noise for.
pub(super) fn check(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F16 | DType::F64 | DType::Bool) {
        return Err(Error::unsupported(format!("noise for elements of type {dtype}")));
    }
    Ok(())
}

/// Writes the elements of `src` with a normal number added to each; gives back the random numbers that are left.
#[multiversion(targets("x86_64+avx+avx2+fma"))]
fn add_noise<T>(
    src: &[T],
    dst: &mut [T],
    mut random: Elements,
    parameters: &(f32, f32),
    is_wide: bool,
) -> Elements
where
    T: ConvertSat<f32> + ConvertSat<f64>,
    f32: ConvertSat<T>,
    f64: ConvertSat<T>,
{
    let elements = dst.iter_mut().zip(src).zip(random.by_ref());
    if is_wide {
        for ((to, from), mut random) in elements {
            let from: f64 = from.convert_sat();
            *to = (from + Normal::draw_f64(parameters, &mut random)).convert_sat();
        }
    } else {
        for ((to, from), mut random) in elements {
            let from: f32 = from.convert_sat();
            *to = (from + Normal::draw_f32(parameters, &mut random)).convert_sat();
        }
    }
    random
}

impl Operator for Gaussian {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        self.batch = self.seed.batch(inputs.first_sample());
        self.parameters = inputs.map(|sample| self.normal.parameters(&sample, desc.dtype));
        self.counts = counts(&desc.shapes);
        Ok(vec![desc.clone()])
    }

    fn effort(&self, sample: usize) -> Effort {
        drawing(&self.counts, sample, Normal::NUMBER_TIME)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (dtype, failures) = (io.inputs().desc(0)?.dtype, io.inputs().failures());
        dispatch!(dtype, T => io.for_each_sample(cx, |sample| {
            let (parameters, random) = (&self.parameters[sample.index()], self.batch.sample(sample.index()));
            let (watch, mut random) = (cx.watch(failures, sample.index()), random.elements());
            let (input, output) = sample.unary()?;
            let (from, to) = (input.as_slice::<T>()?, output.as_slice_mut::<T>()?);
            for (from, to) in from.chunks(STRETCH).zip(to.chunks_mut(STRETCH)) {
                random = add_noise(from, to, random, parameters, is_wide(dtype));
                watch.charge(to.len())?;
            }
            Ok(())
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&noise_kernel("gaussian", dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        run_noise(cx, io, ("gaussian", 1), &self.batch, |sample, _| {
            let (mean, stddev) = self.parameters[sample];
            Ok(Change { channels: 1, steps: [1, 1], bounds: [mean, stddev], ..Change::default() })
        })
    }
}
