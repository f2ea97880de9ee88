//! `BatchPermutation`: for each sample the number of a sample, for `PermuteBatch`.

use super::{SEED, seed};
use crate::cpu::random::standard::shuffle;
use crate::cpu::random::{Seed, uniform_int};
use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct BatchPermutation {
    /// Whether a sample may come twice, and another not at all.
    repeats: bool,
    /// Whether no sample stays at its place.
    moves_all: bool,
    seed: Seed,
    numbers: Vec<u32>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "BatchPermutation",
    doc: "Numbers of samples in random order, for `PermuteBatch`",
    devices: &[Device::Cpu],
    inputs: (0, 0),
    args: &[
        SEED,
        ArgSpec::bool("allow_repetitions", "whether samples may come twice").or_bool(false),
        ArgSpec::bool("no_fixed_points", "whether no sample may stay at its place").or_bool(false),
        ArgSpec::int("_scope", "tells in which branch of a conditional it is").tensor().no_effect(),
    ],
    build: &build,
    outputs: &one_output,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(BatchPermutation {
        repeats: args.bool("allow_repetitions")?,
        moves_all: args.bool("no_fixed_points")?,
        seed: seed(args)?,
        numbers: Vec::new(),
    }))
}

impl Operator for BatchPermutation {
    fn infer(&self, _inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType::ranked(DType::I32, 0, Layout::NONE)])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let count = inputs.batch_size();
        let mut random = self.seed.batch(inputs.first_sample()).sample(0);
        let last = count.saturating_sub(1) as u32;
        self.numbers = (0..count as u32).collect();
        let numbers = &mut self.numbers;
        match (self.repeats, self.moves_all && count > 1) {
            (false, false) => shuffle(&mut random, numbers),
            // Sattolo's cycle.
            (false, true) => {
                for i in 0..last {
                    let other = i + 1 + uniform_int(&mut random, last - i - 1);
                    numbers.swap(i as usize, other as usize);
                }
            }
            (true, false) => numbers.fill_with(|| uniform_int(&mut random, last)),
            (true, true) => {
                for (i, number) in (0..).zip(numbers) {
                    let drawn = uniform_int(&mut random, last - 1);
                    *number = drawn + u32::from(drawn >= i);
                }
            }
        }
        Ok(vec![BatchDesc::new(DType::I32, Layout::NONE, vec![Shape::default(); count])])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let number = self.numbers.get(sample.index()).copied();
            let number = number.ok_or_else(|| Error::internal("a sample has no number"))?;
            sample.output(0)?.as_slice_mut::<i32>()?.fill(number as i32);
            Ok(())
        })
    }
}
