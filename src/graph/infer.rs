//! Types, ranks and layouts through the graph before there is a batch, so that a model configures itself; and the
//! residency rule. It builds every operator once, which also checks every argument at load.

use super::{Graph, GraphOutput, NodeKind};
use crate::error::{Context, Error, Result};
use crate::ops::Operator;
use crate::tensor::{Device, ValueType};

/// The operators of a graph, in the order of its nodes; `None` for a transfer.
pub type Operators = Vec<Option<Box<dyn Operator>>>;

/// Builds the operators of `graph`.
///
/// # Errors
/// The first argument or number of inputs that an operator does not take.
pub fn operators(graph: &Graph) -> Result<Operators> {
    graph
        .nodes
        .iter()
        .map(|node| match &node.kind {
            NodeKind::Transfer => Ok(None),
            NodeKind::Fused(fusion, first, second) => (fusion.build)(first, second).map(Some),
            NodeKind::Operator(def, args) => def
                .instantiate(args, node.inputs.len())
                .map(Some)
                .context(|| format!("operator `{}` (`{}`)", def.name, node.instance)),
        })
        .collect()
}

/// Fills in [`super::Value::ty`] for every value, returns the operators it asked, and checks the declared types of the outputs; notes broken residency.
///
/// # Errors
/// An operator that cannot take what its producer makes, or an output that is not what the author declared.
pub fn infer(graph: &mut Graph) -> Result<Operators> {
    let mut operators = operators(graph)?;
    for (i, operator) in operators.iter_mut().enumerate() {
        let node = &graph.nodes[i];
        let types = |ids: &[super::ValueId]| ids.iter().map(|&id| graph.value(id).ty.clone()).collect();
        let (inputs, arguments): (Vec<ValueType>, Vec<ValueType>) =
            (types(&node.inputs), types(&node.arguments));
        if let Some(operator) = operator {
            operator.infer_arguments(&arguments);
        }
        let types = match operator {
            None => inputs,
            Some(operator) => operator
                .infer(&inputs)
                .context(|| format!("operator `{}` (`{}`)", Graph::op_name(node), node.instance))?,
        };
        let outputs = node.outputs.clone();
        if types.len() != outputs.len() {
            return Err(Error::internal(format!(
                "operator `{}` infers {} outputs, expected {}",
                Graph::op_name(node),
                types.len(),
                outputs.len()
            )));
        }
        for (id, ty) in outputs.into_iter().zip(types) {
            graph.values[id.0].ty = ty;
        }
    }
    for output in &graph.outputs {
        check_declared(output, &graph.value(output.value).ty)?;
    }
    check_residency(graph);
    Ok(operators)
}

fn check_declared(output: &GraphOutput, ty: &ValueType) -> Result<()> {
    if let (Some(declared), Some(inferred)) = (output.dtype, ty.dtype)
        && declared != inferred
    {
        return Err(Error::invalid(format!(
            "output `{}` is declared as {declared}, but its operator makes {inferred}",
            output.name
        )));
    }
    if let (Some(declared), Some(inferred)) = (output.ndim, ty.ndim())
        && declared != inferred
    {
        return Err(Error::invalid(format!(
            "output `{}` is declared with {declared} dimensions, but its operator makes {inferred}",
            output.name
        )));
    }
    Ok(())
}

/// Data goes to the device once and comes back only into an output. A graph that breaks the rule still runs.
fn check_residency(graph: &mut Graph) {
    // For each value: the transfer to the host that lies on its way here, if any.
    let mut came_back: Vec<Option<usize>> = vec![None; graph.values.len()];
    let mut warnings = Vec::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        let seen = node.inputs.iter().chain(&node.arguments).find_map(|id| came_back[id.0]);
        let writes_device = node.outputs.iter().any(|&id| graph.value(id).device == Device::Gpu);
        let reads_host = node.inputs.iter().any(|&id| graph.value(id).device == Device::Cpu);
        if let (Some(back), true, true) = (seen, writes_device, reads_host) {
            warnings.push(format!(
                "data comes back from the device at `{}` and goes there again at `{}`: two copies a batch that the \
                 pipeline could do without",
                graph.nodes[back].instance, node.instance
            ));
        }
        let is_download = matches!(node.kind, NodeKind::Transfer)
            && node.outputs.iter().any(|&id| graph.value(id).device == Device::Cpu);
        for id in &node.outputs {
            came_back[id.0] = if is_download {
                Some(i)
            } else if writes_device {
                None
            } else {
                seen
            };
        }
    }
    graph.warnings.extend(warnings);
}
