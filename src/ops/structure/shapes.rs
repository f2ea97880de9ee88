//! `Shapes`: the extents of every sample as a list. The input may be on the device: only its shape is looked at.

use crate::cpu::convert::convert_slice;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::{
    ArgSpec, Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, SampleInputs, gpu_io,
    one_output,
};
use crate::tensor::{BatchDesc, DType, Device, Layout, Shape, ValueType};

struct Shapes {
    dtype: DType,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Shapes",
    aliases: &["_Shape"],
    doc: "The extents of each sample as a list",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[
        ArgSpec::dtype("dtype", "element type: 32 or 64 bits, integer or float").or_dtype(DType::I64),
        ArgSpec::dtype("type", "the older name of `dtype`").deprecated(),
    ],
    build: &build,
    outputs: &one_output,
    kernels: &[gpu_io::kernels],
    sequences: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let dtype = args.dtype_or_older("dtype", "type")?;
    if !matches!(dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64 | DType::F32 | DType::F64) {
        return Err(Error::invalid(format!(
            "argument `dtype` is {dtype}, expected int32, uint32, int64, uint64, float32 or float64"
        )));
    }
    Ok(Box::new(Shapes { dtype }))
}

impl Shapes {
    /// The bytes of one sample's list.
    fn list(&self, sample: &SampleInputs<'_>) -> Result<Vec<u8>> {
        let extents: Vec<u64> = sample.input(0)?.shape.iter().map(|&extent| extent as u64).collect();
        Ok(dispatch!(self.dtype, T => {
            let mut elements = vec![T::default(); extents.len()];
            convert_slice::<u64, T>(&extents, &mut elements);
            bytemuck::cast_slice(&elements).to_vec()
        }))
    }
}

impl Operator for Shapes {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        Ok(vec![ValueType {
            dtype: Some(self.dtype),
            dims: Some(vec![inputs[0].ndim()]),
            layout: Some(Layout::NONE),
        }])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let shapes = inputs.desc(0)?.shapes.iter().map(|shape| Shape::from([shape.len()])).collect();
        Ok(vec![BatchDesc::new(self.dtype, Layout::NONE, shapes)])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        io.for_each_sample(cx, |sample| {
            let list = self.list(&sample.inputs)?;
            sample.output(0)?.bytes.copy_from_slice(&list);
            Ok(())
        })
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        let lists = io.rows(|sample| Ok((sample.output(0)?.clone(), self.list(&sample.inputs)?)));
        let staged = lists.into_iter().map(|(to, list)| Ok((to, cx.recorder.stage(&list)?)));
        let pairs = staged.collect::<Result<Vec<_>>>()?;
        cx.copy(&pairs)
    }
}
