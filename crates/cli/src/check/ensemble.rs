//! What the server checks of an ensemble when it loads one: that its steps are there, and that tensors fit from step to step. It must not run
//! them. Of models of other backends it knows what their `config.pbtxt` says.

use std::collections::BTreeMap;

use gesso::error::{Error, Result};
use serde_json::{Map, Value};

use super::repository::Model;
use super::{Outcome, Report};

/// The batch size of what a configuration leaves out: the server does not batch.
const UNBATCHED: i64 = 0;

/// A tensor of a model.
#[derive(Clone, PartialEq)]
struct Tensor {
    /// Absent where the configuration leaves it to the backend.
    data_type: Option<String>,
    /// Those of a sample, -1 for any size; absent as above.
    dims: Option<Vec<i64>>,
    /// Whether a dimension for the batch stands before them.
    batched: bool,
    optional: bool,
}

/// Tensors by name.
type Tensors = BTreeMap<String, Tensor>;

/// A model as an ensemble sees it.
struct Step {
    inputs: Tensors,
    outputs: Tensors,
    max_batch_size: i64,
    /// Whether this is all that a server knows, too: Gesso's models are completed here, those of other backends are not.
    complete: bool,
}

/// A value that goes from step to step: who makes it, and what it is.
struct Made {
    by: String,
    tensor: Tensor,
}

/// Checks an ensemble against the models of the repositories; returns the names of its steps. `reports` are of all of Gesso's models.
///
/// # Errors
/// Invalid or not found, for what the server refuses.
pub(super) fn check(model: &Model, models: &[Model], reports: &[Report]) -> Result<Vec<String>> {
    let config = model.written();
    let scheduling = config.get("ensemble_scheduling").and_then(Value::as_object);
    let steps = scheduling.and_then(|scheduling| scheduling.get("step")).and_then(Value::as_array);
    let steps = steps.filter(|steps| !steps.is_empty()).ok_or_else(|| {
        Error::invalid("`ensemble_scheduling` has no `step`, expected one for each model of the ensemble")
    })?;
    let whole = Step::of(&config, true);
    let mut values: BTreeMap<String, Made> = BTreeMap::new();
    for (name, tensor) in whole.inputs {
        values.insert(name, Made { by: "the ensemble's input".to_owned(), tensor });
    }
    let mut wired = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        let name = step.get("model_name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let told = format!("step {} of `ensemble_scheduling`, model `{name}`", number + 1);
        let found = found(&name, step, models, reports).map_err(|error| error.context(told.clone()))?;
        let is_known = found.complete || found.max_batch_size > UNBATCHED;
        if is_known && found.max_batch_size < whole.max_batch_size {
            return Err(Error::invalid(format!(
                "{told}: takes batches of up to {}, but `max_batch_size` of the ensemble is {}",
                found.max_batch_size, whole.max_batch_size
            )));
        }
        let [inputs, outputs] = ["input_map", "output_map"].map(|key| map_of(step, key));
        named(&told, "input", &inputs, &found.inputs)?;
        named(&told, "output", &outputs, &found.outputs)?;
        for (output, value) in &outputs {
            let tensor = found.outputs.get(output).cloned().unwrap_or_else(Tensor::any);
            let by = format!("output `{output}` of model `{name}`");
            if let Some(other) = values.insert(value.clone(), Made { by: by.clone(), tensor }) {
                return Err(Error::invalid(format!(
                    "{told}: `{value}` is {by} and {}, expected one",
                    other.by
                )));
            }
        }
        wired.push((told, name, found, inputs));
    }
    for (told, _, step, inputs) in &wired {
        for (input, value) in inputs {
            let made = values.get(value).ok_or_else(|| {
                Error::invalid(format!("{told}: input `{input}` takes `{value}`, which is no input of the ensemble and no output of a step"))
            })?;
            if let Some(taken) = step.inputs.get(input) {
                fits(made, taken, &format!("{told}: input `{input}`"))?;
            }
        }
        let lacking =
            step.inputs.iter().find(|(name, tensor)| !tensor.optional && !inputs.contains_key(*name));
        if let Some((name, _)) = lacking {
            return Err(Error::invalid(format!("{told}: nothing of `input_map` goes to input `{name}`")));
        }
    }
    for (name, tensor) in &whole.outputs {
        let made = values.get(name).ok_or_else(|| {
            Error::invalid(format!(
                "output `{name}` of the ensemble is made by no step: no `output_map` has the value `{name}`"
            ))
        })?;
        fits(made, tensor, &format!("output `{name}` of the ensemble"))?;
    }
    Ok(wired.into_iter().map(|(_, name, ..)| name).collect())
}

