//! The order of work for one device: which step runs when, which value is freed after it, and which step writes
//! straight into a response. Built once per model and device, shared by its instances.

use std::fmt;

use super::infer::{self, Operators};
use super::{BranchId, Branches, Graph, Node, NodeKind, Placement, ValueId};
use crate::cpu::encoded::Encoded;
use crate::error::{Layer, Result};
use crate::operator::SEED;
use crate::tensor::Device;

/// Columns of the table are padded up to this many characters; longer cells push the rest of their row.
const MAX_CELL: usize = 60;

/// A graph with its order, lifetimes and output targets.
pub struct Plan {
    /// The nodes and values that the steps refer to.
    pub graph: Graph,
    /// One step per node, in order.
    pub steps: Vec<Step>,
    /// Pipeline outputs that no step writes directly: inputs passed through, views, a value that is an output twice,
    /// and one that steers another operator. They are copied when all steps are done.
    pub copied_outputs: Vec<usize>,
    /// Which samples each value has.
    pub branches: Branches,
    /// For each value: whether its bytes decide where an operator on the host reads and writes. Then they are in no
    /// memory that somebody else can write to: neither in a request's nor in a response's.
    pub steers: Vec<bool>,
    /// For each value: whether all that it steers are operators on a device that copy what they need of it. Inputs of
    /// the graph need no other copy then.
    pub copied_by_readers: Vec<bool>,
    /// For each value: whether all that it steers are decoders of pictures, whose file it is.
    pub is_picture: Vec<bool>,
}

/// One step of a plan.
pub struct Step {
    /// Which node of the graph.
    pub node: usize,
    /// Which samples it works on.
    pub branch: BranchId,
    /// For each output of the node: the pipeline output whose buffers it writes into.
    pub writes: Vec<Option<usize>>,
    /// Values that nobody needs after this step.
    pub frees: Vec<ValueId>,
    /// How errors and tables call it.
    pub label: Layer,
    /// How errors call the operators that it stands for, if it stands for several.
    pub parts: Vec<Layer>,
}

impl Plan {
    /// Plans `graph` after filling in its types.
    ///
    /// # Errors
    /// Those of type inference, and of [`Branches`].
    pub fn new(mut graph: Graph) -> Result<Self> {
        let operators = infer::infer(&mut graph)?;
        let nodes = graph.nodes.len();
        super::fuse::fuse(&mut graph);
        let operators = if graph.nodes.len() == nodes { operators } else { infer::operators(&graph)? };
        Self::ordered(graph, &operators)
    }

    /// [`Plan::new`] with every operator by itself: what tests hold fused plans to.
    ///
    /// # Errors
    /// Those of type inference.
    #[cfg(feature = "testing")]
    pub fn unfused(mut graph: Graph) -> Result<Self> {
        let operators = infer::infer(&mut graph)?;
        Self::ordered(graph, &operators)
    }

    fn ordered(graph: Graph, operators: &Operators) -> Result<Self> {
        let branches = Branches::new(&graph, operators)?;
        let steers = steers(&graph, operators);
        let copied_by_readers = copied_by_readers(&graph, operators);
        let is_picture = is_picture(&graph, operators);
        let mut written = vec![false; graph.outputs.len()];
        let mut steps: Vec<Step> = Vec::with_capacity(graph.nodes.len());
        for (i, node) in graph.nodes.iter().enumerate() {
            let is_view = operators[i].as_ref().is_some_and(|operator| operator.is_view());
            let writes = node
                .outputs
                .iter()
                .map(|&id| {
                    let output = graph.outputs.iter().position(|output| output.value == id)?;
                    (!is_view && !steers[id.0]).then(|| written[output] = true)?;
                    Some(output)
                })
                .collect();
            let parts = match &node.kind {
                NodeKind::Fused(fusion, ..) => {
                    let names = fusion.of.iter().map(|def| def.name);
                    let of = |(name, instance)| Layer::operator(name, instance);
                    names.zip(node.instance.split(super::fuse::AND)).map(of).collect()
                }
                _ => Vec::new(),
            };
            let label = Layer::operator(Graph::op_name(node), &node.instance);
            let branch = branches.of_node(i);
            steps.push(Step { node: i, branch, writes, frees: Vec::new(), label, parts });
        }
        let copied_outputs = (0..written.len()).filter(|&o| !written[o]).collect();
        for (step, value) in last_uses(&graph) {
            steps[step].frees.push(value);
        }
        Ok(Self { graph, steps, copied_outputs, branches, steers, copied_by_readers, is_picture })
    }

