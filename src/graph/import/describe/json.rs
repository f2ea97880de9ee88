//! Descriptions as JSON: how what JSON cannot say is spelled, and what a description may leave out. It must not know
//! what a description is used for.

mod value;

use std::collections::BTreeMap;

use serde::de::{self, IgnoredAny};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serializer};

use super::{
    ArgumentType, Description, InputDescription, OperatorDescription, OutputDescription, StoredArgument,
    Value,
};
use crate::error::{Error, Result};
use crate::limits;
use crate::ops::OPS;
use crate::tensor::DType;
use value::WrittenValue;

/// Floats that JSON has no numbers for.
const NOT_FINITE: [(&str, f32); 3] = [("nan", f32::NAN), ("inf", f32::INFINITY), ("-inf", f32::NEG_INFINITY)];

/// What DALI 2 writes for pipelines whose author says nothing of it.
const NUM_THREADS: i64 = 4;
const EXECUTOR_TYPE: i32 = 11;
const EXECUTOR_FLAGS: i64 = 4;
const QUEUE_DEPTH: i32 = 2;

/// The type by its name.
pub(super) fn dtype_name<S: Serializer>(dtype: &Option<DType>, to: S) -> Result<S::Ok, S::Error> {
    match dtype {
        Some(dtype) => to.serialize_some(dtype.name()),
        None => to.serialize_none(),
    }
}

/// Arguments, each a list; floats that are no number by their names.
pub(super) fn values<S: Serializer>(values: &BTreeMap<String, Value>, to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(values.len()))?;
    for (name, value) in values {
        match value {
            Value::Floats(floats) if floats.iter().any(|float| !float.is_finite()) => {
                let floats: Vec<serde_json::Value> = floats.iter().map(|&float| named(float)).collect();
                map.serialize_entry(name, &floats)?;
            }
            value => map.serialize_entry(name, value)?,
        }
    }
    map.end()
}

fn named(float: f32) -> serde_json::Value {
    let name = NOT_FINITE
        .iter()
        .find(|(_, other)| float.is_nan() && other.is_nan() || float.is_infinite() && float == *other);
    name.map_or_else(|| float.into(), |(name, _)| (*name).into())
}

impl<'de> Deserialize<'de> for Description {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Written::deserialize(from)?.description().map_err(de::Error::custom)
    }
}

/// What a description says of a logical id: nothing, that there is none, or which.
type LogicalId = Option<Option<i32>>;

/// A description as somebody wrote it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default, rename = "format")]
    _format: IgnoredAny,
    max_batch_size: i32,
    #[serde(default = "four_threads")]
    num_threads: Option<i64>,
    #[serde(default)]
    device_id: Option<i32>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default = "off")]
    enable_checkpointing: Option<bool>,
    #[serde(default = "newest_executor")]
    executor_type: Option<i32>,
    #[serde(default = "usual_flags")]
    executor_flags: Option<i64>,
    #[serde(default = "usual_depth")]
    prefetch_queue_depth_cpu: Option<i32>,
    #[serde(default = "usual_depth")]
    prefetch_queue_depth_gpu: Option<i32>,
    #[serde(default = "no_hint")]
    bytes_per_sample_hint: Option<i64>,
    #[serde(default)]
    inputs: Vec<WrittenInput>,
    #[serde(default)]
    operators: Vec<WrittenOperator>,
    outputs: Vec<WrittenOutput>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenInput {
    name: String,
    edge: Option<String>,
    #[serde(default = "host")]
    device: String,
    dtype: Option<String>,
    ndim: Option<i64>,
    #[serde(default)]
    layout: String,
    #[serde(default = "external_source")]
    operator: Option<String>,
    place: Option<usize>,
    #[serde(default, deserialize_with = "given")]
    logical_id: LogicalId,
    #[serde(default)]
    arguments: BTreeMap<String, WrittenValue>,
    #[serde(default)]
    bookkeeping: BTreeMap<String, WrittenValue>,
    stored: Option<Vec<StoredArgument>>,
    #[serde(default)]
    unreadable: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOperator {
    name: String,
    instance: Option<String>,
    #[serde(default = "host")]
    device: String,
    #[serde(default)]
    inputs: Vec<String>,
    #[serde(default)]
    argument_inputs: BTreeMap<String, String>,
    outputs: Vec<String>,
    #[serde(default)]
    arguments: BTreeMap<String, WrittenValue>,
    #[serde(default, rename = "unsupported")]
    _unsupported: IgnoredAny,
    #[serde(default)]
    input_devices: Vec<String>,
    #[serde(default)]
    output_devices: Vec<String>,
    #[serde(default)]
    argument_input_devices: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "given")]
    logical_id: LogicalId,
    #[serde(default)]
    bookkeeping: BTreeMap<String, WrittenValue>,
    stored: Option<Vec<StoredArgument>>,
    #[serde(default)]
    unreadable: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOutput {
    name: String,
    #[serde(default)]
    device: String,
    dtype: Option<String>,
    ndim: Option<i32>,
    #[serde(default)]
    layout: String,
}

