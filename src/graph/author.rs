//! The way back: a [`Description`] becomes the bytes of a file, as DALI's `Pipeline.serialize` writes them. What a
//! description means here and to DALI, it must not know: only what a file cannot say is refused.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost::Message;

use super::import::PipelineFile;
use super::import::describe::{
    ArgumentType, Description, Entry, InputDescription, NO_DEVICE, OperatorDescription, OutputDescription,
    StoredArgument,
};
use super::proto::{Argument, InputOutput, OpDef, PipelineDef};
use crate::error::{Context, Error, Layer, Result};
use crate::limits;
use crate::operator::args::Value;
use crate::tensor::DType;

/// What DALI writes where nothing is declared.
const UNDECLARED: i32 = -1;

/// The bytes of a file that says what `description` says.
///
/// # Errors
/// Invalid, for what no file can say or no reader would take: edges that nothing produces, names that are given twice,
/// more of something than the limits; unsupported, for arguments that could not be read when the description was made.
pub fn author(description: &Description) -> Result<Vec<u8>> {
    let size = description.max_batch_size.unwrap_or_default();
    if !usize::try_from(size).is_ok_and(|size| (1..=limits::MAX_BATCH_SIZE).contains(&size)) {
        return Err(Error::invalid(format!(
            "`max_batch_size` is {size}, expected 1 to {}",
            limits::MAX_BATCH_SIZE
        )));
    }
    let mut edges = Edges::default();
    let mut def = PipelineDef {
        num_threads: description.num_threads,
        batch_size: description.max_batch_size,
        op: Vec::with_capacity(description.inputs.len() + description.operators.len()),
        external_inputs: Vec::new(),
        pipe_outputs: Vec::with_capacity(description.outputs.len()),
        device_id: Some(description.device_id.unwrap_or(NO_DEVICE)),
        seed: description.seed,
        enable_checkpointing: description.enable_checkpointing,
        executor_type: description.executor_type,
        executor_flags: description.executor_flags,
        prefetch_queue_depth_cpu: description.prefetch_queue_depth_cpu,
        prefetch_queue_depth_gpu: description.prefetch_queue_depth_gpu,
        bytes_per_sample_hint: description.bytes_per_sample_hint,
    };
    for input in description.inputs.iter().filter(|input| input.operator.is_none()) {
        edges.instance(&input.name)?;
        edges.produce(&input.name, "cpu")?;
        def.external_inputs.push(input.name.clone());
    }
    for entry in description.in_file_order() {
        let op = match entry {
            Entry::Input(i) => description.inputs.get(i).map(|given| {
                input(given, &mut edges).context(|| format!("input `{}`", shortened(&given.name)))
            }),
            Entry::Operator(i) => description.operators.get(i).map(|given| {
                let (name, instance) = (shortened(&given.name), shortened(&given.instance));
                operator(given, &mut edges).context(|| Layer::operator(name, instance))
            }),
        };
        def.op.extend(op.transpose()?);
    }
    for (i, given) in description.outputs.iter().enumerate() {
        def.pipe_outputs.push(output(given, &edges).context(|| format!("output {i}"))?);
    }
    let bytes = def.encode_to_vec();
    // The limits of files are those of readers.
    PipelineFile::parse(&bytes)?;
    Ok(bytes)
}

/// What was produced so far.
#[derive(Default)]
struct Edges<'d> {
    /// Where each edge is written.
    devices: HashMap<&'d str, &'d str>,
    instances: HashSet<&'d str>,
}

impl<'d> Edges<'d> {
    fn instance(&mut self, name: &'d str) -> Result<()> {
        check_name("name", name)?;
        if !self.instances.insert(name) {
            return Err(Error::invalid("the instance name is used twice"));
        }
        Ok(())
    }

    fn produce(&mut self, name: &'d str, device: &'d str) -> Result<()> {
        check_name("output", name)?;
        if self.devices.insert(name, device).is_some() {
            return Err(Error::invalid(format!("edge `{name}` is produced twice")));
        }
        Ok(())
    }