/// The model of a step.
fn found(name: &str, step: &Value, models: &[Model], reports: &[Report]) -> Result<Step> {
    let model = models.iter().find(|model| model.name == name).ok_or_else(|| {
        Error::not_found(
            "there is no such model in the repositories, so a server does not load the ensemble".to_owned(),
        )
    })?;
    let wanted = integer(step.get("model_version")).and_then(|version| u64::try_from(version).ok());
    let mut ours = reports.iter().filter(|report| report.model == name).peekable();
    if ours.peek().is_none() {
        return Ok(Step::of(&model.written(), true));
    }
    // Reports are in the order of versions, of which the server takes the last.
    let report = ours.filter(|report| wanted.is_none() || report.version == wanted).last();
    match report.map(|report| &report.outcome) {
        Some(Outcome::Loads(loaded)) => Ok(Step::of(loaded.config.as_object().unwrap_or(&Map::new()), true)),
        Some(Outcome::Fails { .. }) => Err(Error::invalid("it does not load")),
        Some(_) => Ok(Step::of(&model.written(), false)),
        None => Err(Error::not_found(format!("its version {} is not loaded", wanted.unwrap_or_default()))),
    }
}

/// Whether every name of a map is one of the model's, as far as these are known.
fn named(told: &str, role: &str, map: &BTreeMap<String, String>, known: &Tensors) -> Result<()> {
    match map.keys().find(|name| !known.is_empty() && !known.contains_key(*name)) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
            Err(Error::invalid(format!(
                "{told}: `{role}_map` names `{name}`, but the model's {role}s are {}",
                known.join(", ")
            )))
        }
    }
}

/// Whether a value may go where `taken` is expected.
fn fits(made: &Made, taken: &Tensor, place: &str) -> Result<()> {
    if let (Some(made_type), Some(taken_type)) = (&made.tensor.data_type, &taken.data_type)
        && made_type != taken_type
    {
        return Err(Error::invalid(format!("{place} takes {taken_type}, but {} is {made_type}", made.by)));
    }
    if made.tensor.is_shaped_as(taken) {
        return Ok(());
    }
    let dims = |tensor: &Tensor| format!("{:?}", tensor.dims.as_deref().unwrap_or_default());
    Err(Error::invalid(format!(
        "{place} takes dims {}, but {} has dims {}",
        dims(taken),
        made.by,
        dims(&made.tensor)
    )))
}

impl Step {
    /// What a configuration says.
    fn of(config: &Map<String, Value>, complete: bool) -> Self {
        let max_batch_size = integer(config.get("max_batch_size")).unwrap_or(UNBATCHED);
        let tensors = |role: &str| -> Tensors {
            let list = config.get(role).and_then(Value::as_array);
            let list = list.map(Vec::as_slice).unwrap_or_default();
            let tensor = |tensor: &Value| {
                let name = tensor.get("name").and_then(Value::as_str)?;
                Some((name.to_owned(), Tensor::of(tensor, max_batch_size > UNBATCHED)))
            };
            list.iter().filter_map(tensor).collect()
        };
        Self { inputs: tensors("input"), outputs: tensors("output"), max_batch_size, complete }
    }
}

impl Tensor {
    /// Of which nothing is known.
    fn any() -> Self {
        Self { data_type: None, dims: None, batched: false, optional: false }
    }

    fn of(tensor: &Value, batched: bool) -> Self {
        let data_type = tensor.get("data_type").and_then(Value::as_str).map(str::to_owned);
        let dims = tensor.get("dims").and_then(Value::as_array).filter(|dims| !dims.is_empty());
        let dims =
            dims.and_then(|dims| dims.iter().map(|dim| integer(Some(dim))).collect::<Option<Vec<i64>>>());
        let optional = tensor.get("optional").and_then(Value::as_bool).unwrap_or_default();
        Self { data_type, dims, batched, optional }
    }

    /// Whether shapes may be equal: those of samples, or those of batches, where one model is batched and the other is not.
    fn is_shaped_as(&self, other: &Self) -> bool {
        let (Some(from), Some(to)) = (&self.dims, &other.dims) else { return true };
        let alike = |from: &[i64], to: &[i64]| {
            from.len() == to.len() && from.iter().zip(to).all(|(a, b)| a == b || *a == -1 || *b == -1)
        };
        let whole = |dims: &[i64], batched| if batched { [&[-1], dims].concat() } else { dims.to_vec() };
        alike(from, to) || alike(&whole(from, self.batched), &whole(to, other.batched))
    }
}

/// `input_map` or `output_map`: a model's tensors, and the ensemble's values.
fn map_of(step: &Value, key: &str) -> BTreeMap<String, String> {
    let entries = step.get(key).and_then(Value::as_object);
    let entries = entries.into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// A whole number; the server's JSON has those of 64 bits as text.
fn integer(value: Option<&Value>) -> Option<i64> {
    match value? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
