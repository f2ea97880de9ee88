//! Two operators as one, where nothing else sees the value between them. Runs after types are known.

use super::{Graph, Node, NodeKind, Placement, ValueId};
use crate::ops::{self, Fusion};
use crate::tensor::Device;

/// Between the names of the two.
pub(super) const AND: &str = " + ";

/// Replaces each pair that [`Fusion`] knows, the second the only reader of the first and both on the same device, by one node.
pub(super) fn fuse(graph: &mut Graph) {
    let mut i = 0;
    while i < graph.nodes.len() {
        match partner(graph, i) {
            Some((j, fusion)) => {
                let second = graph.nodes.remove(j);
                // The later place: its argument inputs exist there.
                let first = graph.nodes.remove(i);
                graph.nodes.insert(j - 1, joined(fusion, first, second));
            }
            None => i += 1,
        }
    }
}

/// The node that node `i` can be fused with, and how.
fn partner(graph: &Graph, i: usize) -> Option<(usize, &'static Fusion)> {
    let first = &graph.nodes[i];
    let (NodeKind::Operator(def, args), &[input], &[between]) =
        (&first.kind, first.inputs.as_slice(), first.outputs.as_slice())
    else {
        return None;
    };
    let device = match first.placement {
        Placement::Cpu => Device::Cpu,
        Placement::Gpu => Device::Gpu,
        Placement::Mixed => return None,
    };
    let j = only_reader(graph, between)?;
    let second = &graph.nodes[j];
    let NodeKind::Operator(next, next_args) = &second.kind else { return None };
    let types = [&graph.value(input).ty, &graph.value(between).ty];
    let fusion = ops::fusion(device, [(def, args), (next, next_args)], types)?;
    (second.inputs == [between] && second.placement == first.placement).then_some((j, fusion))
}

/// The one node that reads `value`, if it is no output.
pub(super) fn only_reader(graph: &Graph, value: ValueId) -> Option<usize> {
    if graph.outputs.iter().any(|output| output.value == value) {
        return None;
    }
    let reads = |node: &Node| node.inputs.iter().chain(&node.arguments).filter(|&&id| id == value).count();
    let mut readers = graph.nodes.iter().enumerate().filter(|(_, node)| reads(node) > 0);
    let (j, node) = readers.next()?;
    (reads(node) == 1 && readers.next().is_none()).then_some(j)
}

fn joined(fusion: &'static Fusion, first: Node, second: Node) -> Node {
    let instance = [first.instance, second.instance].join(AND);
    let kind = match (first.kind, second.kind) {
        (NodeKind::Operator(_, first), NodeKind::Operator(_, second)) => {
            NodeKind::Fused(fusion, first, second)
        }
        // Only operators have partners.
        (first, _) => first,
    };
    let arguments = first.arguments.into_iter().chain(second.arguments).collect();
    Node {
        instance,
        kind,
        placement: second.placement,
        inputs: first.inputs,
        arguments,
        outputs: second.outputs,
    }
}
