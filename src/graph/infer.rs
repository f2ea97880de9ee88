//! Types, ranks and layouts through the graph before there is a batch, so that a model configures itself; and the
//! residency rule. It builds every operator once, which also checks every argument at load.

use std::sync::Arc;

use super::{Graph, GraphOutput, Node, NodeKind, ValueId};
use crate::error::{Context, Error, Layer, Result};
use crate::limits;
use crate::operator::{Calls, Operator};
use crate::tensor::{DType, Device, ValueType};

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
            NodeKind::Callback(callback, layouts) => {
                Ok(Some(Box::new(Calls::new(Arc::clone(callback), layouts.clone())) as Box<dyn Operator>))
            }
            NodeKind::Fused(fusion, args) => fusion.build(args).map(Some),
            NodeKind::Operator(def, args) => def
                .instantiate(args, node.inputs.len())
                .map(Some)
                .context(|| Layer::operator(def.name, &node.instance)),
        })
        .collect()
}

/// Fills in [`super::Value::ty`] for every value, returns the operators it asked, and checks the declared types of the
/// outputs; notes broken residency.
///
/// # Errors
/// An operator that cannot take what its producer makes, or an output that is not what the author declared.
pub fn infer(graph: &mut Graph) -> Result<Operators> {
    let mut operators = operators(graph)?;
    infer_inputs(graph, &operators);
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
            Some(operator) => {
                operator.infer(&inputs).context(|| Layer::operator(Graph::op_name(node), &node.instance))?
            }
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

/// Types that the author did not declare of inputs, where a reader takes one type and one rank only: what feeds an
/// image decoder is the bytes of a file.
fn infer_inputs(graph: &mut Graph, operators: &Operators) {
    for i in 0..graph.inputs.len() {
        let input = &graph.inputs[i];
        if input.dtype.is_some() && input.ndim.is_some() {
            continue;
        }
        // The input, and its copy on the other device.
        let copy =
            |node: &&Node| matches!(node.kind, NodeKind::Transfer) && node.inputs.contains(&input.value);
        let copies = graph.nodes.iter().filter(copy).flat_map(|node| node.outputs.iter().copied());
        let ids: Vec<ValueId> = std::iter::once(input.value).chain(copies).collect();
        let mut readers = graph.nodes.iter().zip(operators);
        let only = readers.find_map(|(node, operator)| {
            let at = node.inputs.iter().position(|id| ids.contains(id))?;
            only_type(operator.as_ref()?.as_ref(), node.inputs.len(), at)
        });
        let Some((dtype, ndim)) = only else { continue };
        let dtype = input.dtype.unwrap_or(dtype);
        let ndim = input.ndim.unwrap_or(ndim);
        let ty = ValueType { dtype: Some(dtype), dims: Some(vec![None; ndim]), layout: Some(input.layout) };
        (graph.inputs[i].dtype, graph.inputs[i].ndim) = (Some(dtype), Some(ndim));
        graph.values[ids[0].0].ty = ty;
    }
}

/// Type and rank of regular input `at` of `operator`, when it takes no other.
fn only_type(operator: &dyn Operator, count: usize, at: usize) -> Option<(DType, usize)> {
    let takes = |dtype: Option<DType>, ndim: Option<usize>| {
        let ty = ValueType { dtype, dims: ndim.map(|n| vec![None; n]), layout: None };
        let types: Vec<ValueType> =
            (0..count).map(|i| if i == at { ty.clone() } else { ValueType::default() }).collect();
        operator.infer(&types).is_ok()
    };
    let mut dtypes = DType::ALL.into_iter().filter(|&dtype| takes(Some(dtype), None));
    let (dtype, other) = (dtypes.next()?, dtypes.next());
    let mut ndims = (0..=limits::MAX_NDIM).filter(|&ndim| takes(Some(dtype), Some(ndim)));
    let (ndim, another) = (ndims.next()?, ndims.next());
    (other.is_none() && another.is_none()).then_some((dtype, ndim))
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
