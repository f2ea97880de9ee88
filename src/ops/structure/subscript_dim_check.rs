//! `SubscriptDimCheck`: what Python's `x[:, np.newaxis]` puts before `ExpandDims`. A view that checks the rank.

use crate::error::{Error, Result};
use crate::operator::{ArgSpec, Args, CpuCx, InputSet, Inputs, Io, OpDef, Operator, one_output};
use crate::tensor::{BatchDesc, Device, ValueType};

struct SubscriptDimCheck {
    subscripts: usize,
}

/// The operator's line in [`crate::ops::OPS`].
pub(in crate::ops) const DEF: OpDef = OpDef {
    name: "SubscriptDimCheck",
    aliases: &["_SubscriptDimCheck"],
    doc: "Checks that a tensor has as many dimensions as it has subscripts",
    devices: &[Device::Cpu, Device::Gpu],
    inputs: (1, 1),
    args: &[ArgSpec::int("num_subscripts", "dimensions that the sample has at least").required()],
    build: &build,
    outputs: &one_output,
    underscored: true,
    reads_in_place: InputSet::All,
    ..OpDef::BASE
};

fn build(args: &Args, _inputs: usize) -> Result<Box<dyn Operator>> {
    let subscripts = usize::try_from(args.int("num_subscripts")?).unwrap_or(0);
    Ok(Box::new(SubscriptDimCheck { subscripts }))
}

impl SubscriptDimCheck {
    fn check(&self, ndim: usize) -> Result<()> {
        if ndim >= self.subscripts {
            return Ok(());
        }
        Err(Error::invalid(format!("{} subscripts of a tensor with {ndim} dimensions", self.subscripts)))
    }
}

impl Operator for SubscriptDimCheck {
    fn infer(&self, inputs: &[ValueType]) -> Result<Vec<ValueType>> {
        inputs[0].ndim().map_or(Ok(()), |ndim| self.check(ndim))?;
        Ok(vec![inputs[0].clone()])
    }

    fn setup(&mut self, inputs: &Inputs<'_>) -> Result<Vec<BatchDesc>> {
        let desc = inputs.desc(0)?;
        inputs.map(|sample| self.check(sample.input(0)?.shape.len()));
        Ok(vec![desc.clone()])
    }

    fn run_cpu(&mut self, _cx: &CpuCx<'_>, _io: &mut Io<'_>) -> Result<()> {
        Err(Error::internal("a view has nothing to run"))
    }

    fn is_view(&self) -> bool {
        true
    }
}
