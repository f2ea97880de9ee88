//! `LookupTable`: each integer is a key, whose value takes its place.

use super::{ArgSpec, Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// Keys that a table may have: 0 up to this, as in DALI.
const KEYS: usize = 1 << 16;

struct LookupTable {
    dtype: DType,
    /// The value of each key up to the largest that has one of its own.
    values: Vec<f32>,
    default: f32,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "LookupTable",
    aliases: &[],
    doc: "Values from a table in the place of integer keys",
    devices: &[Device::Cpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::fixed("keys", "keys, 0 to 65535; of equal ones the last counts; default none"),
        ArgSpec::fixed("values", "the value of each key"),
        ArgSpec::fixed("default_value", "value of all other integers; default 0"),
        ArgSpec::fixed("dtype", "element type of the output; default float32"),
        ArgSpec::fixed("output_dtype", "the older name of `dtype`"),
    ],
    shared_args: &[],
    build: &build,
    outputs: &one_output,
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let (keys, given) = (args.ints("keys")?.unwrap_or_default(), args.floats("values")?.unwrap_or_default());
    if keys.len() != given.len() {
        return Err(Error::invalid(format!("{} values for {} keys", given.len(), keys.len())));
    }
    let default = args.float("default_value")?.unwrap_or(0.0);
    let mut values = Vec::new();
    for (&key, value) in keys.iter().zip(given) {
        let key = usize::try_from(key).ok().filter(|&key| key < KEYS).ok_or_else(|| {
            Error::invalid(format!("argument `keys` holds {key}, expected 0 to {}", KEYS - 1))
        })?;
        if key >= values.len() {
            values.resize(key + 1, default);
        }
        values[key] = value;
    }
    let dtype = match args.dtype("dtype")? {
        Some(dtype) => dtype,
        None => args.dtype("output_dtype")?.unwrap_or(DType::F32),
    };
    Ok(Box::new(LookupTable { dtype, values, default }))
}

fn check(dtype: DType) -> Result<()> {
    if dtype.is_float() || dtype == DType::Bool {
        return Err(Error::invalid(format!("keys are {dtype}, expected integers")));
    }
    Ok(())
}

impl Operator for LookupTable {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), check)?;
        Ok(vec![ValueType { dtype: Some(self.dtype), ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        check(desc.dtype)?;
        Ok(vec![BatchDesc { dtype: self.dtype, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        dispatch!(self.dtype, T => {
            let mut table = vec![T::default(); self.values.len()];
            convert_slice::<f32, T>(&self.values, &mut table);
            let default: T = self.default.convert_sat();
            dispatch!(from, S => io.for_each_sample(cx, |sample| {
                let (input, output) = sample.unary()?;
                let output = output.as_slice_mut::<T>()?;
                for (to, key) in output.iter_mut().zip(input.as_slice::<S>()?) {
                    let key: i64 = (*key).convert_sat();
                    let value = usize::try_from(key).ok().and_then(|key| table.get(key));
                    *to = value.copied().unwrap_or(default);
                }
                Ok(())
            }))
        })
    }
}
