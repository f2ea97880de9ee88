//! `Slice`: a window given by its ends along any dimensions of a tensor.

use std::sync::Arc;

use super::extract::{self, Extract};
use crate::error::Result;
use crate::gpu::Gpu;
use crate::operator::shared::gather;
use crate::operator::shared::slice_window::{SLICE_ARGS, SliceWindow};
use crate::operator::{Args, CpuCx, GpuCx, GpuIo, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

struct Slice {
    window: SliceWindow,
    extract: Extract,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "Slice",
    doc: "Cuts a window out of tensors, between absolute or relative ends",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 3),
    args: &[],
    shared_args: &[SLICE_ARGS, extract::ARGS[0], extract::ARGS[1]],
    build: &build,
    outputs: &one_output,
    kernels: &[gather::kernels],
    host_inputs: Some(1),
    reads_in_place: InputSet::First,
    ..OpDef::BASE
};

fn build(args: &Args, inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(Slice { window: SliceWindow::new(args, inputs)?, extract: Extract::new(args)? }))
}

impl Operator for Slice {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.dtype = self.extract.infer(ty.dtype)?;
        if let Some(dims) = &mut ty.dims {
            *dims = match ty.layout {
                Some(layout) => self.window.infer(dims, layout, self.extract.policy())?,
                None => vec![None; dims.len()],
            };
        }
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let layout = inputs.desc(0)?.layout;
        let Self { window, extract } = self;
        Ok(vec![extract.setup(inputs, layout, |sample, shape| window.place(sample, shape, layout))?])
    }

    fn run_cpu(&mut self, cx: &CpuCx<'_>, io: &mut Io<'_>) -> Result<()> {
        self.extract.run(cx, io)
    }

    fn prepare_gpu(&mut self, gpu: &Arc<Gpu>, inputs: &[ValueType]) -> Result<()> {
        self.extract.prepare_gpu(gpu, &inputs[0])
    }

    fn run_gpu(&mut self, cx: &mut GpuCx<'_>, io: &mut GpuIo<'_>) -> Result<()> {
        self.extract.run_gpu(cx, io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::Failures;
    use crate::operator::args::Value;
    use crate::tensor::{Batch, DType, Layout, Sample, Shape};

    /// Anchors and sizes that a request may hold.
    const HOSTILE: [f32; 10] =
        [0.0, -1.0, 2.0, 9.0, 1e9, 1e30, -1e30, f32::NAN, f32::INFINITY, f32::NEG_INFINITY];

    #[test]
    fn no_coordinate_panics() {
        let samples = HOSTILE.len() * HOSTILE.len();
        let data = BatchDesc::new(DType::U8, Layout::NONE, vec![Shape::from([4]); samples]);
        let data = Batch::new(data, vec![Sample::Borrowed(&[0; 4]); samples]).unwrap();
        let input = |pick: &dyn Fn(usize) -> usize| {
            let desc = BatchDesc::new(DType::F32, Layout::NONE, vec![Shape::from([1]); samples]);
            Batch::new(
                desc,
                (0..samples)
                    .map(|i| Sample::Borrowed(bytemuck::cast_slice(&HOSTILE[pick(i)..=pick(i)])))
                    .collect(),
            )
            .unwrap()
        };
        let anchor = input(&|i| i / HOSTILE.len());
        let shape = input(&|i| i % HOSTILE.len());
        for policy in ["error", "trim_to_shape", "pad", "wrap", "reflect"] {
            for relative in [false, true] {
                let values = [
                    ("out_of_bounds_policy", Value::Strings(vec![policy.to_owned()])),
                    ("axes", Value::Ints(vec![0])),
                    ("normalized_anchor", Value::Bools(vec![relative])),
                    ("normalized_shape", Value::Bools(vec![relative])),
                ];
                let args = Args::new(values.map(|(name, value)| (name.to_owned(), value)).into(), [].into());
                let mut slice = DEF.instantiate(&args, 3).unwrap();
                let failures = Failures::none(samples);
                let regular = [&data, &anchor, &shape];
                let name = "Slice".into();
                let inputs = Inputs::new(&name, &regular, &[], &failures);
                let shapes = slice.setup(&inputs).unwrap().remove(0).shapes;
                // Anchor 2 and size 2 is a window like any other.
                let sane = 2 * HOSTILE.len() + 2;
                assert_eq!(failures.get(sane).is_none(), !relative || policy != "error", "{policy}");
                assert!(shapes.iter().all(|shape| shape.bytes(1).is_ok()));
            }
        }
    }
}
