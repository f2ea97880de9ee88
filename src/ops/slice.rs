//! `Slice`: a window given by its ends along any dimensions of a tensor.

use super::extract::{self, Extract};
use super::slice_window::{SLICE_ARGS, SliceWindow};
use super::{Args, CpuCx, Inputs, Io, OpDef, Operator, one_output};
use crate::error::Result;
use crate::tensor::{BatchDesc, Device, ValueType};

struct Slice {
    window: SliceWindow,
    extract: Extract,
}

/// The operator's line in [`super::OPS`].
pub(super) const DEF: OpDef = OpDef {
    name: "Slice",
    aliases: &[],
    doc: "Cuts a window out of tensors, between absolute or relative ends",
    devices: &[Device::Cpu],
    inputs: (1, 3),
    args: &[],
    shared_args: &[SLICE_ARGS, extract::ARGS[0], extract::ARGS[1]],
    build,
    outputs: one_output,
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
}