    /// The nodes that draw numbers from a seed of the file.
    pub fn seeded(&self) -> impl Iterator<Item = usize> + '_ {
        let is_seeded = |node: &Node| match &node.kind {
            NodeKind::Operator(_, args) => args.has(SEED),
            NodeKind::Fused(_, args) => args.iter().any(|args| args.has(SEED)),
            NodeKind::Callback(..) | NodeKind::Transfer => false,
        };
        (0..).zip(&self.graph.nodes).filter(move |(_, node)| is_seeded(node)).map(|(i, _)| i)
    }

    /// Whether some of those numbers are drawn in a branch of a conditional.
    pub fn draws_in_branches(&self) -> bool {
        self.seeded().any(|node| self.branches.of_node(node) != BranchId::ALL)
    }

    /// Whether `step` brings a value, or what is known of one, from the device to the host in the middle of a batch.
    pub fn reads_back(&self, step: &Step) -> bool {
        let node = &self.graph.nodes[step.node];
        let to_host = node.outputs.iter().any(|&id| self.graph.value(id).device == Device::Cpu);
        match node.kind {
            NodeKind::Transfer => to_host,
            _ => !to_host && node.first().is_some_and(|def| def.sizes_by_work),
        }
    }

    /// A fresh set of operators for one instance.
    ///
    /// # Errors
    /// As when the plan was made: none that did not show then.
    pub fn operators(&self) -> Result<Operators> {
        infer::operators(&self.graph)
    }

    /// Lets operators make images smaller that their only reader makes still smaller.
    pub fn reduce(&self, operators: &mut Operators) {
        for (i, j) in self.only_readers() {
            let reader = operators.get_mut(j).and_then(Option::as_mut);
            let enough =
                reader.and_then(|reader| reader.deferred()).and_then(|reader| reader.sufficient_size());
            let operator = operators.get_mut(i).and_then(Option::as_mut);
            if let Some(deferred) = operator.and_then(|operator| operator.deferred()) {
                deferred.may_reduce_to(enough);
            }
        }
    }

    /// Lets decoders make the pixels of libjpeg-turbo where an operator with another library's arithmetic reads what
    /// becomes of them.
    pub fn make_exact(&self, operators: &mut Operators) {
        let mut is_read = vec![false; self.graph.values.len()];
        // What a node reads is made before it.
        for (node, operator) in self.graph.nodes.iter().zip(operators).rev() {
            if node.has_other_arithmetic() || node.outputs.iter().any(|id| is_read[id.0]) {
                node.inputs.iter().for_each(|id| is_read[id.0] = true);
                if let Some(deferred) = operator.as_mut().and_then(|operator| operator.deferred()) {
                    deferred.must_be_exact();
                }
            }
        }
    }

    /// Nodes whose output one other reads and nothing else does, with that one, which reads nothing else but arguments.
    fn only_readers(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.graph.nodes.iter().enumerate().filter_map(|(i, node)| {
            let &[output] = node.outputs.as_slice() else { return None };
            let reader = super::fuse::only_reader(&self.graph, output)?;
            (self.graph.nodes.get(reader)?.inputs == [output]).then_some((i, reader))
        })
    }

    /// Where input `input` is read. On the GPU only when nothing but copies to the device reads it: then samples may be
    /// on the device already.
    pub fn input_device(&self, input: usize) -> Device {
        let Some(id) = self.graph.inputs.get(input).map(|input| input.value) else { return Device::Cpu };
        let mut readers = self
            .graph
            .nodes
            .iter()
            .filter(|node| node.inputs.contains(&id) || node.arguments.contains(&id))
            .peekable();
        let copied = readers.peek().is_some() && readers.all(|node| matches!(node.kind, NodeKind::Transfer));
        let answered = self.graph.outputs.iter().any(|output| output.value == id);
        if copied && !answered { Device::Gpu } else { Device::Cpu }
    }

    /// Whether a value lies on a GPU.
    pub fn needs_gpu(&self) -> bool {
        self.graph.values.iter().any(|value| value.device == Device::Gpu)
    }
}

/// For each value whether an operator on the host is steered by it, or by a view of it.
fn steers(graph: &Graph, operators: &Operators) -> Vec<bool> {
    let mut steers = vec![false; graph.values.len()];
    // Backwards, so that what is made of a view is known before the view.
    for (node, operator) in graph.nodes.iter().zip(operators).rev() {
        // A transfer is a copy already.
        let Some(operator) = operator else { continue };
        let views = operator.is_view() && node.outputs.iter().any(|id| steers[id.0]);
        for (i, id) in node.inputs.iter().enumerate() {
            steers[id.0] |= views || !node.reads_in_place(i);
        }
        node.arguments.iter().for_each(|id| steers[id.0] = true);
    }
    steers
}

