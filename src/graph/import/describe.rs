//! What a file says, for people and tools: also of a file that cannot be run here. It builds nothing but what tells whether an
//! operator is supported.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::proto::{InputOutput, OpDef, PipelineDef};
use super::{PipelineFile, argument, is_bookkeeping, is_source};
use crate::error::{Error, Result};
use crate::ops::args::Value;
use crate::ops::{self, Args};
use crate::tensor::DType;

/// The device number of a pipeline that was made without one.
const NO_DEVICE: i32 = -99_999;

/// Operators that DALI writes with a leading underscore since 2.0.
const RENAMED: [&str; 3] = ["ArithmeticGenericOp", "TensorSubscript", "SubscriptDimCheck"];

/// A pipeline as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// The versions of DALI that write such files; a file does not hold its version.
    pub written_by: &'static str,
    /// The largest batch that it was made for.
    pub max_batch_size: Option<i32>,
    /// Worker threads that it asks for.
    pub num_threads: Option<i64>,
    /// The GPU that it was made on; `None`: it was made without one.
    pub device_id: Option<i32>,
    /// The seed of its random numbers, where the author gave one.
    pub seed: Option<i64>,
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
    pub dtype: Option<&'static str>,
    /// Declared rank of a sample.
    pub ndim: Option<i64>,
    /// Declared layout, empty when there is none.
    pub layout: String,
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
    pub arguments: BTreeMap<String, Value>,
    /// Why Gesso does not run it, if it does not.
    pub unsupported: Option<String>,
}

/// An output of a pipeline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputDescription {
    /// The edge that it is.
    pub name: String,
    /// Where the author wants it.
    pub device: String,
    /// Declared element type.
    pub dtype: Option<&'static str>,
    /// Declared rank of a sample.
    pub ndim: Option<i32>,
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
        });
        let (sources, operators): (Vec<&OpDef>, Vec<&OpDef>) =
            def.op.iter().partition(|op| is_source(op.name.as_deref().unwrap_or_default()));
        Description {
            written_by: written_by(def),
            max_batch_size: def.batch_size,
            num_threads: def.num_threads,
            device_id: def.device_id.filter(|&id| id != NO_DEVICE),
            seed: def.seed.filter(|&seed| seed >= 0),
            inputs: legacy.chain(sources.into_iter().map(input)).collect(),
            operators: operators.into_iter().map(operator).collect(),
            outputs: def.pipe_outputs.iter().map(output).collect(),
        }
    }
}

fn written_by(def: &PipelineDef) -> &'static str {
    let names = || def.op.iter().filter_map(|op| op.name.as_deref());
    let is_new = |name: &str| name.strip_prefix('_').is_some_and(|rest| RENAMED.contains(&rest));
    match def.executor_type {
        _ if names().any(is_new) => "DALI 2.0 or newer",
        Some(_) if names().any(|name| RENAMED.contains(&name)) => "DALI 1.34 to 1.x",
        Some(_) => "DALI 1.34 or newer",
        None => "DALI 1.33 or older",
    }
}

fn input(op: &OpDef) -> InputDescription {
    let arguments = given(op);
    let int = |name: &str| match arguments.get(name) {
        Some(Value::Ints(values)) => values.first().copied(),
        _ => None,
    };
    let layout = match arguments.get("layout") {
        Some(Value::Strings(values)) => values.first().cloned(),
        _ => None,
    };
    let edge = op.output.first().and_then(|output| output.name.clone()).unwrap_or_default();
    let instance = op.inst_name.clone().filter(|name| !name.is_empty());
    InputDescription {
        name: instance.unwrap_or_else(|| edge.clone()),
        edge,
        device: device(op),
        dtype: int("dtype").and_then(DType::from_dali).map(DType::name),
        ndim: int("ndim"),
        layout: layout.unwrap_or_default(),
    }
}

fn operator(op: &OpDef) -> OperatorDescription {
    let names =
        |edges: &[InputOutput]| edges.iter().map(|edge| edge.name.clone().unwrap_or_default()).collect();
    let (fed, regular): (Vec<_>, Vec<_>) =
        op.input.iter().cloned().partition(|edge| edge.is_argument_input.unwrap_or(false));
    let argument_inputs =
        fed.into_iter().map(|edge| (edge.arg_name.unwrap_or_default(), edge.name.unwrap_or_default()));
    OperatorDescription {
        name: op.name.clone().unwrap_or_default(),
        instance: op.inst_name.clone().unwrap_or_default(),
        device: device(op),
        inputs: names(&regular),
        argument_inputs: argument_inputs.collect(),
        outputs: names(&op.output),
        arguments: given(op).into_iter().filter(|(keyword, _)| !is_bookkeeping(keyword)).collect(),
        unsupported: check(op).err().map(|error| error.to_string()),
    }
}

fn output(output: &InputOutput) -> OutputDescription {
    OutputDescription {
        name: output.name.clone().unwrap_or_default(),
        device: output.device.clone().unwrap_or_default(),
        dtype: output.dtype.and_then(|id| DType::from_dali(i64::from(id))).map(DType::name),
        ndim: output.ndim.filter(|&ndim| ndim >= 0),
    }
}

fn device(op: &OpDef) -> String {
    let given = op.args.iter().find(|arg| arg.name.as_deref() == Some("device"));
    given.and_then(|arg| arg.strings.first()).map_or("cpu", String::as_str).to_owned()
}

