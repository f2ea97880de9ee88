//! `PerFrame`: says that the first dimension of a tensor counts frames, so that an operator on sequences takes an
//! argument's value for each frame from it. A view: no byte moves.

use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, Layout, ValueType};

struct PerFrame {
    /// Whether any first letter of a layout becomes `F`.
    replace: bool,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "PerFrame",
    doc: "Marks the first dimension of a tensor as frames",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::bool("replace", "whether another first letter of the layout gives way").or_bool(false)],
    build: &build,
    outputs: &one_output,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    Ok(Box::new(PerFrame { replace: args.bool("replace")? }))
}

impl PerFrame {
    fn layout(&self, layout: Layout, ndim: usize) -> Result<Layout> {
        let rest = match layout.letters() {
            _ if ndim == 0 => return Err(Error::invalid("a scalar has no frames")),
            [] => vec![b'*'; ndim - 1],
            [b'F', ..] => return Ok(layout),
            [_, rest @ ..] if self.replace => rest.to_vec(),
            _ => return Err(Error::invalid(format!("layout `{layout}`, expected frames (`F`) first"))),
        };
        Ok(Layout::from_letters(&[b"F", rest.as_slice()].concat()))
    }
}

impl Operator for PerFrame {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        let mut ty = inputs[0].clone();
        ty.layout = match (ty.layout, ty.ndim()) {
            (Some(layout), Some(ndim)) => Some(self.layout(layout, ndim)?),
            _ => None,
        };
        Ok(vec![ty])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let mut desc = inputs.desc(0)?.clone();
        if let Some(shape) = desc.shapes.first() {
            desc.layout = self.layout(desc.layout, shape.len())?;
        }
        Ok(vec![desc])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }
}
