//! `random__Uniform`: numbers of a range, or out of a list, all equally likely.

use super::{ARGS, Distribution, Draw, NUMBERS, Random};
use crate::cpu::random::{Philox, scale_f32, scale_f64, uniform_f32, uniform_f64};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Arg, ArgSpec, InputSet, OpDef, SampleInputs, one_output};
use crate::tensor::{DType, Device};

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "random__Uniform",
    aliases: &["Uniform"],
    doc: "Random numbers of a range or out of a list",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (0, 1),
    args: &[
        ArgSpec::floats("range", "lower end, included, and upper end, not included")
            .tensor()
            .or_floats(&[-1.0, 1.0]),
        ArgSpec::floats("values", "the numbers to choose from, in place of a range").tensor(),
    ],
    shared_args: &[ARGS],
    build: &|args, inputs| {
        let range = args.arg("range")?;
        Random::operator(Uniform { range, values: args.given_arg("values")? }, args, inputs)
    },
    outputs: &one_output,
    kernels: &[super::kernels],
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

struct Uniform {
    range: Arg,
    values: Option<Arg>,
}

enum Choices {
    Range(f64, f64),
    Values(Vec<f32>),
}

impl Default for Choices {
    fn default() -> Self {
        Choices::Range(0.0, 1.0)
    }
}

impl Distribution for Uniform {
    type Parameters = Choices;

    const DTYPE: DType = DType::F32;

    const DTYPES: &[DType] = NUMBERS;

    const NUMBER_TIME: f64 = 3.0;

    fn parameters(&self, sample: &SampleInputs<'_>, dtype: DType) -> Result<Choices> {
        if let Some(values) = &self.values {
            let values = values.floats(sample)?;
            if values.is_empty() || values.len() > limits::MAX_LIST_ARGUMENT {
                return Err(Error::invalid(format!("{} values to choose from", values.len())));
            }
            return Ok(Choices::Values(values));
        }
        match self.range.floats(sample)?[..] {
            [low, high] if low < high => {
                let (low, high) = (end(low, dtype), end(high, dtype));
                Ok(Choices::Range(low.min(high), low.max(high)))
            }
            ref other => {
                Err(Error::invalid(format!("argument `range` is {other:?}, expected two rising numbers")))
            }
        }
    }

    #[inline(always)]
    fn draw_f32(parameters: &Choices, random: &mut Philox) -> f32 {
        match parameters {
            Choices::Range(low, high) => uniform_f32(random, *low as f32, *high as f32),
            Choices::Values(values) => one_of(values, random),
        }
    }

    #[inline(always)]
    fn draw_f64(parameters: &Choices, random: &mut Philox) -> f64 {
        match parameters {
            Choices::Range(low, high) => uniform_f64(random, *low, *high),
            Choices::Values(values) => f64::from(one_of(values, random)),
        }
    }

    fn kernel(&self) -> &'static str {
        if self.values.is_some() { "one_of" } else { "uniform" }
    }

    fn draw(parameters: &Choices, is_wide: bool) -> Draw<'_> {
        match *parameters {
            Choices::Values(ref values) => Draw { values, ..Draw::default() },
            Choices::Range(low, high) if is_wide => {
                let (factor, last) = scale_f64(low, high);
                Draw { low, factor, last, ..Draw::default() }
            }
            Choices::Range(low, high) => {
                let (factor, last) = scale_f32(low as f32, high as f32);
                let (factor, last) = (f64::from(factor), f64::from(last));
                Draw { low, factor, last, ..Draw::default() }
            }
        }
    }
}

/// An end of a range as an element of type `dtype`: of what an integer does not hold, DALI keeps the low bits, so that
/// the ends may change places.
fn end(end: f32, dtype: DType) -> f64 {
    let whole = end as i64;
    match dtype {
        DType::U8 => f64::from(whole as u8),
        DType::I8 => f64::from(whole as i8),
        DType::U16 => f64::from(whole as u16),
        DType::I16 => f64::from(whole as i16),
        DType::U32 => f64::from(whole as u32),
        DType::I32 => f64::from(whole as i32),
        DType::U64 => whole as u64 as f64,
        DType::I64 => whole as f64,
        _ => f64::from(end),
    }
}

fn one_of(values: &[f32], random: &mut Philox) -> f32 {
    let index = (u64::from(random.next_u32()) * values.len() as u64) >> 32;
    values.get(index as usize).copied().unwrap_or_default()
}