    /// Where an edge that is read is written.
    fn device(&self, name: &str) -> Result<&'d str> {
        self.devices.get(name).copied().ok_or_else(|| {
            Error::invalid(format!(
                "edge `{}` is produced by nothing before it: operators stand in the order in which they run",
                shortened(name).escape_debug()
            ))
        })
    }
}

fn check_name(what: &str, name: &str) -> Result<()> {
    if name.is_empty() || name.len() > limits::MAX_NAME_BYTES {
        return Err(Error::invalid(format!(
            "its {what} has {} bytes, expected 1 to {}",
            name.len(),
            limits::MAX_NAME_BYTES
        )));
    }
    Ok(())
}

fn check_device<'d>(device: &'d str, expected: &[&str]) -> Result<&'d str> {
    if expected.contains(&device) {
        return Ok(device);
    }
    Err(Error::invalid(format!(
        "device is `{}`, expected `{}`",
        shortened(device).escape_debug(),
        expected.join("` or `")
    )))
}

/// A name short enough for a message.
fn shortened(name: &str) -> &str {
    name.get(..limits::MAX_NAME_BYTES).unwrap_or(name)
}

fn edge(name: &str, device: &str) -> InputOutput {
    InputOutput {
        name: Some(name.to_owned()),
        device: Some(device.to_owned()),
        is_argument_input: Some(false),
        ..Default::default()
    }
}

fn input<'d>(input: &'d InputDescription, edges: &mut Edges<'d>) -> Result<OpDef> {
    edges.instance(&input.name)?;
    let device = check_device(&input.device, &["cpu", "gpu", "mixed"])?;
    let written = OperatorDescription::usual_output_device(device);
    edges.produce(&input.edge, written)?;
    let dtype = input.dtype.and_then(|dtype| DType::ALL.iter().position(|&other| other == dtype));
    let layout = Some(&input.layout).filter(|layout| !layout.is_empty());
    let told = [
        ("device", Some(Value::Strings(vec![device.to_owned()]))),
        ("dtype", dtype.map(|id| Value::Ints(vec![id as i64]))),
        ("ndim", input.ndim.map(|ndim| Value::Ints(vec![ndim]))),
        ("layout", layout.map(|layout| Value::Strings(vec![layout.clone()]))),
    ];
    let told = told.into_iter().filter_map(|(name, value)| Some((name, value?)));
    Ok(OpDef {
        name: input.operator.clone(),
        input: Vec::new(),
        output: vec![edge(&input.edge, written)],
        args: arguments(told, [&input.arguments, &input.bookkeeping], &input.stored, &input.unreadable)?,
        inst_name: Some(input.name.clone()),
        logical_id: input.logical_id,
    })
}

fn operator<'d>(op: &'d OperatorDescription, edges: &mut Edges<'d>) -> Result<OpDef> {
    check_name("operator's name", &op.name)?;
    if !op.instance.is_empty() {
        edges.instance(&op.instance)?;
    }
    let device = check_device(&op.device, &["cpu", "gpu", "mixed", "support"])?;
    let usual = OperatorDescription::usual_input_device(device);
    let mut inputs = Vec::with_capacity(op.inputs.len() + op.argument_inputs.len());
    for (name, device) in with_devices("input", &op.inputs, &op.input_devices, usual)? {
        edges.device(name)?;
        inputs.push(edge(name, device));
    }
    for (keyword, name) in &op.argument_inputs {
        edges.device(name).context(|| format!("argument `{}`", shortened(keyword)))?;
        let device = op.argument_input_devices.get(keyword).map_or("cpu", String::as_str);
        inputs.push(InputOutput {
            is_argument_input: Some(true),
            arg_name: Some(keyword.clone()),
            ..edge(name, check_device(device, &["cpu", "gpu"])?)
        });
    }
    let usual = OperatorDescription::usual_output_device(device);
    let mut outputs = Vec::with_capacity(op.outputs.len());
    for (name, device) in with_devices("output", &op.outputs, &op.output_devices, usual)? {
        edges.produce(name, device)?;
        outputs.push(edge(name, device));
    }
    let told = [("device", Value::Strings(vec![device.to_owned()]))];
    Ok(OpDef {
        name: Some(op.name.clone()),
        input: inputs,
        output: outputs,
        args: arguments(told, [&op.arguments, &op.bookkeeping], &op.stored, &op.unreadable)?,
        inst_name: Some(op.instance.clone()).filter(|name| !name.is_empty()),
        logical_id: op.logical_id,
    })
}