/// For each value whether all operators that it steers decode pictures, of which it is the file.
fn is_picture(graph: &Graph, operators: &Operators) -> Vec<bool> {
    let mut pictures = vec![true; graph.values.len()];
    for (node, operator) in graph.nodes.iter().zip(operators) {
        let Some(operator) = operator else { continue };
        let decodes = node.first().is_some_and(|def| def.encoded == Some(Encoded::Picture));
        for (i, id) in node.inputs.iter().enumerate() {
            pictures[id.0] &= decodes && i == 0 || node.reads_in_place(i) && !operator.is_view();
        }
        node.arguments.iter().for_each(|id| pictures[id.0] = false);
    }
    pictures
}

/// For each value whether its readers copy what they look at more than once. Whoever makes a view of it does not.
fn copied_by_readers(graph: &Graph, operators: &Operators) -> Vec<bool> {
    let mut copied = vec![true; graph.values.len()];
    for (node, operator) in graph.nodes.iter().zip(operators) {
        let Some(operator) = operator else { continue };
        let on_device = node.placement != Placement::Cpu;
        for (i, id) in node.inputs.iter().enumerate() {
            let own = on_device && node.copies_input(i);
            copied[id.0] &= own || node.reads_in_place(i) && !operator.is_view();
        }
        node.arguments.iter().for_each(|id| copied[id.0] = false);
    }
    copied
}

/// For every value that is not an output: the last step that touches it.
fn last_uses(graph: &Graph) -> Vec<(usize, ValueId)> {
    let mut last: Vec<Option<usize>> = vec![None; graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate() {
        for id in node.inputs.iter().chain(&node.arguments).chain(&node.outputs) {
            last[id.0] = Some(i);
        }
    }
    for output in &graph.outputs {
        last[output.value.0] = None;
    }
    last.into_iter().enumerate().filter_map(|(value, step)| Some((step?, ValueId(value)))).collect()
}

impl fmt::Display for Plan {
    /// The plan as a table: step, operator, device, inputs, outputs, frees.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |ids: &[ValueId]| {
            ids.iter().map(|&id| self.graph.value(id).name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let mut rows = vec![["step", "operator", "device", "inputs", "outputs", "frees"].map(str::to_owned)];
        for (i, step) in self.steps.iter().enumerate() {
            let node = &self.graph.nodes[step.node];
            let mut inputs = names(&node.inputs);
            if let NodeKind::Operator(_, args) = &node.kind
                && !node.arguments.is_empty()
            {
                let fed: Vec<&str> = args.names().filter(|name| args.is_tensor(name)).collect();
                inputs = format!("{inputs} ({}: {})", fed.join(", "), names(&node.arguments));
            }
            let outputs = node
                .outputs
                .iter()
                .zip(&step.writes)
                .map(|(&id, target)| {
                    let value = self.graph.value(id);
                    format!(
                        "{}{}{}",
                        value.name,
                        describe(&value.ty),
                        if target.is_some() { " -> response" } else { "" }
                    )
                })
                .collect::<Vec<_>>()
                .join(", ");
            rows.push([
                i.to_string(),
                Graph::op_name(node).to_owned(),
                node.placement.as_str().to_owned(),
                inputs,
                outputs,
                names(&step.frees),
            ]);
        }
        let widths: Vec<usize> = (0..6)
            .map(|c| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or_default().min(MAX_CELL))
            .collect();
        for row in rows {
            let line: Vec<String> =
                row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        for &output in &self.copied_outputs {
            writeln!(f, "copied to its response at the end: {}", self.graph.outputs[output].name)?;
        }
        Ok(())
    }
}

/// ` float32 [3, 224, ?] CHW`, as far as it is known.
fn describe(ty: &crate::tensor::ValueType) -> String {
    let mut text = String::new();
    if let Some(dtype) = ty.dtype {
        text += &format!(" {dtype}");
    }
    if let Some(dims) = &ty.dims {
        let dims: Vec<String> = dims.iter().map(|d| d.map_or("?".to_owned(), |d| d.to_string())).collect();
        text += &format!(" [{}]", dims.join(", "));
    }
    if let Some(layout) = ty.layout.filter(|layout| !layout.is_none()) {
        text += &format!(" {layout}");
    }
    text
}
