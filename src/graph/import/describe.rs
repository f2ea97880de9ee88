//! What a file says, for people and tools: also of a file that cannot be run here. It builds nothing but what tells
//! whether an operator is supported.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::proto::{InputOutput, OpDef, PipelineDef};
use super::arguments::{FEATURE, features};
use super::{PipelineFile, argument, is_bookkeeping, is_source};
use crate::operator::args::Value;
use crate::ops;
use crate::tensor::DType;
use unsupported::check;
pub(super) use unsupported::unknown;

/// The device number of a pipeline that was made without one.
pub(crate) const NO_DEVICE: i32 = -99_999;

/// A pipeline as its file has it: all that the file says, so that [`crate::graph::author`] can write it again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// The versions of DALI that write such files; a file does not hold its version.
    pub format: &'static str,
    /// The largest batch that it was made for.
    pub max_batch_size: Option<i32>,
    /// Worker threads that it asks for.
    pub num_threads: Option<i64>,
    /// The GPU that it was made on; `None`: it was made without one.
    pub device_id: Option<i32>,
    /// The seed of its random numbers, where the author gave one.
    pub seed: Option<i64>,
    /// Whether the author wanted to save its state.
    pub enable_checkpointing: Option<bool>,
    /// Which of DALI's executors was to run it, by bits.
    pub executor_type: Option<i32>,
    /// Wishes for that executor, by bits.
    pub executor_flags: Option<i64>,
    /// Batches that DALI prepares ahead on the host.
    pub prefetch_queue_depth_cpu: Option<i32>,
    /// Batches that DALI prepares ahead on a GPU.
    pub prefetch_queue_depth_gpu: Option<i32>,
    /// Bytes that DALI is to expect of a sample.
    pub bytes_per_sample_hint: Option<i64>,
    /// What is fed.
    pub inputs: Vec<InputDescription>,
    /// What computes, producers first; without the inputs.
    pub operators: Vec<OperatorDescription>,
    /// What comes out.
    pub outputs: Vec<OutputDescription>,
}

/// An input of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InputDescription {
    /// The name that it is fed by.
    pub name: String,
    /// The edge that it feeds; another name than the input's only in files made by hand.
    pub edge: String,
    /// Where the pipeline reads it.
    pub device: String,
    /// Declared element type.
    #[serde(serialize_with = "json::dtype_name")]
    pub dtype: Option<DType>,
    /// Declared rank of a sample.
    pub ndim: Option<i64>,
    /// Declared layout, empty when there is none.
    pub layout: String,
    /// Its operator; `None` in files of very old versions, which only name it.
    pub operator: Option<String>,
    /// Its number among the operators of the file, inputs counted.
    pub place: Option<usize>,
    /// As for operators.
    pub logical_id: Option<i32>,
    /// Arguments that no other field tells.
    #[serde(serialize_with = "json::values", skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, Value>,
    /// Of these, those that do not change what it gives.
    #[serde(serialize_with = "json::values", skip_serializing_if = "BTreeMap::is_empty")]
    pub bookkeeping: BTreeMap<String, Value>,
    /// All arguments as the file stores them.
    pub stored: Vec<StoredArgument>,
    /// Arguments that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// An operator of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperatorDescription {
    /// Its schema name.
    pub name: String,
    /// The name of the instance.
    pub instance: String,
    /// `cpu`, `gpu` or `mixed`.
    pub device: String,
    /// Edges that it reads, in order.
    pub inputs: Vec<String>,
    /// Edges that feed its arguments, by keyword.
    pub argument_inputs: BTreeMap<String, String>,
    /// Edges that it writes, in order.
    pub outputs: Vec<String>,
    /// Arguments that were given, but for those that do not change what it computes.
    #[serde(serialize_with = "json::values")]
    pub arguments: BTreeMap<String, Value>,
    /// Why Gesso does not run it, if it does not.
    pub unsupported: Option<String>,
    /// Where it wants its inputs. Empty, as in nearly all files: those on `gpu` there, others on `cpu`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input_devices: Vec<String>,
    /// Where it writes its outputs. Empty, as in nearly all files: those on `gpu` and `mixed` on `gpu`, others on
    /// `cpu`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub output_devices: Vec<String>,
    /// Where it wants what feeds its arguments, by keyword, where that is not `cpu`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub argument_input_devices: BTreeMap<String, String>,
    /// Operators with the same number share a seed.
    pub logical_id: Option<i32>,
    /// Arguments that do not change what it computes, such as where it stands in the author's program.
    #[serde(serialize_with = "json::values", skip_serializing_if = "BTreeMap::is_empty")]
    pub bookkeeping: BTreeMap<String, Value>,
    /// All arguments as the file stores them.
    pub stored: Vec<StoredArgument>,
    /// Arguments that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// How the file stores an argument. In a list of them their order is the file's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredArgument {
    /// Its keyword.
    pub name: String,
    /// The type of its value, or of the elements of its list.
    #[serde(rename = "type")]
    pub kind: ArgumentType,
    /// Whether it is a list.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub list: bool,
}