/// Edges with a device each.
fn with_devices<'d>(
    what: &str,
    names: &'d [String],
    devices: &'d [String],
    usual: &'static str,
) -> Result<Vec<(&'d str, &'d str)>> {
    if !devices.is_empty() && devices.len() != names.len() {
        return Err(Error::invalid(format!(
            "`{what}_devices` names {} devices, expected one for each of {} {what}s, or none",
            devices.len(),
            names.len()
        )));
    }
    let device = |i: usize| devices.get(i).map_or(usual, String::as_str);
    let paired = names
        .iter()
        .enumerate()
        .map(|(i, name)| Ok((name.as_str(), check_device(device(i), &["cpu", "gpu"])?)));
    paired.collect()
}

fn output(output: &OutputDescription, edges: &Edges<'_>) -> Result<InputOutput> {
    let made = edges.device(&output.name)?;
    let device = if output.device.is_empty() { made } else { check_device(&output.device, &["cpu", "gpu"])? };
    let dtype = output.dtype.and_then(|dtype| DType::ALL.iter().position(|&other| other == dtype));
    Ok(InputOutput {
        dtype: Some(dtype.and_then(|id| i32::try_from(id).ok()).unwrap_or(UNDECLARED)),
        ndim: Some(output.ndim.unwrap_or(UNDECLARED)),
        layout: Some(output.layout.clone()).filter(|layout| !layout.is_empty()),
        ..edge(&output.name, device)
    })
}

