//! `PreemphasisFilter`: every element less a part of the one before it.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::{Gpu, KernelSpec};
use crate::ops::{Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, DType, Device, ValueType};

/// What comes before the first element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Border {
    Clamp,
    Reflect,
    Zero,
}

struct PreemphasisFilter {
    coefficient: Arg,
    border: Border,
    dtype: DType,
    coefficients: Vec<f32>,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "PreemphasisFilter",
    doc: "Takes from every element of a signal a part of the one before it",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::float("preemph_coeff", "which part").tensor().or_float(0.97),
        ArgSpec::string("border", "before the first: `clamp` (itself), `reflect` (the second) or `zero`")
            .or_string("clamp"),
        ArgSpec::dtype("dtype", "element type of the output").or_dtype(DType::F32),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[super::kernels],
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let border = match args.string("border")?.unwrap_or("clamp") {
        "clamp" => Border::Clamp,
        "reflect" => Border::Reflect,
        "zero" => Border::Zero,
        other => {
            return Err(Error::invalid(format!(
                "argument `border` is `{other}`, expected `clamp`, `reflect` or `zero`"
            )));
        }
    };
    let dtype = args.dtype("dtype")?.unwrap_or(DType::F32);
    supported(dtype)?;
    let coefficient = args.arg("preemph_coeff")?;
    let coefficient = coefficient.unwrap_or_else(|| Arg::fixed("preemph_coeff", &[f64::from(0.97f32)]));
    Ok(Box::new(PreemphasisFilter { coefficient, border, dtype, coefficients: Vec::new() }))
}

fn supported(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F16 | DType::Bool) {
        return Err(Error::unsupported(format!("signals of type {dtype}")));
    }
    Ok(())
}

/// Filters `src`; in double precision where the input has it.
fn filter<S, F, T>(src: &[S], dst: &mut [T], coefficient: f32, border: Border)
where
    S: ConvertSat<F> + ConvertSat<T>,
    F: Copy + From<f32> + std::ops::Sub<Output = F> + std::ops::Mul<Output = F> + ConvertSat<T>,
{
    if coefficient == 0.0 {
        return convert_slice(src, dst);
    }
    let value = |i: usize| -> Option<F> { src.get(i).map(|value| value.convert_sat()) };
    let before = match border {
        Border::Clamp => value(0),
        Border::Reflect => value(1).or(value(0)),
        Border::Zero => None,
    };
    let mut before = before.unwrap_or_else(|| F::from(0.0));
    for (to, from) in dst.iter_mut().zip(src) {
        let value: F = from.convert_sat();
        *to = (value - F::from(coefficient) * before).convert_sat();
        before = value;
    }
}

impl Operator for PreemphasisFilter {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].dtype.map_or(Ok(()), supported)?;
        Ok(vec![ValueType { dtype: Some(self.dtype), ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        supported(desc.dtype)?;
        self.coefficients = inputs.map(|sample| self.coefficient.float(&sample));
        Ok(vec![BatchDesc { dtype: self.dtype, ..desc.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        let (coefficients, border) = (&self.coefficients, self.border);
        let from = io.inputs().desc(0)?.dtype;
        if from == DType::F64 {
            return dispatch!(self.dtype, T => io.for_each_sample(cx, |sample| {
                let coefficient = coefficients.get(sample.index()).copied().unwrap_or_default();
                let (input, output) = sample.unary()?;
                filter::<f64, f64, T>(input.as_slice()?, output.as_slice_mut()?, coefficient, border);
                Ok(())
            }));
        }
        dispatch!(from, S => dispatch!(self.dtype, T => io.for_each_sample(cx, |sample| {
            let coefficient = coefficients.get(sample.index()).copied().unwrap_or_default();
            let (input, output) = sample.unary()?;
            filter::<S, f32, T>(input.as_slice()?, output.as_slice_mut()?, coefficient, border);
            Ok(())
        })))
    }
    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| gpu.kernel(&kernel(from, self.dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let from = io.inputs().desc(0)?.dtype;
        let rows = io.rows(|sample| {
            let coefficient = self.coefficients.get(sample.index()).copied().unwrap_or_default();
            let elements = sample.output_shape(0)?.volume()? as u64;
            Ok(Row { to: sample.target(0)?, from: sample.source(0)?, elements, coefficient, unused: 0 })
        });
        let most = rows.iter().map(|row| row.elements as usize).max().unwrap_or_default();
        let border = match self.border {
            Border::Clamp => 0,
            Border::Reflect => 1,
            Border::Zero => 2,
        };
        cx.launch(&kernel(from, self.dtype), most, &Params { border }, &rows)
    }
}

/// A signal, as `kernels/preemphasis.cu` sees it.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Row {
    to: u64,
    from: u64,
    elements: u64,
    coefficient: f32,
    unused: u32,
}

#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Params {
    border: u32,
}

pub(super) fn kernel(from: DType, to: DType) -> KernelSpec {
    let real = if from == DType::F64 { DType::F64 } else { DType::F32 };
    KernelSpec::new::<Row, Params>("preemphasis", "preemphasis")
        .dtype("FROM", from)
        .dtype("TO", to)
        .dtype("REAL", real)
}
