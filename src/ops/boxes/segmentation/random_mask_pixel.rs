//! `segmentation__RandomMaskPixel`: the position of a random element of a map.

use crate::cpu::convert::ConvertSat;
use crate::cpu::random::{BatchRandom, Philox, Seed, uniform_int};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::{Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs, one_output};
use crate::ops::random::{SEED, seed};
use crate::tensor::{BatchDesc, DType, Device, Element, Layout, Shape, ValueType, View};

struct RandomMaskPixel {
    foreground: Arg,
    threshold: Arg,
    value: Option<Arg>,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample.
    chosen: Vec<Choice>,
}

/// Which elements a position is drawn from.
#[derive(Debug, Clone, Copy, Default)]
enum Choice {
    #[default]
    All,
    Above(f64),
    Equal(f64),
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "segmentation__RandomMaskPixel",
    doc: "The position of a random element of a map",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        SEED,
        ArgSpec::int("foreground", "nonzero: one of the foreground; 0: any").tensor().or_int(0),
        ArgSpec::float("threshold", "above it is the foreground").tensor().or_float(0.0),
        ArgSpec::int("value", "the value of the foreground, in place of `threshold`").tensor(),
    ],
    build: &build,
    outputs: &one_output,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    if args.has("value") && args.has("threshold") {
        return Err(Error::invalid("arguments `value` and `threshold` exclude each other"));
    }
    Ok(Box::new(RandomMaskPixel {
        foreground: args.arg("foreground")?,
        threshold: args.arg("threshold")?,
        value: args.given_arg("value")?,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        chosen: Vec::new(),
    }))
}

impl RandomMaskPixel {
    fn choice(&self, sample: &SampleInputs<'_>) -> Result<Choice> {
        let shape = sample.input(0)?.shape;
        if shape.contains(&0) {
            return Err(Error::invalid(format!("a map of shape {shape}, expected elements")));
        }
        if self.foreground.int(sample)? == 0 {
            return Ok(Choice::All);
        }
        Ok(match &self.value {
            Some(value) => Choice::Equal(value.int(sample)? as f64),
            None => Choice::Above(f64::from(self.threshold.float(sample)?)),
        })
    }
}

/// The number of the element that is drawn; `None` if none can be.
fn draw<T: Element + ConvertSat<f64>>(
    map: &View<'_>,
    choice: Choice,
    random: &mut Philox,
) -> Result<Option<usize>> {
    let fits = |value: T| match choice {
        Choice::All => false,
        Choice::Above(threshold) => value.convert_sat() > threshold,
        Choice::Equal(wanted) => value.convert_sat() == wanted,
    };
    let elements = map.as_slice::<T>()?;
    let count = elements.iter().filter(|&&value| fits(value)).count();
    if count == 0 {
        return Ok(None);
    }
    let nth = uniform_int(random, u32::try_from(count - 1).unwrap_or(u32::MAX)) as usize;
    Ok((0..elements.len()).filter(|&i| fits(elements[i])).nth(nth))
}

impl Operator for RandomMaskPixel {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let dims = Some(vec![inputs[0].ndim()]);
        Ok(vec![ValueType { dtype: Some(DType::I64), dims, layout: Some(Layout::NONE) }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.batch = self.seed.batch(inputs.first_sample());
        self.chosen = inputs.map(|sample| self.choice(&sample));
        let shapes = inputs.map_shapes(1, |sample| Ok(Shape::from([sample.input(0)?.shape.len()])));
        Ok(vec![BatchDesc::new(DType::I64, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let (choice, mut random) = (self.chosen[sample.index()], self.batch.sample(sample.index()));
            let (map, output) = sample.unary()?;
            let drawn = dispatch!(map.dtype, T => draw::<T>(&map, choice, &mut random)?);
            let position = output.as_slice_mut::<i64>()?;
            if let Some(mut rest) = drawn {
                for (to, &extent) in position.iter_mut().zip(map.shape.iter()).rev() {
                    *to = (rest % extent) as i64;
                    rest /= extent;
                }
                return Ok(());
            }
            for (to, &extent) in position.iter_mut().zip(map.shape.iter()) {
                *to = i64::from(uniform_int(&mut random, u32::try_from(extent - 1).unwrap_or(u32::MAX)));
            }
            Ok(())
        })
    }
}
