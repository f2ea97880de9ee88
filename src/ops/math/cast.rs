//! `Cast`: another element type, by DALI's saturating conversion.

use std::sync::Arc;

use crate::cpu::convert::convert_slice;
use crate::dispatch;
use crate::error::Result;
use crate::gpu::layout::device_struct;
use crate::gpu::{Gpu, KernelSpec, NoParams};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output,
};
use crate::tensor::{BatchDesc, DType, Device, ValueType, View, ViewMut};

struct Cast {
    dtype: DType,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Cast",
    doc: "Another element type; floats are rounded, values out of range saturate",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::dtype("dtype", "element type of the output").required()],
    build: &build,
    outputs: &one_output,
    kernels: &[kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.dtype("dtype")?;
    Ok(Box::new(Cast { dtype }))
}

impl Operator for Cast {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType { dtype: Some(self.dtype), ..inputs[0].clone() }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        Ok(vec![BatchDesc { dtype: self.dtype, ..inputs.desc(0)?.clone() }])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        cast(cx, io)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        inputs[0].dtype.map_or(Ok(()), |from| gpu.kernel(&kernel(from, self.dtype)).map(drop))
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        record(cx, io, self.dtype)
    }
}

device_struct! {
    /// A sample, as `kernels/cast.cu` sees it.
    struct Row as Row {
        to: u64 = "TO *",
        from: u64 = "const FROM *",
        elements: u64,
    }
}

pub(in crate::ops) fn kernels() -> Vec<KernelSpec> {
    let from = DType::ALL.into_iter().map(|from| kernel(from, DType::I16));
    from.chain([DType::F16, DType::Bool, DType::U64, DType::F64].map(|to| kernel(DType::F32, to))).collect()
}

/// The kernel that converts from one type to another.
pub(in crate::ops) fn kernel(from: DType, to: DType) -> KernelSpec {
    KernelSpec::of::<Row, NoParams>("cast", "cast").dtype("FROM", from).dtype("TO", to)
}

/// Converts input 0 of every live sample to output 0.
pub(in crate::ops) fn cast(cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
    io.for_each_sample(cx, |sample| {
        let (input, output) = sample.unary()?;
        convert(&input, output)
    })
}

/// Converts the elements of one sample to the type of another.
pub(in crate::ops) fn convert(input: &View<'_>, output: &mut ViewMut<'_>) -> Result<()> {
    dispatch!(input.dtype, From => {
        let from = input.as_slice::<From>()?;
        dispatch!(output.dtype, To => convert_slice::<From, To>(from, output.as_slice_mut()?));
    });
    Ok(())
}

/// [`cast`] on a device.
pub(in crate::ops) fn record(cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>, to: DType) -> Result<()> {
    let mut most = 0;
    let rows = io.rows(|sample| {
        let elements = sample.output_shape(0)?.volume()?;
        most = most.max(elements);
        Ok(Row { to: sample.target(0)?, from: sample.source(0)?, elements: elements as u64 })
    });
    cx.launch(&kernel(io.inputs().desc(0)?.dtype, to), most, &NoParams::default(), &rows)
}