/// The type of an argument, by the name that the file has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArgumentType {
    /// An integer; enumerations, too.
    Int64,
    /// A float32.
    Float,
    /// A truth value.
    Bool,
    /// A text.
    String,
    /// A feature of a `TFRecord` reader: arguments inside of an argument, which are told as an object of JSON, with a
    /// list for each.
    #[serde(rename = "TFRecord")]
    Feature,
}

impl ArgumentType {
    /// The type of the elements of a value.
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Ints(_) => Self::Int64,
            Value::Floats(_) => Self::Float,
            Value::Bools(_) => Self::Bool,
            Value::Strings(_) => Self::String,
        }
    }

    /// As files have it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Int64 => "int64",
            Self::Float => "float",
            Self::Bool => "bool",
            Self::String => "string",
            Self::Feature => FEATURE,
        }
    }
}

/// An output of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputDescription {
    /// The edge that it is.
    pub name: String,
    /// Where the author wants it.
    pub device: String,
    /// Declared element type.
    #[serde(serialize_with = "json::dtype_name")]
    pub dtype: Option<DType>,
    /// Declared rank of a sample.
    pub ndim: Option<i32>,
    /// Declared layout, empty when there is none.
    pub layout: String,
}

/// An operator of the file: an input, or one that computes, by its number among these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// An input.
    Input(usize),
    /// An operator.
    Operator(usize),
}

impl Description {
    /// Inputs and operators in the order of the file. Inputs without a place come first; those that have no operator
    /// are left out.
    pub(crate) fn in_file_order(&self) -> Vec<Entry> {
        let mut inputs: Vec<(usize, usize)> = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(_, input)| input.operator.is_some())
            .map(|(i, input)| (input.place.unwrap_or_default(), i))
            .collect();
        inputs.sort_unstable();
        let mut inputs = inputs.into_iter().peekable();
        let mut ordered = Vec::with_capacity(self.inputs.len() + self.operators.len());
        for operator in 0..=self.operators.len() {
            while let Some((_, i)) =
                inputs.next_if(|&(place, _)| place <= ordered.len() || operator == self.operators.len())
            {
                ordered.push(Entry::Input(i));
            }
            if operator < self.operators.len() {
                ordered.push(Entry::Operator(operator));
            }
        }
        ordered
    }
}

impl OperatorDescription {
    /// Where an operator on `device` wants its inputs, unless the file says otherwise.
    pub(crate) fn usual_input_device(device: &str) -> &'static str {
        if device == "gpu" { "gpu" } else { "cpu" }
    }

    /// Where an operator on `device` writes its outputs, unless the file says otherwise.
    pub(crate) fn usual_output_device(device: &str) -> &'static str {
        if matches!(device, "gpu" | "mixed") { "gpu" } else { "cpu" }
    }
}