fn four_threads() -> Option<i64> {
    Some(NUM_THREADS)
}

fn newest_executor() -> Option<i32> {
    Some(EXECUTOR_TYPE)
}

fn usual_flags() -> Option<i64> {
    Some(EXECUTOR_FLAGS)
}

fn usual_depth() -> Option<i32> {
    Some(QUEUE_DEPTH)
}

fn off() -> Option<bool> {
    Some(false)
}

fn no_hint() -> Option<i64> {
    Some(0)
}

fn host() -> String {
    "cpu".to_owned()
}

fn external_source() -> Option<String> {
    OPS.iter().find(|op| op.is_input && op.videos.is_none()).map(|op| op.name.to_owned())
}

/// A field that is there, whatever it is: `null` is not the same as a field that is left out.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<LogicalId, D::Error> {
    Option::<i32>::deserialize(from).map(Some)
}

impl Written {
    fn description(self) -> Result<Description> {
        let count = self.inputs.len() + self.operators.len();
        if count > limits::MAX_OPERATORS {
            return Err(Error::invalid(format!(
                "{count} inputs and operators, more than the limit of {}",
                limits::MAX_OPERATORS
            )));
        }
        let mut description = Description {
            format: "",
            max_batch_size: Some(self.max_batch_size),
            num_threads: self.num_threads,
            device_id: self.device_id,
            seed: self.seed,
            enable_checkpointing: self.enable_checkpointing,
            executor_type: self.executor_type,
            executor_flags: self.executor_flags,
            prefetch_queue_depth_cpu: self.prefetch_queue_depth_cpu,
            prefetch_queue_depth_gpu: self.prefetch_queue_depth_gpu,
            bytes_per_sample_hint: self.bytes_per_sample_hint,
            inputs: Vec::with_capacity(self.inputs.len()),
            operators: Vec::with_capacity(self.operators.len()),
            outputs: Vec::with_capacity(self.outputs.len()),
        };
        let (mut of_inputs, mut of_operators) = (Vec::new(), Vec::new());
        for input in self.inputs {
            of_inputs.push(input.logical_id);
            let name = input.name.clone();
            description.inputs.push(input.read().map_err(|error| error.context(format!("input `{name}`")))?);
        }
        for operator in self.operators {
            of_operators.push(operator.logical_id);
            let place = format!(
                "operator `{}` (`{}`)",
                operator.name,
                operator.outputs.first().map_or("", String::as_str)
            );
            description.operators.push(operator.read().map_err(|error| error.context(place))?);
        }
        for output in self.outputs {
            description.outputs.push(output.read()?);
        }
        number(&mut description, &of_inputs, &of_operators);
        Ok(description)
    }
}

/// Gives numbers by their order in the file to those whose author left them out.
fn number(description: &mut Description, inputs: &[LogicalId], operators: &[LogicalId]) {
    for (number, entry) in description.in_file_order().into_iter().enumerate() {
        let (slot, given) = match entry {
            super::Entry::Input(i) => {
                (description.inputs.get_mut(i).map(|input| &mut input.logical_id), inputs.get(i))
            }
            super::Entry::Operator(i) => {
                (description.operators.get_mut(i).map(|op| &mut op.logical_id), operators.get(i))
            }
        };
        if let (Some(slot), Some(given)) = (slot, given) {
            *slot = given.unwrap_or_else(|| i32::try_from(number).ok());
        }
    }
}

