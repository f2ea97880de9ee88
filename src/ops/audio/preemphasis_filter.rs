//! `PreemphasisFilter`: every element less a part of the one before it.

use std::ops::{Mul, Sub};
use std::sync::Arc;

use crate::cpu::convert::{ConvertSat, convert_slice};
use crate::dispatch;
use crate::error::{Error, Result};
use crate::gpu::layout::{device_enum, device_struct};
use crate::gpu::{Gpu, KernelSpec};
use crate::operator::{
    Arg, ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::ops::math::cast;
use crate::tensor::{BatchDesc, DType, Device, Element, ValueType, View, ViewMut};

device_enum! {
    /// What comes before the first element.
    enum Border as Border {
        /// Itself.
        Clamp as CLAMP,
        /// The second.
        Reflect as REFLECT,
        /// Silence.
        Zero as ZERO,
    }
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
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let border = match args.string("border")? {
        "clamp" => Border::Clamp,
        "reflect" => Border::Reflect,
        "zero" => Border::Zero,
        other => {
            return Err(Error::invalid(format!(
                "argument `border` is `{other}`, expected `clamp`, `reflect` or `zero`"
            )));
        }
    };
    let dtype = args.dtype("dtype")?;
    supported(dtype)?;
    let coefficient = args.arg("preemph_coeff")?;
    Ok(Box::new(PreemphasisFilter { coefficient, border, dtype, coefficients: Vec::new() }))
}

fn supported(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F16 | DType::Bool) {
        return Err(Error::unsupported(format!("signals of type {dtype}")));
    }
    Ok(())
}

/// What is computed with.
trait Real: Element + From<f32> + Sub<Output = Self> + Mul<Output = Self> {}
impl Real for f32 {}
impl Real for f64 {}

/// Elements that are read, filtered and written at a time: they stay in the nearest cache.
const PART: usize = 512;

/// Reads elements of one type, from a place on, as what is computed with; and writes them as another type. So there are
/// functions for every type, not for every pair of types.
type Read<F> = fn(&View<'_>, usize, &mut [F]) -> Result<()>;
type Write<F> = fn(&mut ViewMut<'_>, usize, &[F]) -> Result<()>;

fn read<S: Element + ConvertSat<F>, F>(input: &View<'_>, at: usize, part: &mut [F]) -> Result<()> {
    convert_slice(&input.as_slice::<S>()?[at..][..part.len()], part);
    Ok(())
}

fn write<F: ConvertSat<T>, T: Element>(output: &mut ViewMut<'_>, at: usize, part: &[F]) -> Result<()> {
    convert_slice(part, &mut output.as_slice_mut::<T>()?[at..][..part.len()]);
    Ok(())
}

/// Filters a sample.
fn filter<F: Real>(
    input: &View<'_>,
    output: &mut ViewMut<'_>,
    (read, write): (Read<F>, Write<F>),
    coefficient: f32,
    border: Border,
) -> Result<()> {
    if coefficient == 0.0 {
        return cast::convert(input, output);
    }
    let (count, is_real) = (input.shape.volume()?, |dtype| dtype == F::DTYPE);
    // What is of the right type already is neither read nor written another time.
    let reals = if is_real(input.dtype) { Some(input.as_slice::<F>()?) } else { None };
    let mut room = [[F::default(); PART]; 2];
    let [values, filtered] = &mut room;
    let first = &mut values[..count.min(2)];
    read(input, 0, first)?;
    let before = match border {
        Border::Clamp => first.first(),
        Border::Reflect => first.last(),
        Border::Zero => None,
    };
    let mut before = before.copied().unwrap_or_default();
    for at in (0..count).step_by(PART) {
        let length = (count - at).min(PART);
        let values = match reals {
            Some(all) => &all[at..at + length],
            None => {
                read(input, at, &mut values[..length])?;
                &values[..length]
            }
        };
        if is_real(output.dtype) {
            less_before(values, &mut output.as_slice_mut::<F>()?[at..at + length], coefficient, before);
        } else {
            less_before(values, &mut filtered[..length], coefficient, before);
            write(output, at, &filtered[..length])?;
        }
        before = values[length - 1];
    }
    Ok(())
}

/// Writes every value less its part of the one before it, which of the first is `before`.
#[inline(never)]
fn less_before<F: Real>(values: &[F], to: &mut [F], coefficient: f32, before: F) {
    let coefficient = F::from(coefficient);
    if let (Some(first), Some(&value)) = (to.first_mut(), values.first()) {
        *first = value - coefficient * before;
    }
    for (to, pair) in to.iter_mut().skip(1).zip(values.array_windows()) {
        let [before, value] = *pair;
        *to = value - coefficient * before;
    }
}

impl PreemphasisFilter {
    fn run<F: Real>(&self, cx: &CpuCx<'_>, io: &mut Io<'_>, steps: (Read<F>, Write<F>)) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let coefficient = self.coefficients.get(sample.index()).copied().unwrap_or_default();
            let (input, output) = sample.unary()?;
            filter(&input, output, steps, coefficient, self.border)
        })
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
        let from = io.inputs().desc(0)?.dtype;
        // In double precision where the input has it.
        if from == DType::F64 {
            let write = dispatch!(self.dtype, T => write::<f64, T> as Write<f64>);
            return self.run(cx, io, (read::<f64, f64>, write));
        }
        let read = dispatch!(from, S => read::<S, f32> as Read<f32>);
        let write = dispatch!(self.dtype, T => write::<f32, T> as Write<f32>);
        self.run(cx, io, (read, write))
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
        cx.launch(&kernel(from, self.dtype), most, &Params { border: self.border.number() }, &rows)
    }
}

device_struct! {
    /// A signal, as `kernels/preemphasis.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        elements: u64,
        coefficient: f32,
        unused: u32,
    }
}

device_struct! {
    struct Params as Params {
        /// what comes before the first element: itself, the second, or silence
        border: u32 = "Border" of Border,
    }
}

pub(super) fn kernel(from: DType, to: DType) -> KernelSpec {
    let real = if from == DType::F64 { DType::F64 } else { DType::F32 };
    KernelSpec::of::<Row, Params>("preemphasis", "preemphasis")
        .dtype("FROM", from)
        .dtype("TO", to)
        .dtype("REAL", real)
}
