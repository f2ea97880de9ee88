//! `LookupTable`: each integer is a key, whose value takes its place.

use std::sync::Arc;

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Element, ValueType};

/// Keys that a table may have: 0 up to this, as in DALI.
const KEYS: usize = 1 << 16;

struct LookupTable {
    dtype: DType,
    /// The value of each key up to the largest that has one of its own.
    values: Vec<f32>,
    default: f32,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "LookupTable",
    doc: "Values from a table in the place of integer keys",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::ints("keys", "keys, 0 to 65535; of equal ones the last counts").or_ints(&[]),
        ArgSpec::floats("values", "the value of each key").or_floats(&[]),
        ArgSpec::float("default_value", "value of all other integers").or_float(0.0),
        ArgSpec::dtype("dtype", "element type of the output").or_dtype(DType::F32),
        ArgSpec::dtype("output_dtype", "the older name of `dtype`").deprecated(),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let (keys, given) = (args.ints("keys")?, args.floats("values")?);
    if keys.len() != given.len() {
        return Err(Error::invalid(format!("{} values for {} keys", given.len(), keys.len())));
    }
    let default = args.float("default_value")?;
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
    let dtype = args.dtype_or_older("dtype", "output_dtype")?;
    Ok(Box::new(LookupTable { dtype, values, default }))
}

impl LookupTable {
    /// The values as elements of the output, and behind them that of all other keys.
    fn table<T: Element>(&self) -> Vec<T>
    where
        f32: ConvertSat<T>,
    {
        let mut table = vec![T::default(); self.values.len()];
        convert_slice::<f32, T>(&self.values, &mut table);
        table.push(self.default.convert_sat());
        table
    }
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
            let table = self.table::<T>();
            dispatch!(from, S => io.for_each_sample(cx, |sample| {
                let (input, output) = sample.unary()?;
                let output = output.as_slice_mut::<T>()?;
                for (to, key) in output.iter_mut().zip(input.as_slice::<S>()?) {
                    let key: i64 = (*key).convert_sat();
                    let value = usize::try_from(key).ok().and_then(|key| table.get(key)).or(table.last());
                    *to = value.copied().unwrap_or_default();
                }
                Ok(())
            }))
        })
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| gpu.kernel(&kernel(from, self.dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let values = dispatch!(self.dtype, T => cx.recorder.stage(bytemuck::cast_slice(&self.table::<T>()))?);
        let rows = io.rows(|sample| {
            let elements = sample.output_shape(0)?.volume()? as u64;
            Ok(Row { to: sample.target(0)?, from: sample.source(0)?, elements })
        });
        let most = rows.iter().map(|row| row.elements).max().unwrap_or_default();
        let params = Params { values: values.address(), keys: self.values.len() as u64 };
        cx.launch(&kernel(from, self.dtype), most as usize, &params, &rows)
    }
}

device_struct! {
    /// A sample, as `kernels/lookup.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        elements: u64,
    }
}

device_struct! {
    struct Params as Params {
        /// of the keys from 0 on, and behind them that of all others
        values: u64 = "const TO *",
        keys: u64,
    }
}

fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, Params>("lookup", "lookup").dtype("FROM", from).dtype("TO", to)
}

/// Those that tests compile.
pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let from = [DType::U8, DType::I16, DType::U64, DType::I64].map(|from| kernel(from, DType::F32));
    from.into_iter().chain([DType::F16, DType::Bool].map(|to| kernel(DType::U8, to))).collect()
}
