//! From a file to a plan: `proto` is the wire format, [`import`] makes a [`Graph`] of typed operators with named
//! wires and a device each, [`plan`] orders it and says when each value is freed. [`author`] writes files.

mod arithmetic;
pub mod author;
pub mod branches;
mod fuse;
pub mod import;
pub mod infer;
#[cfg(feature = "testing")]
mod moved;
#[cfg(feature = "testing")]
mod own_sources;
pub mod plan;
mod proto;
mod sources;

use std::sync::Arc;

use crate::operator::{Args, CALLBACK, Callback, Fusion, OpDef};
use crate::source::MakeSource;
use crate::tensor::{DType, Device, Layout, ValueType};

pub use branches::{BranchId, Branches};
pub use plan::Plan;

/// A value: one output of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub usize);

/// A pipeline for one target device: nodes in topological order, connected by values.
pub struct Graph {
    /// Producers first.
    pub nodes: Vec<Node>,
    /// Every value, indexed by [`ValueId`].
    pub values: Vec<Value>,
    /// What comes from outside, in file order.
    pub inputs: Vec<GraphInput>,
    /// What a caller gets, in file order; the same value may stand here twice.
    pub outputs: Vec<GraphOutput>,
    /// The largest batch that the file was made for.
    pub max_batch_size: usize,
    /// Worker threads that the file asks for.
    pub num_threads: Option<usize>,
    /// Warnings for the log: residency broken, say.
    pub warnings: Vec<String>,
    /// What feeds inputs in place of the caller.
    pub sources: Vec<GraphSource>,
}

/// What feeds inputs in place of the caller.
pub struct GraphSource {
    /// The instance's name in the file, for a reader; empty for what a program brings.
    pub name: String,
    /// What callers bring for it.
    pub fed: Fed,
    /// Where what it makes is wanted: it may make it there.
    pub device: Device,
    /// Makes it.
    pub make: MakeSource,
}

/// What a source is fed with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fed {
    /// Nothing: it reads a data set.
    Nothing,
    /// A video, which becomes many batches.
    Videos,
    /// A batch that stands beside all of them.
    Batch,
}

/// A wire of the graph.
#[derive(Debug, Clone)]
pub struct Value {
    /// Edge name in the file; a copy on the other device has the same name.
    pub name: String,
    /// Where its bytes are.
    pub device: Device,
    /// What is known of it at load.
    pub ty: ValueType,
}

/// One step of the computation.
pub struct Node {
    /// Instance name in the file.
    pub instance: String,
    /// What it does.
    pub kind: NodeKind,
    /// Where it runs.
    pub placement: Placement,
    /// Regular inputs in order.
    pub inputs: Vec<ValueId>,
    /// Argument inputs, in the order of the indices in the operator's [`Args`].
    pub arguments: Vec<ValueId>,
    /// Outputs in order.
    pub outputs: Vec<ValueId>,
}

/// What a node does.
pub enum NodeKind {
    /// An operator with its arguments.
    Operator(&'static OpDef, Args),
    /// Several operators in one, with the arguments of each.
    Fused(&'static Fusion, Vec<Args>),
    /// A function of the program, with those layouts of its outputs that are known.
    Callback(Arc<dyn Callback>, Vec<Option<Layout>>),
    /// A copy from the device of its input to the device of its output.
    Transfer,
}

impl Node {
    /// Whether it computes with another library's arithmetic than DALI's.
    pub fn has_other_arithmetic(&self) -> bool {
        let is_other = |args: &Args| {
            args.given_string("arithmetic").is_ok_and(|name| name.is_some_and(|name| name != "dali"))
        };
        match &self.kind {
            NodeKind::Operator(_, args) => is_other(args),
            NodeKind::Fused(_, args) => args.iter().any(is_other),
            NodeKind::Callback(..) | NodeKind::Transfer => false,
        }
    }

    /// Whether regular input `input` is read where it is. Of several operators in one, the first has the inputs.
    pub fn reads_in_place(&self, input: usize) -> bool {
        self.first().is_none_or(|def| def.reads_in_place.has(input))
    }

    /// Whether the operator, on a device, copies itself what it looks at more than once of regular input `input`.
    pub fn copies_input(&self, input: usize) -> bool {
        self.first().is_some_and(|def| def.copies_input.has(input))
    }

    /// Whether a sample of the output depends on other samples of the batch.
    pub fn mixes_samples(&self) -> bool {
        match &self.kind {
            NodeKind::Operator(def, args) => (def.mixes_samples)(args),
            NodeKind::Fused(fusion, args) => {
                fusion.of.iter().zip(args).any(|(def, args)| (def.mixes_samples)(args))
            }
            // What it reads is on the host: which samples failed is known.
            NodeKind::Callback(..) | NodeKind::Transfer => false,
        }
    }

    /// The operator that has the inputs; none of a transfer, which is a copy itself, and of a function.
    pub fn first(&self) -> Option<&'static OpDef> {
        match self.kind {
            NodeKind::Operator(def, _) => Some(def),
            NodeKind::Fused(fusion, _) => fusion.of.first().copied(),
            NodeKind::Callback(..) | NodeKind::Transfer => None,
        }
    }
}

/// Where a node runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Host to host.
    Cpu,
    /// Device to device.
    Gpu,
    /// Host inputs, device outputs: decoders.
    Mixed,
}

impl Placement {
    /// Where the operator computes.
    pub fn device(self) -> Device {
        if self == Placement::Cpu { Device::Cpu } else { Device::Gpu }
    }

    /// As the file spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Placement::Cpu => "cpu",
            Placement::Gpu => "gpu",
            Placement::Mixed => "mixed",
        }
    }
}

/// Who feeds an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feed {
    /// Whoever runs a batch: a request, a test.
    Caller,
    /// One output of one of [`Graph::sources`].
    Source {
        /// Which source.
        source: usize,
        /// Which of its outputs.
        output: usize,
    },
}

/// A value that comes from outside.
#[derive(Debug, Clone)]
pub struct GraphInput {
    /// Name that requests use.
    pub name: String,
    /// The value.
    pub value: ValueId,
    /// Declared element type: data of another type is refused.
    pub dtype: Option<DType>,
    /// Declared rank of a sample.
    pub ndim: Option<usize>,
    /// Declared layout, empty when there is none.
    pub layout: crate::tensor::Layout,
    /// Who feeds it.
    pub feed: Feed,
}

/// A value that the caller gets.
#[derive(Debug, Clone)]
pub struct GraphOutput {
    /// Edge name.
    pub name: String,
    /// The value.
    pub value: ValueId,
    /// Where the author wants it; where it is made may be elsewhere.
    pub device: Device,
    /// Type that the author declared: a check, not a conversion.
    pub dtype: Option<DType>,
    /// Rank that the author declared.
    pub ndim: Option<usize>,
}

impl Graph {
    /// The operator name of a node, as messages and tables show it.
    pub fn op_name(node: &Node) -> &'static str {
        match node.kind {
            NodeKind::Operator(def, _) => def.name,
            NodeKind::Fused(fusion, ..) => fusion.name,
            NodeKind::Callback(..) => CALLBACK,
            NodeKind::Transfer => "transfer",
        }
    }

    /// A value by its id.
    pub fn value(&self, id: ValueId) -> &Value {
        &self.values[id.0]
    }
}
