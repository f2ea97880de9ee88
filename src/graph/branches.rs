//! Which samples a value has. All of the batch, or those that the predicates of conditionals send its way: `if` in a
//! pipeline becomes a `Split` of every value that a branch reads and a `Merge` of what the two branches make.
//!
//! ```text
//!              .--> (p is true)  --> Flip --.
//! x --> Split(p)                             Merge(p) --> y        x, y, p: all samples
//!              '--> (p is false) --> Blur --'
//! ```
//!
//! A branch is known by the one around it, the predicate and the side, so that what two `Split`s by one predicate make
//! belongs together.

use std::collections::HashMap;

use super::infer::Operators;
use super::{Graph, Node, ValueId};
use crate::error::{Context, Error, Layer, Result};
use crate::operator::Routing;

/// A set of samples of the batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BranchId(pub usize);

impl BranchId {
    /// The whole batch.
    pub const ALL: BranchId = BranchId(0);
}

/// The branch of every value and node.
pub struct Branches {
    values: Vec<BranchId>,
    nodes: Vec<BranchId>,
    count: usize,
}

impl Branches {
    /// Follows the batch through `graph`.
    ///
    /// # Errors
    /// An operator that reads values of different branches, or a branch that leaves the pipeline without its other
    /// side.
    pub(super) fn new(graph: &Graph, operators: &Operators) -> Result<Self> {
        let mut branches = Self {
            values: vec![BranchId::ALL; graph.values.len()],
            nodes: Vec::with_capacity(graph.nodes.len()),
            count: 1,
        };
        let mut known = HashMap::new();
        for (node, operator) in graph.nodes.iter().zip(operators) {
            let routing = operator.as_ref().and_then(|operator| operator.routing());
            branches
                .node(graph, node, routing, &mut known)
                .context(|| Layer::operator(Graph::op_name(node), &node.instance))?;
        }
        match graph.outputs.iter().find(|output| branches.of(output.value) != BranchId::ALL) {
            Some(output) => Err(Error::invalid(format!(
                "output `{}` has only the samples of one branch of a conditional",
                output.name
            ))),
            None => Ok(branches),
        }
    }

    /// The branch of a value.
    pub fn of(&self, value: ValueId) -> BranchId {
        self.values[value.0]
    }

    /// The branch in which node `node` works; for a `Split` or `Merge`, the one around.
    pub fn of_node(&self, node: usize) -> BranchId {
        self.nodes[node]
    }

    /// How many branches there are, the whole batch included.
    pub fn count(&self) -> usize {
        self.count
    }

    fn node(
        &mut self,
        graph: &Graph,
        node: &Node,
        routing: Option<Routing>,
        known: &mut HashMap<(BranchId, ValueId, bool), BranchId>,
    ) -> Result<()> {
        // What routes samples reads its predicate on the host, as its only argument input.
        let predicate = || node.arguments.first().copied().ok_or_else(|| Error::internal("no predicate"));
        let around = match routing {
            Some(Routing::Merge) => self.of(predicate()?),
            _ => node.inputs.iter().chain(&node.arguments).next().map_or(BranchId::ALL, |&id| self.of(id)),
        };
        let mut side = |taken: bool| -> Result<BranchId> {
            let next = BranchId(self.count);
            let id = *known.entry((around, predicate()?, taken)).or_insert(next);
            self.count += usize::from(id == next);
            Ok(id)
        };
        let (inputs, outputs) = match routing {
            None => (vec![around; node.inputs.len()], vec![around; node.outputs.len()]),
            Some(Routing::Split) => (vec![around], vec![side(true)?, side(false)?]),
            Some(Routing::Merge) => (vec![side(true)?, side(false)?], vec![around]),
        };
        let expected = inputs.into_iter().chain(node.arguments.iter().map(|_| around));
        for (&id, expected) in node.inputs.iter().chain(&node.arguments).zip(expected) {
            if self.of(id) != expected {
                return Err(Error::invalid(format!(
                    "input `{}` has the samples of another branch of a conditional than its operator",
                    graph.value(id).name
                )));
            }
        }
        for (&id, branch) in node.outputs.iter().zip(outputs) {
            self.values[id.0] = branch;
        }
        self.nodes.push(around);
        Ok(())
    }
}
