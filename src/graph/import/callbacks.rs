//! Operators and sources that are functions of the program.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::proto::OpDef as FileOp;
use super::super::{Fed, GraphSource, Node, NodeKind, Placement};
use super::{Importer, shortened};
use crate::error::{Error, Result};
use crate::operator::args::Value as ArgValue;
use crate::operator::{Callback, types_of_callback};
use crate::source::{Called, MakeSource, Source};
use crate::tensor::{Device, Layout};

impl<'d> Importer<'d> {
    /// Adds an operator that calls `callback`, on the host.
    pub(super) fn callback(
        &mut self,
        op: &'d FileOp,
        callback: &Arc<dyn Callback>,
        values: BTreeMap<String, ArgValue>,
    ) -> Result<()> {
        let layouts = layouts(op, values)?;
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

    /// Adds a source that calls `callback`; its outputs are inputs that it feeds.
    pub(super) fn callback_source(
        &mut self,
        op: &'d FileOp,
        callback: &Arc<dyn Callback>,
        values: BTreeMap<String, ArgValue>,
    ) -> Result<()> {
        if let Some(input) = op.input.first() {
            let name = input.name.as_deref().unwrap_or_default();
            return Err(Error::unsupported(format!("it reads `{}`, expected no inputs", shortened(name))));
        }
        if op.output.is_empty() {
            return Err(Error::invalid("no outputs, expected at least 1"));
        }
        let layouts = layouts(op, values)?;
        for (output, (edge, ty)) in op.output.iter().zip(types_of_callback(&layouts)).enumerate() {
            let name = edge.name.as_deref().unwrap_or_default();
            let value = self.produce(name, Device::Cpu)?;
            self.fed_by_source(name.to_owned(), value, ty, output);
        }
        let callback = Arc::clone(callback);
        let make: MakeSource = Arc::new(move || {
            Ok(Box::new(Called::new(Arc::clone(&callback), layouts.clone())) as Box<dyn Source>)
        });
        let name = op.inst_name.clone().unwrap_or_default();
        self.graph.sources.push(GraphSource { name, fed: Fed::Nothing, device: Device::Cpu, make });
        Ok(())
    }
}

/// The argument `output_layouts`: a layout for each output. Those that it leaves out are known only when the function
/// has been called.
fn layouts(op: &FileOp, mut values: BTreeMap<String, ArgValue>) -> Result<Vec<Option<Layout>>> {
    let given = match values.remove("output_layouts") {
        None => Vec::new(),
        Some(ArgValue::Strings(layouts)) => layouts,
        Some(_) => return Err(Error::invalid("`output_layouts` is no list of texts")),
    };
    if given.len() > op.output.len() {
        let (found, most) = (given.len(), op.output.len());
        return Err(Error::invalid(format!("`output_layouts` has {found} layouts, expected at most {most}")));
    }
    let mut layouts = given.iter().map(|layout| Layout::new(layout).map(Some)).collect::<Result<Vec<_>>>()?;
    layouts.resize(op.output.len(), None);
    Ok(layouts)
}
