//! `noise__Shot`: values replaced by counts of random events.

use std::sync::Arc;

use super::gpu::{Change, noise_kernel, run_noise};
use super::noise::check;
use super::{SEED, seed};
use crate::cpu::convert::ConvertSat;
use crate::cpu::random::standard::poisson;
use crate::cpu::random::{BatchRandom, Seed};
use crate::dispatch;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::ops::{Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, dtypes, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

/// Of a device: numbers need different times, so that one that has drawn its goes on with the next.
const ELEMENTS_OF_A_THREAD: usize = 16;

struct Shot {
    factor: Arg,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample, for the batch at hand.
    factors: Vec<f32>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "noise__Shot",
    doc: "The noise of counted photons",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        SEED,
        ArgSpec::float("factor", "what one event adds, with 0 all becomes 0").tensor().or_float(12.0),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Shot {
        // What DALI does; its documentation says 20, and that a factor of 0 changes nothing.
        factor: args.arg_or("factor", &[12.0])?,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        factors: Vec::new(),
    }))
}

impl Operator for Shot {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        dtypes::like_input(inputs, check)
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        self.batch = self.seed.batch(inputs.first_sample());
        self.factors = inputs.map(|sample| self.factor.float(&sample));
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let dtype = io.inputs().desc(0)?.dtype;
        dispatch!(dtype, T => io.for_each_sample(cx, |sample| {
            let (factor, random) = (self.factors[sample.index()], self.batch.sample(sample.index()));
            let (input, output) = sample.unary()?;
            let pairs = output.as_slice_mut::<T>()?.iter_mut().zip(input.as_slice::<T>()?);
            for ((to, &from), mut random) in pairs.zip(random.elements()) {
                let value: f32 = from.convert_sat();
                let events = poisson(&mut random, f64::from(value / factor));
                *to = (events as f32 * factor).convert_sat();
            }
            Ok(())
        }))
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |dtype| gpu.kernel(&noise_kernel("shot", dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        run_noise(cx, io, ("shot", ELEMENTS_OF_A_THREAD), &self.batch, |sample, _| {
            let bounds = [self.factors[sample], 0.0];
            Ok(Change { channels: 1, steps: [1, 1], bounds, ..Change::default() })
        })
    }
}
