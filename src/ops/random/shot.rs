//! `noise__Shot`: values replaced by counts of random events.

use std::sync::Arc;

use super::gpu::{Change, noise_kernel, run_noise};
use super::noise::check;
use super::{SEED, STRETCH, counts, drawing, seed};
use crate::cpu::convert::ConvertSat;
use crate::cpu::random::standard::poisson;
use crate::cpu::random::{BatchRandom, Seed};
use crate::deadline::Effort;
use crate::dispatch;
use crate::error::Result;
use crate::gpu::Gpu;
use crate::operator::shared::dtypes;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, Device, ValueType};

/// Of a device: numbers need different times, so that one that has drawn its goes on with the next.
const ELEMENTS_OF_A_THREAD: usize = 16;

struct Shot {
    factor: Arg,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample, for the batch at hand.
    factors: Vec<f32>,
    counts: Vec<usize>,
}

/// Nanoseconds that an element takes, whatever its value.
const NUMBER_TIME: f64 = 40.0;

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
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Shot {
        // What DALI does; its documentation says 20, and that a factor of 0 changes nothing.
        factor: args.arg("factor")?,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        factors: Vec::new(),
        counts: Vec::new(),
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
        self.counts = counts(&desc.shapes);
        Ok(vec![desc.clone()])
    }

    fn effort(&self, sample: usize) -> Effort {
        drawing(&self.counts, sample, NUMBER_TIME)
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (dtype, failures) = (io.inputs().desc(0)?.dtype, io.inputs().failures());
        dispatch!(dtype, T => io.for_each_sample(cx, |sample| {
            let (factor, random) = (self.factors[sample.index()], self.batch.sample(sample.index()));
            let (watch, mut elements) = (cx.watch(failures, sample.index()), random.elements());
            let (input, output) = sample.unary()?;
            let (from, to) = (input.as_slice::<T>()?, output.as_slice_mut::<T>()?);
            for (from, to) in from.chunks(STRETCH).zip(to.chunks_mut(STRETCH)) {
                for ((to, &from), mut random) in to.iter_mut().zip(from).zip(elements.by_ref()) {
                    let value: f32 = from.convert_sat();
                    let events = poisson(&mut random, f64::from(value / factor));
                    *to = (events as f32 * factor).convert_sat();
                }
                watch.charge(to.len())?;
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