/// The arguments of an operator: those that are `told` by fields of their own, and those that stand in `maps`, which
/// come first where both have one. In the order of `stored`; what that does not name follows, but for a device that
/// DALI assumes anyway.
fn arguments<'d>(
    told: impl IntoIterator<Item = (&'d str, Value)>,
    maps: [&'d BTreeMap<String, Value>; 2],
    stored: &'d [StoredArgument],
    unreadable: &[String],
) -> Result<Vec<Argument>> {
    if let Some(name) = unreadable.first() {
        return Err(Error::unsupported(format!(
            "argument `{}` of the file that was described could not be read",
            shortened(name).escape_debug()
        )));
    }
    let told: Vec<(&str, Value)> = told.into_iter().collect();
    let [values, bookkeeping] = maps;
    if let Some(name) = values.keys().find(|name| bookkeeping.contains_key(*name)) {
        return Err(Error::invalid(format!(
            "argument `{}` stands in `arguments` and in `bookkeeping`",
            shortened(name).escape_debug()
        )));
    }
    let of = |name: &str| {
        let field = || told.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        values.get(name).or_else(|| bookkeeping.get(name)).or_else(field)
    };
    let mut written = Vec::with_capacity(stored.len());
    let mut known = HashSet::new();
    for entry in stored {
        let name = entry.name.as_str();
        // A type may be stated for what is not there.
        let Some(value) = of(name) else { continue };
        if !known.insert(name) {
            return Err(Error::invalid(format!(
                "argument `{}` is given twice",
                shortened(name).escape_debug()
            )));
        }
        written.push((entry.clone(), value));
    }
    let in_maps = values.keys().chain(bookkeeping.keys()).map(String::as_str);
    for name in told.iter().map(|(name, _)| *name).chain(in_maps) {
        let Some(value) = of(name) else { continue };
        let is_assumed = name == "device" && matches!(value, Value::Strings(texts) if texts == &["cpu"]);
        if is_assumed || !known.insert(name) {
            continue;
        }
        let (kind, list) = (ArgumentType::of(value), value_count(value) != 1);
        written.push((StoredArgument { name: name.to_owned(), kind, list }, value));
    }
    written.into_iter().map(|(entry, value)| argument(&entry, value)).collect()
}

fn value_count(value: &Value) -> usize {
    match value {
        Value::Ints(values) => values.len(),
        Value::Floats(values) => values.len(),
        Value::Bools(values) => values.len(),
        Value::Strings(values) => values.len(),
    }
}

fn argument(stored: &StoredArgument, value: &Value) -> Result<Argument> {
    let name = shortened(&stored.name).escape_debug();
    let is_feature = stored.kind == ArgumentType::Feature;
    let kind = if is_feature { ArgumentType::String } else { stored.kind };
    if ArgumentType::of(value) != kind || is_feature && !stored.list {
        return Err(Error::invalid(format!("argument `{name}` is not of the type that `stored` names")));
    }
    let count = value_count(value);
    if count > limits::MAX_LIST_ARGUMENT || !stored.list && count != 1 {
        let most = if stored.list { limits::MAX_LIST_ARGUMENT } else { 1 };
        return Err(Error::invalid(format!("argument `{name}` has {count} values, expected at most {most}")));
    }
    let made = |name: String| Argument {
        name: Some(name),
        r#type: Some(stored.kind.name().to_owned()),
        is_vector: Some(false),
        ..Default::default()
    };
    let element = |i: usize| {
        let name = if stored.list { format!("element {i}") } else { stored.name.clone() };
        let mut element = made(name);
        match value {
            Value::Ints(values) => element.ints.extend(values.get(i)),
            Value::Floats(values) => element.floats.extend(values.get(i)),
            Value::Bools(values) => element.bools.extend(values.get(i)),
            Value::Strings(values) if is_feature => {
                element.extra_args =
                    feature_parts(values.get(i).map_or("", String::as_str)).map_err(|what| {
                        Error::invalid(format!("argument `{}`: {what}", stored.name.escape_debug()))
                    })?;
            }
            Value::Strings(values) => element.strings.extend(values.get(i).cloned()),
        }
        Ok(element)
    };
    if !stored.list {
        return element(0);
    }
    let extra_args = (0..count).map(element).collect::<Result<_>>()?;
    Ok(Argument { extra_args, is_vector: Some(true), ..made(stored.name.clone()) })
}

/// The parts of a feature in DALI's order, which matters.
const PARTS: [&str; 5] = ["type", "has_shape", "shape", "partial_shape", "default_value"];

/// The arguments that a feature is made of; `text` is an object of JSON with a list for each.
fn feature_parts(text: &str) -> std::result::Result<Vec<Argument>, String> {
    let told: BTreeMap<String, Vec<serde_json::Value>> =
        serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(name) = told.keys().find(|name| !PARTS.contains(&name.as_str())) {
        return Err(format!("a feature has no `{}`", shortened(name).escape_debug()));
    }
    let is_float = told.get("type").is_some_and(|kind| *kind == [serde_json::json!(2)]);
    let parts = PARTS.into_iter().filter_map(|name| Some((name, told.get(name)?)));
    parts.map(|(name, values)| feature_part(name, values, is_float)).collect()
}

fn feature_part(
    name: &str,
    values: &[serde_json::Value],
    is_float: bool,
) -> std::result::Result<Argument, String> {
    let mut part = Argument { name: Some(name.to_owned()), is_vector: Some(false), ..Default::default() };
    let wrong = |value: &serde_json::Value| format!("`{name}` of a feature has the value {value}");
    for value in values {
        let kind = match value {
            // What JSON has no number for is a text.
            serde_json::Value::String(text) if is_float && name == "default_value" => {
                part.floats.push(text.parse().map_err(|_| wrong(value))?);
                ArgumentType::Float
            }
            serde_json::Value::String(text) => {
                part.strings.push(text.clone());
                ArgumentType::String
            }
            serde_json::Value::Bool(value) => {
                part.bools.push(*value);
                ArgumentType::Bool
            }
            _ => match (value.as_i64(), value.as_f64()) {
                (Some(value), _) => {
                    part.ints.push(value);
                    ArgumentType::Int64
                }
                (None, Some(value)) => {
                    part.floats.push(value as f32);
                    ArgumentType::Float
                }
                (None, None) => return Err(wrong(value)),
            },
        };
        part.r#type = Some(kind.name().to_owned());
    }
    Ok(part)
}

#[cfg(test)]
mod tests;