impl PipelineFile {
    /// What the file says, whether or not it can be run.
    pub fn describe(&self) -> Description {
        let def = &self.0;
        let legacy = def.external_inputs.iter().map(|name| InputDescription {
            name: name.clone(),
            edge: name.clone(),
            device: "cpu".to_owned(),
            dtype: None,
            ndim: None,
            layout: String::new(),
            operator: None,
            place: None,
            logical_id: None,
            arguments: BTreeMap::new(),
            bookkeeping: BTreeMap::new(),
            stored: Vec::new(),
            unreadable: Vec::new(),
        });
        let (sources, operators): (Vec<_>, Vec<_>) =
            def.op.iter().enumerate().partition(|(_, op)| is_source(op.name.as_deref().unwrap_or_default()));
        Description {
            format: format(def),
            max_batch_size: def.batch_size,
            num_threads: def.num_threads,
            device_id: def.device_id.filter(|&id| id != NO_DEVICE),
            seed: def.seed.filter(|&seed| seed >= 0),
            enable_checkpointing: def.enable_checkpointing,
            executor_type: def.executor_type,
            executor_flags: def.executor_flags,
            prefetch_queue_depth_cpu: def.prefetch_queue_depth_cpu,
            prefetch_queue_depth_gpu: def.prefetch_queue_depth_gpu,
            bytes_per_sample_hint: def.bytes_per_sample_hint,
            inputs: legacy.chain(sources.into_iter().map(|(place, op)| input(place, op))).collect(),
            operators: operators.into_iter().map(|(_, op)| operator(op)).collect(),
            outputs: def.pipe_outputs.iter().map(output).collect(),
        }
    }
}

fn format(def: &PipelineDef) -> &'static str {
    let names = || def.op.iter().filter_map(|op| op.name.as_deref());
    // Whether the name is one that has got an underscore, and has it.
    let has_underscore =
        |name: &str| ops::find(name).filter(|op| op.underscored).map(|_| name.starts_with('_'));
    match def.executor_type {
        _ if names().any(|name| has_underscore(name) == Some(true)) => "DALI 2.0 or newer",
        Some(_) if names().any(|name| has_underscore(name) == Some(false)) => "DALI 1.34 to 1.x",
        Some(_) => "DALI 1.34 or newer",
        None => "DALI 1.33 or older",
    }
}

/// The arguments of an operator of the file, sorted by what they are for.
struct Given {
    device: String,
    values: BTreeMap<String, Value>,
    bookkeeping: BTreeMap<String, Value>,
    stored: Vec<StoredArgument>,
    unreadable: Vec<String>,
}

impl Given {
    fn new(op: &OpDef) -> Self {
        let mut given = Self {
            device: "cpu".to_owned(),
            values: BTreeMap::new(),
            bookkeeping: BTreeMap::new(),
            stored: Vec::new(),
            unreadable: Vec::new(),
        };
        for arg in &op.args {
            let name = arg.name.clone().unwrap_or_default();
            let features = features(arg).map(|texts| (ArgumentType::Feature, Value::Strings(texts)));
            let plain = || argument(arg).ok().map(|value| (ArgumentType::of(&value), value));
            let Some((kind, value)) = features.or_else(plain) else {
                given.unreadable.push(name);
                continue;
            };
            let list = arg.is_vector.unwrap_or(false);
            given.stored.push(StoredArgument { name: name.clone(), kind, list });
            let of = if is_bookkeeping(&name) { &mut given.bookkeeping } else { &mut given.values };
            if of.insert(name.clone(), value).is_some() {
                given.unreadable.push(name);
            }
        }
        if let Some(Value::Strings(mut device)) = given.take(true, "device", ArgumentType::String) {
            given.device = device.pop().unwrap_or_default();
        }
        given
    }

    /// The value of a keyword which is stored as one value of this type: it gets a field of its own.
    fn take(&mut self, bookkeeping: bool, name: &str, kind: ArgumentType) -> Option<Value> {
        let expected = StoredArgument { name: name.to_owned(), kind, list: false };
        let of = if bookkeeping { &mut self.bookkeeping } else { &mut self.values };
        if self.stored.contains(&expected) { of.remove(name) } else { None }
    }
}