/// The arguments that can be read; what is malformed shows in [`check`].
fn given(op: &OpDef) -> BTreeMap<String, Value> {
    op.args
        .iter()
        .filter_map(|arg| Some((arg.name.clone().unwrap_or_default(), argument(arg).ok()?)))
        .collect()
}

/// Whether an operator by itself can be built.
fn check(op: &OpDef) -> Result<()> {
    let values = super::arguments(&op.args)?;
    let name = op.name.as_deref().unwrap_or_default();
    let Some(def) = ops::find(name) else { return Err(unknown(name)) };
    let fed = op.input.iter().filter(|edge| edge.is_argument_input.unwrap_or(false));
    let tensors: BTreeMap<String, usize> =
        fed.enumerate().map(|(i, edge)| (edge.arg_name.clone().unwrap_or_default(), i)).collect();
    let regular = op.input.iter().filter(|edge| !edge.is_argument_input.unwrap_or(false)).count();
    // Old versions write a seed for every operator.
    let counts = |keyword: &str| !is_bookkeeping(keyword) && keyword != "seed";
    let values = values.into_iter().filter(|(keyword, _)| counts(keyword)).collect();
    def.instantiate(&Args::new(values, tensors), regular).map(drop)
}

/// The error for an operator that [`ops::find`] does not know.
pub(super) fn unknown(name: &str) -> Error {
    let reads_files = name.contains("readers_") || name.contains("Reader") || name == "io__file__Read";
    Error::unsupported(if name.to_lowercase().contains("video") {
        "Gesso does not decode video yet"
    } else if reads_files {
        "it reads files of the server, which Gesso does not: feed what is in them to an external source"
    } else {
        "this operator is not known to this version of Gesso"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::proto::Argument;

    fn op(name: &str, inputs: &[&str], output: &str, args: &[(&str, i64)]) -> OpDef {
        let edge = |name: &str| InputOutput { name: Some(name.to_owned()), ..Default::default() };
        let argument = |&(name, value): &(&str, i64)| Argument {
            name: Some(name.to_owned()),
            r#type: Some("int64".to_owned()),
            ints: vec![value],
            ..Default::default()
        };
        let (name, inst_name) = (Some(name.to_owned()), Some(output.to_owned()));
        let args = args.iter().map(argument).collect();
        let mut op = OpDef { name, inst_name, args, ..Default::default() };
        op.input = inputs.iter().map(|name| edge(name)).collect();
        op.output = vec![edge(output)];
        op
    }

    fn described(ops: Vec<OpDef>, executor_type: Option<i32>) -> Description {
        PipelineFile(PipelineDef {
            op: ops,
            executor_type,
            seed: Some(-1),
            device_id: Some(NO_DEVICE),
            ..Default::default()
        })
        .describe()
    }

    #[test]
    fn what_cannot_run_is_described_with_the_reason() {
        let told = described(
            vec![
                op("ExternalSource", &[], "X", &[("dtype", 9), ("ndim", 2)]),
                op("Flip", &["X"], "a", &[("horizontal", 1), ("preserve", 1)]),
                op("Flip", &["X"], "b", &[("sideways", 1)]),
                op("NoSuchThing", &["X"], "c", &[]),
            ],
            None,
        );
        let [input] = told.inputs.as_slice() else { panic!("{told:?}") };
        assert_eq!((input.name.as_str(), input.dtype, input.ndim), ("X", Some("float32"), Some(2)));
        assert_eq!((told.seed, told.device_id), (None, None));
        let reasons: Vec<Option<&str>> = told.operators.iter().map(|op| op.unsupported.as_deref()).collect();
        assert!(reasons[1].is_some_and(|reason| reason.contains("`sideways`")), "{reasons:?}");
        assert!(reasons[2].is_some_and(|reason| reason.contains("not known")), "{reasons:?}");
        assert!(!told.operators[0].arguments.contains_key("preserve"));
        assert_eq!(told.operators[0].arguments["horizontal"], Value::Ints(vec![1]));
    }

    #[test]
    fn versions_are_told_by_their_marks() {
        let version = |name: &str, executor| described(vec![op(name, &["x"], "y", &[])], executor).written_by;
        assert_eq!(version("_ArithmeticGenericOp", Some(11)), "DALI 2.0 or newer");
        assert_eq!(version("ArithmeticGenericOp", Some(11)), "DALI 1.34 to 1.x");
        assert_eq!(version("ArithmeticGenericOp", None), "DALI 1.33 or older");
        assert_eq!(version("Resize", Some(11)), "DALI 1.34 or newer");
        assert_eq!(version("_conditional__Split", None), "DALI 1.33 or older");
    }

    #[test]
    fn operators_that_read_files_are_refused_for_it() {
        for name in ["readers__File", "readers___TFRecord", "FileReader", "io__file__Read"] {
            assert!(unknown(name).to_string().contains("files of the server"), "{name}");
        }
        assert!(unknown("OpticalFlow").to_string().contains("not known"));
        for name in ["decoders__Video", "experimental__inputs__Video", "readers__Video", "VideoReader"] {
            assert_eq!(unknown(name).to_string(), "Gesso does not decode video yet", "{name}");
        }
    }
}
