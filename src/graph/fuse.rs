//! Several operators as one, where nothing else sees the values between them. Runs after types are known.

use super::{Graph, Node, NodeKind, Placement, ValueId};
use crate::operator::{Args, Fusion, MAX_FUSED, OpDef};
use crate::ops;

/// Between the names of the operators.
pub(super) const AND: &str = " + ";

/// Replaces each chain that a [`Fusion`] knows, every operator the only reader of the one before and all on the same
/// device, by one node.
pub(super) fn fuse(graph: &mut Graph) {
    let mut i = 0;
    while i < graph.nodes.len() {
        match fusion(graph, i) {
            Some((chain, fusion)) => {
                // The last place: argument inputs exist there. Readers stand behind what they read.
                let place = chain.last().map_or(i, |last| last + 1 - chain.len());
                let mut nodes: Vec<Node> = chain.iter().rev().map(|&at| graph.nodes.remove(at)).collect();
                nodes.reverse();
                if let Some(node) = joined(fusion, nodes) {
                    graph.nodes.insert(place, node);
                }
            }
            None => i += 1,
        }
    }
}

/// The nodes from `i` on that can be one, and how.
fn fusion(graph: &Graph, i: usize) -> Option<(Vec<usize>, &'static Fusion)> {
    let device = graph.nodes[i].placement.device();
    let mut chain = vec![i];
    while chain.len() < MAX_FUSED {
        match chain.last().and_then(|&last| next(graph, last)) {
            Some(next) => chain.push(next),
            None => break,
        }
    }
    while chain.len() > 1 {
        let nodes = chain.iter().map(|&at| &graph.nodes[at]);
        let operators: Option<Vec<_>> = nodes.clone().map(operator).collect();
        let types: Vec<_> =
            nodes.filter_map(|node| node.inputs.first()).map(|&id| &graph.value(id).ty).collect();
        if let Some(fusion) = ops::fusion(device, &operators?, &types) {
            return Some((chain, fusion));
        }
        chain.pop();
    }
    None
}

/// An operator that stands by itself, and its arguments.
fn operator(node: &Node) -> Option<(&'static OpDef, &Args)> {
    match &node.kind {
        NodeKind::Operator(def, args) => Some((def, args)),
        NodeKind::Fused(..) | NodeKind::Callback(..) | NodeKind::Transfer => None,
    }
}

/// The only reader of node `i`, an operator with one input, if it is on the same device and has no other.
fn next(graph: &Graph, i: usize) -> Option<usize> {
    let node = &graph.nodes[i];
    let (&[_], &[between], Some(_)) = (node.inputs.as_slice(), node.outputs.as_slice(), operator(node))
    else {
        return None;
    };
    let j = only_reader(graph, between)?;
    let reader = &graph.nodes[j];
    let same = reader.placement.device() == node.placement.device() && reader.placement != Placement::Mixed;
    (same && reader.inputs == [between] && operator(reader).is_some()).then_some(j)
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

/// `nodes` as one; `None` of none.
fn joined(fusion: &'static Fusion, nodes: Vec<Node>) -> Option<Node> {
    let names: Vec<&str> = nodes.iter().map(|node| node.instance.as_str()).collect();
    let instance = names.join(AND);
    let (first, last) = (nodes.first()?, nodes.last()?);
    let (placement, inputs, outputs) = (first.placement, first.inputs.clone(), last.outputs.clone());
    let (mut arguments, mut args) = (Vec::new(), Vec::with_capacity(nodes.len()));
    for node in nodes {
        arguments.extend(node.arguments);
        if let NodeKind::Operator(_, own) = node.kind {
            args.push(own);
        }
    }
    Some(Node { instance, kind: NodeKind::Fused(fusion, args), placement, inputs, arguments, outputs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Plan;
    use crate::graph::import::PipelineFile;
    use crate::tensor::Device;

    /// A decoder, a resize, a normalization with an input for its mirror, made for a GPU.
    const FILE: &[u8] = include_bytes!("../../benches/pipeline_gpu.dali");

    #[test]
    fn the_longest_chain_of_a_device_is_one_node() {
        let three = "decoders__Image + Resize + CropMirrorNormalize";
        let two = "decoders__Image + Resize";
        for (device, placement, expected) in [
            (Device::Gpu, Placement::Mixed, [three].as_slice()),
            (Device::Cpu, Placement::Cpu, &[two, "CropMirrorNormalize"]),
        ] {
            let file = PipelineFile::parse(FILE).unwrap();
            let apart = file.graph(device).unwrap();
            let reads = apart.nodes.iter().map(|node| node.arguments.len()).sum::<usize>();
            let graph = Plan::new(file.graph(device).unwrap()).unwrap().graph;
            let fused = graph.nodes.iter().find(|node| matches!(node.kind, NodeKind::Fused(..))).unwrap();
            let names: Vec<_> = graph.nodes.iter().map(Graph::op_name).collect();
            assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
            assert_eq!((fused.placement, fused.inputs.len()), (placement, 1));
            assert_eq!(graph.nodes.iter().map(|node| node.arguments.len()).sum::<usize>(), reads);
            // What has to be there before it is.
            let place = graph.nodes.iter().position(|node| node.outputs == fused.outputs).unwrap();
            let made = |id: &ValueId| graph.nodes[..place].iter().any(|node| node.outputs.contains(id));
            assert!(fused.arguments.iter().all(made), "{names:?}");
        }
    }
}