fn input(place: usize, op: &OpDef) -> InputDescription {
    let mut given = Given::new(op);
    let mut int =
        |name: &str, is_kept: &dyn Fn(i64) -> bool| match given.take(false, name, ArgumentType::Int64) {
            Some(Value::Ints(values)) if values.first().is_some_and(|&value| is_kept(value)) => {
                values.first().copied()
            }
            Some(other) => {
                // No type of ours, or no rank: it stands among the arguments.
                given.values.insert(name.to_owned(), other);
                None
            }
            None => None,
        };
    let dtype = int("dtype", &|id| DType::in_file(id).is_some()).and_then(DType::in_file);
    let ndim = int("ndim", &|_| true);
    let layout = match given.take(false, "layout", ArgumentType::String) {
        Some(Value::Strings(mut values)) => values.pop().unwrap_or_default(),
        _ => String::new(),
    };
    let edge = op.output.first().and_then(|output| output.name.clone()).unwrap_or_default();
    let instance = op.inst_name.clone().filter(|name| !name.is_empty());
    InputDescription {
        name: instance.unwrap_or_else(|| edge.clone()),
        edge,
        device: given.device,
        dtype,
        ndim,
        layout,
        operator: op.name.clone(),
        place: Some(place),
        logical_id: op.logical_id,
        arguments: given.values,
        bookkeeping: given.bookkeeping,
        stored: given.stored,
        unreadable: given.unreadable,
    }
}

fn operator(op: &OpDef) -> OperatorDescription {
    let given = Given::new(op);
    let (fed, regular): (Vec<&InputOutput>, Vec<&InputOutput>) =
        op.input.iter().partition(|edge| edge.is_argument_input.unwrap_or(false));
    let name = |edge: &InputOutput| edge.name.clone().unwrap_or_default();
    let keyword = |edge: &InputOutput| edge.arg_name.clone().unwrap_or_default();
    let on_device = |edge: &&InputOutput| device_of(edge) != "cpu";
    OperatorDescription {
        name: op.name.clone().unwrap_or_default(),
        instance: op.inst_name.clone().unwrap_or_default(),
        inputs: regular.iter().map(|edge| name(edge)).collect(),
        argument_inputs: fed.iter().map(|edge| (keyword(edge), name(edge))).collect(),
        outputs: op.output.iter().map(name).collect(),
        unsupported: check(op).err().map(|error| error.to_string()),
        input_devices: unusual(&regular, OperatorDescription::usual_input_device(&given.device)),
        output_devices: unusual(
            &op.output.iter().collect::<Vec<_>>(),
            OperatorDescription::usual_output_device(&given.device),
        ),
        argument_input_devices: fed
            .iter()
            .copied()
            .filter(on_device)
            .map(|edge| (keyword(edge), device_of(edge)))
            .collect(),
        logical_id: op.logical_id,
        device: given.device,
        arguments: given.values,
        bookkeeping: given.bookkeeping,
        stored: given.stored,
        unreadable: given.unreadable,
    }
}

fn device_of(edge: &InputOutput) -> String {
    edge.device.clone().unwrap_or_else(|| "cpu".to_owned())
}

/// The devices of edges, unless all are the usual one.
fn unusual(edges: &[&InputOutput], usual: &str) -> Vec<String> {
    let devices: Vec<String> = edges.iter().map(|edge| device_of(edge)).collect();
    if devices.iter().all(|device| device == usual) { Vec::new() } else { devices }
}

fn output(output: &InputOutput) -> OutputDescription {
    OutputDescription {
        name: output.name.clone().unwrap_or_default(),
        device: output.device.clone().unwrap_or_default(),
        dtype: output.dtype.and_then(|id| DType::in_file(i64::from(id))),
        ndim: output.ndim.filter(|&ndim| ndim >= 0),
        layout: output.layout.clone().unwrap_or_default(),
    }
}

mod json;
#[cfg(test)]
mod tests;
mod unsupported;