impl WrittenInput {
    fn read(self) -> Result<InputDescription> {
        let stored = self.stored.unwrap_or_else(|| {
            // As DALI does, which else takes two inputs that are declared alike for one.
            let keywords = [("device", ArgumentType::String), ("preserve_name", ArgumentType::Bool)];
            let entry = |(name, kind): (&str, _)| StoredArgument { name: name.to_owned(), kind, list: false };
            keywords.into_iter().map(entry).collect()
        });
        let mut bookkeeping = self.bookkeeping;
        if stored.iter().any(|entry| entry.name == "preserve_name")
            && !self.arguments.contains_key("preserve_name")
        {
            bookkeeping.entry("preserve_name".to_owned()).or_insert_with(WrittenValue::yes);
        }
        let mut read = Read { stored, values: BTreeMap::new(), bookkeeping: BTreeMap::new() };
        read.all(self.arguments, bookkeeping)?;
        Ok(InputDescription {
            edge: self.edge.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            device: self.device,
            dtype: dtype(self.dtype)?,
            ndim: self.ndim,
            layout: self.layout,
            operator: self.operator,
            place: self.place,
            logical_id: None,
            arguments: read.values,
            bookkeeping: read.bookkeeping,
            stored: read.stored,
            unreadable: self.unreadable,
        })
    }
}

impl WrittenOperator {
    fn read(self) -> Result<OperatorDescription> {
        let stored = self.stored.unwrap_or_else(|| {
            vec![StoredArgument { name: "device".to_owned(), kind: ArgumentType::String, list: false }]
        });
        let mut read = Read { stored, values: BTreeMap::new(), bookkeeping: BTreeMap::new() };
        read.all(self.arguments, self.bookkeeping)?;
        let first = self.outputs.first().map_or("", String::as_str);
        let instance = self.instance.unwrap_or_else(|| first.strip_suffix("[0]").unwrap_or(first).to_owned());
        Ok(OperatorDescription {
            name: self.name,
            instance,
            device: self.device,
            inputs: self.inputs,
            argument_inputs: self.argument_inputs,
            outputs: self.outputs,
            arguments: read.values,
            unsupported: None,
            input_devices: self.input_devices,
            output_devices: self.output_devices,
            argument_input_devices: self.argument_input_devices,
            logical_id: None,
            bookkeeping: read.bookkeeping,
            stored: read.stored,
            unreadable: self.unreadable,
        })
    }
}

impl WrittenOutput {
    fn read(self) -> Result<OutputDescription> {
        let dtype = dtype(self.dtype).map_err(|error| error.context(format!("output `{}`", self.name)))?;
        let Self { name, device, ndim, layout, .. } = self;
        Ok(OutputDescription { name, device, dtype, ndim, layout })
    }
}

fn dtype(name: Option<String>) -> Result<Option<DType>> {
    let Some(name) = name else { return Ok(None) };
    let found = DType::ALL.into_iter().find(|dtype| dtype.name() == name);
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.into_iter().map(DType::name).collect();
        Error::invalid(format!("`dtype` is `{}`, expected one of {}", name.escape_debug(), names.join(", ")))
    })
}

/// The arguments of one operator while they are read.
struct Read {
    stored: Vec<StoredArgument>,
    values: BTreeMap<String, Value>,
    bookkeeping: BTreeMap<String, Value>,
}

impl Read {
    fn all(
        &mut self,
        values: BTreeMap<String, WrittenValue>,
        bookkeeping: BTreeMap<String, WrittenValue>,
    ) -> Result<()> {
        let known: BTreeMap<String, StoredArgument> =
            self.stored.iter().map(|entry| (entry.name.clone(), entry.clone())).collect();
        for (name, value, is_bookkeeping) in values
            .into_iter()
            .map(|(name, value)| (name, value, false))
            .chain(bookkeeping.into_iter().map(|(name, value)| (name, value, true)))
        {
            let value = self
                .one(&name, value, known.get(&name))
                .map_err(|error| error.context(format!("argument `{}`", name.escape_debug())))?;
            let of = if is_bookkeeping { &mut self.bookkeeping } else { &mut self.values };
            of.insert(name, value);
        }
        Ok(())
    }

    fn one(&mut self, name: &str, value: WrittenValue, known: Option<&StoredArgument>) -> Result<Value> {
        let kind = match known {
            Some(known) => known.kind,
            None => {
                let kind = value.kind()?;
                self.stored.push(StoredArgument { name: name.to_owned(), kind, list: value.list });
                kind
            }
        };
        value.into_kind(kind)
    }
}
