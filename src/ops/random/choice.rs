//! `random__Choice`: numbers below a limit, or parts of a tensor, with given or equal probabilities.

use super::{SEED, seed};
use crate::cpu::convert::ConvertSat;
use crate::cpu::random::{BatchRandom, Philox, Seed, uniform_u64};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::shared::shape_arg::ShapeArg;
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, SampleInputs, SampleIo, one_output,
};
use crate::tensor::{BatchDesc, Device, Element, Layout, Shape, ValueType, View};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "random__Choice",
    doc: "Random choices of numbers below a limit, or of parts of a tensor",
    devices: &[Device::Cpu],
    inputs: (1, 2),
    args: &[
        SEED,
        ArgSpec::floats("p", "the probability of each").tensor().or_computed("all alike"),
        ArgSpec::ints("shape", "how many choices, as a shape")
            .tensor()
            .or_computed("that of the second input, or one"),
    ],
    build: &build,
    outputs: &one_output,
    ..OpDef::BASE
};

struct Choice {
    probabilities: Option<Arg>,
    /// Shape of the choices; [`ShapeArg::Like`] is never used.
    shape: ShapeArg,
    /// Whether the second input gives that shape.
    like: bool,
    seed: Seed,
    batch: BatchRandom,
    /// Per sample: the sums of the probabilities up to each choice, empty when all are alike.
    sums: Vec<Vec<f64>>,
}

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    let like = inputs > 1;
    if like && args.has("shape") {
        return Err(Error::invalid("argument `shape` and a second input exclude each other"));
    }
    Ok(Box::new(Choice {
        probabilities: args.given_arg("p")?,
        shape: ShapeArg::new(args, false)?,
        like,
        seed: seed(args)?,
        batch: BatchRandom::default(),
        sums: Vec::new(),
    }))
}

/// How many things there are to choose from.
fn choices(from: &View<'_>) -> Result<usize> {
    let count = match from.shape.first() {
        Some(&count) => count as i64,
        None if from.dtype.is_float() => {
            return Err(Error::invalid(format!("a limit of type {}, expected an integer", from.dtype)));
        }
        None => dispatch!(from.dtype, T => {
            from.as_slice::<T>()?.first().copied().unwrap_or_default().convert_sat()
        }),
    };
    usize::try_from(count)
        .ok()
        .filter(|count| (1..=i64::MAX as usize).contains(count))
        .ok_or_else(|| Error::invalid(format!("{count} things to choose from, expected 1 to {}", i64::MAX)))
}

impl Choice {
    fn sums(&self, sample: &SampleInputs<'_>) -> Result<Vec<f64>> {
        let count = choices(&sample.input(0)?)?;
        let Some(arg) = &self.probabilities else { return Ok(Vec::new()) };
        let each = arg.floats(sample)?;
        if each.len() != count || count > limits::MAX_LIST_ARGUMENT {
            return Err(Error::invalid(format!("{} probabilities for {count} choices", each.len())));
        }
        if let Some((i, p)) = each.iter().enumerate().find(|(_, p)| !(0.0..=1.0).contains(*p)) {
            return Err(Error::invalid(format!("the probability {p} at {i} is not from 0 to 1")));
        }
        let total: f64 = each.iter().map(|&p| f64::from(p)).sum();
        if (total - 1.0).abs() >= 1e-4 {
            return Err(Error::invalid(format!("probabilities with the sum {total}, expected 1")));
        }
        let mut sum = 0.0;
        let mut sums: Vec<f64> = each
            .iter()
            .map(|&p| {
                sum += f64::from(p) / total;
                sum
            })
            .collect();
        // One choice needs no number: the standard library draws none.
        if count == 1 {
            sums.clear();
        } else if let Some(last) = sums.last_mut() {
            *last = 1.0;
        }
        Ok(sums)
    }

    fn choose(&self, sample: &mut SampleIo<'_>) -> Result<()> {
        let from = sample.input(0)?;
        let (count, sums) = (choices(&from)?, &self.sums[sample.index()]);
        let random = self.batch.sample(sample.index());
        let certain = self.probabilities.is_some() && count == 1;
        // Numbers are drawn each at its place, parts of tensors one after the other.
        let in_order = from.shape.len() > 1;
        let mut walk = random.clone();
        let mut pick = |i: usize| {
            let mut at_place;
            let random = if in_order {
                &mut walk
            } else {
                at_place = random.element(i as u64);
                &mut at_place
            };
            match sums.as_slice() {
                _ if certain => 0,
                [] => uniform_u64(random, (count - 1) as u64) as usize,
                sums => by_sums(random, sums),
            }
        };
        let output = sample.output(0)?;
        if from.shape.is_empty() {
            fn write<T: Element>(out: &mut [T], mut pick: impl FnMut(usize) -> usize)
            where
                u64: ConvertSat<T>,
            {
                out.iter_mut().enumerate().for_each(|(i, to)| *to = (pick(i) as u64).convert_sat());
            }
            dispatch!(output.dtype, T => write(output.as_slice_mut::<T>()?, pick));
            return Ok(());
        }
        let part = from.bytes.len() / count;
        if part > 0 {
            for (i, to) in output.bytes.chunks_exact_mut(part).enumerate() {
                let at = pick(i) * part;
                to.copy_from_slice(&from.bytes[at..at + part]);
            }
        }
        Ok(())
    }
}

/// The choice whose range of the sums a random double falls into, as libstdc++'s `discrete_distribution` finds it.
pub(in crate::ops) fn by_sums(random: &mut Philox, sums: &[f64]) -> usize {
    let unit = (random.next_u64() as f64 * 2f64.powi(-64)).min(1f64.next_down());
    sums.partition_point(|&sum| sum < unit).min(sums.len() - 1)
}

impl Operator for Choice {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let from = &inputs[0];
        let outer = match inputs.get(1) {
            Some(like) => like.dims.clone(),
            None => self.shape.infer(None),
        };
        let dims = match (outer, &from.dims) {
            (Some(mut outer), Some(from)) => {
                outer.extend(from.iter().skip(1));
                Some(outer)
            }
            _ => None,
        };
        Ok(vec![ValueType { dtype: from.dtype, dims, layout: None }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        self.batch = self.seed.batch(inputs.first_sample());
        let desc = inputs.desc(0)?;
        self.sums = inputs.map(|sample| self.sums(&sample));
        let outer = if self.like { inputs.desc(1)?.shapes.clone() } else { self.shape.shapes(inputs) };
        let (from, to) = (desc.shapes.first().map_or(0, |s| s.len()), outer.first().map_or(0, |s| s.len()));
        let ndim = to + from.saturating_sub(1);
        let shapes = inputs.map_shapes(ndim, |sample| {
            let mut dims = outer[sample.index].to_vec();
            dims.extend(sample.input(0)?.shape.iter().skip(1));
            if dims.len() > limits::MAX_NDIM {
                return Err(Error::invalid(format!(
                    "{} dimensions, expected at most {}",
                    dims.len(),
                    limits::MAX_NDIM
                )));
            }
            Ok(Shape::from(dims))
        });
        let layout = match desc.layout.letters() {
            all if all.len() == ndim => desc.layout,
            [_, rest @ ..] if rest.len() == ndim => Layout::from_letters(rest),
            _ => Layout::NONE,
        };
        Ok(vec![BatchDesc::new(desc.dtype, layout, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| self.choose(sample))
    }
}
