//! Operators that are functions of the program.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::proto::OpDef as FileOp;
use super::super::{Node, NodeKind, Placement};
use super::Importer;
use crate::error::{Error, Result};
use crate::operator::Callback;
use crate::operator::args::Value as ArgValue;
use crate::tensor::{Device, Layout};

impl<'d> Importer<'d> {
    /// Adds an operator that calls `callback`, on the host. Its argument `output_layouts` has a layout for each output;
    /// those that it leaves out are known only when the function has been called.
    pub(super) fn callback(
        &mut self,
        op: &'d FileOp,
        callback: &Arc<dyn Callback>,
        mut values: BTreeMap<String, ArgValue>,
    ) -> Result<()> {
        let given = match values.remove("output_layouts") {
            None => Vec::new(),
            Some(ArgValue::Strings(layouts)) => layouts,
            Some(_) => return Err(Error::invalid("`output_layouts` is no list of texts")),
        };
        if given.len() > op.output.len() {
            let (found, most) = (given.len(), op.output.len());
            return Err(Error::invalid(format!(
                "`output_layouts` has {found} layouts, expected at most {most}"
            )));
        }
        let mut layouts =
            given.iter().map(|layout| Layout::new(layout).map(Some)).collect::<Result<Vec<_>>>()?;
        layouts.resize(op.output.len(), None);
        let (mut inputs, mut arguments) = (Vec::new(), Vec::new());
        for input in &op.input {
            let value = self.resolve(input.name.as_deref().unwrap_or_default(), Device::Cpu)?;
            if input.is_argument_input.unwrap_or(false) { &mut arguments } else { &mut inputs }.push(value);
        }
        let produced = op.output.iter().map(|output| {
            let name = output.name.as_deref().unwrap_or_default();
            self.produce(name, Device::Cpu)
        });
        let outputs = produced.collect::<Result<_>>()?;
        self.graph.nodes.push(Node {
            instance: op.inst_name.clone().unwrap_or_default(),
            kind: NodeKind::Callback(Arc::clone(callback), layouts),
            placement: Placement::Cpu,
            inputs,
            arguments,
            outputs,
        });
        Ok(())
    }
}
