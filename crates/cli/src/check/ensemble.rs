//! What the server checks of an ensemble when it loads one: that its steps are there, and that tensors fit from step to
//! step. It must not run them. Of models of other backends it knows what their `config.pbtxt` says.
//!
//! Values go from step to step: an `input_map` says which value an input of a model takes, an `output_map` what the
//! value of an output is called.

use std::collections::BTreeMap;

use gesso::error::{Context, Error, Result};
use serde_json::{Map, Value};
use triton_gesso::config::check_metric_tags;

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
    /// Whether this is all that a server knows, too: Gesso's models are completed here, those of other backends are
    /// not.
    complete: bool,
}

/// A value that goes from step to step: who makes it, and what it is.
struct Made {
    by: String,
    tensor: Tensor,
}

/// A step of an ensemble.
struct Wired {
    /// Which one, for errors.
    told: String,
    model_name: String,
    model: Step,
    /// The model's tensors, and the values that they take and make.
    inputs: BTreeMap<String, String>,
    outputs: BTreeMap<String, String>,
}

/// Checks an ensemble against the models of the repositories; returns the names of its steps. `reports` are of all of
/// Gesso's models.
///
/// # Errors
/// Invalid or not found, for what the server refuses.
pub(super) fn check(model: &Model, models: &[Model], reports: &[Report]) -> Result<Vec<String>> {
    // Whose name is that of its folder.
    model.config()?;
    let config = model.written();
    check_metric_tags(&config)?;
    let scheduling = config.get("ensemble_scheduling").and_then(Value::as_object);
    let steps = scheduling.and_then(|scheduling| scheduling.get("step")).and_then(Value::as_array);
    let steps = steps.filter(|steps| !steps.is_empty()).ok_or_else(|| {
        Error::invalid("`ensemble_scheduling` has no `step`, expected one for each model of the ensemble")
    })?;
    let whole = Step::of(&config, true);
    let wire = |(number, step)| wired(number, step, models, reports);
    let steps: Vec<Wired> = steps.iter().enumerate().map(wire).collect::<Result<_>>()?;
    for step in &steps {
        step.check_batches(whole.max_batch_size)?;
    }
    let values = values(&whole, &steps)?;
    for step in &steps {
        step.check_inputs(&values)?;
    }
    for (name, tensor) in &whole.outputs {
        let made = values.get(name).ok_or_else(|| {
            Error::invalid(format!(
                "output `{name}` of the ensemble is made by no step: no `output_map` has the value `{name}`"
            ))
        })?;
        fits(made, tensor, &format!("output `{name}` of the ensemble"))?;
    }
    check_uses(&whole, &steps)?;
    Ok(steps.into_iter().map(|step| step.model_name).collect())
}

/// A step as the configuration has it, with its model.
fn wired(number: usize, step: &Value, models: &[Model], reports: &[Report]) -> Result<Wired> {
    let model_name = step.get("model_name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let told = format!("step {} of `ensemble_scheduling`, model `{model_name}`", number + 1);
    let model = found(&model_name, step, models, reports).context(|| told.clone())?;
    let map = |key: &str, role: &str, known: &Tensors| {
        let map = map_of(step, key);
        if map.is_empty() {
            return Err(Error::invalid(format!("{told}: it has no `{key}`, expected one for each {role}")));
        }
        let Some(name) = map.keys().find(|name| !known.is_empty() && !known.contains_key(*name)) else {
            return Ok(map);
        };
        let known: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
        let known = known.join(", ");
        Err(Error::invalid(format!("{told}: `{key}` names `{name}`, but the model's {role}s are {known}")))
    };
    let inputs = map("input_map", "input", &model.inputs)?;
    let outputs = map("output_map", "output", &model.outputs)?;
    Ok(Wired { told, model_name, model, inputs, outputs })
}

impl Wired {
    fn check_batches(&self, max_batch_size: i64) -> Result<()> {
        let is_known = self.model.complete || self.model.max_batch_size > UNBATCHED;
        if !is_known || self.model.max_batch_size >= max_batch_size {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{}: takes batches of up to {}, but `max_batch_size` of the ensemble is {max_batch_size}",
            self.told, self.model.max_batch_size
        )))
    }

    fn check_inputs(&self, values: &BTreeMap<String, Made>) -> Result<()> {
        let told = &self.told;
        for (input, value) in &self.inputs {
            let made = values.get(value).ok_or_else(|| {
                let what = "which is no input of the ensemble and no output of a step";
                Error::invalid(format!("{told}: input `{input}` takes `{value}`, {what}"))
            })?;
            if let Some(taken) = self.model.inputs.get(input) {
                fits(made, taken, &format!("{told}: input `{input}`"))?;
            }
        }
        let mut inputs = self.model.inputs.iter();
        match inputs.find(|(name, tensor)| !tensor.optional && !self.inputs.contains_key(*name)) {
            None => Ok(()),
            Some((name, _)) => {
                Err(Error::invalid(format!("{told}: nothing of `input_map` goes to input `{name}`")))
            }
        }
    }
}

/// All values: inputs of the ensemble, and outputs of its steps.
fn values(whole: &Step, steps: &[Wired]) -> Result<BTreeMap<String, Made>> {
    let mut values = BTreeMap::new();
    for (name, tensor) in &whole.inputs {
        values.insert(name.clone(), Made { by: "the ensemble's input".to_owned(), tensor: tensor.clone() });
    }
    for step in steps {
        for (output, value) in &step.outputs {
            let by = format!("output `{output}` of model `{}`", step.model_name);
            let tensor = step.model.outputs.get(output).cloned().unwrap_or_else(Tensor::any);
            if let Some(other) = values.insert(value.clone(), Made { by: by.clone(), tensor }) {
                return Err(Error::invalid(format!(
                    "{}: `{value}` is {by} and {}, expected one",
                    step.told, other.by
                )));
            }
        }
    }
    Ok(values)
}

/// Whether every input of the ensemble and every value goes somewhere.
fn check_uses(whole: &Step, steps: &[Wired]) -> Result<()> {
    let is_taken = |name: &String| steps.iter().any(|step| step.inputs.values().any(|value| value == name));
    if let Some(name) = whole.inputs.keys().find(|name| !is_taken(name)) {
        return Err(Error::invalid(format!(
            "input `{name}` of the ensemble goes to no step: no `input_map` has the value `{name}`"
        )));
    }
    for step in steps {
        let is_lost = |name: &&String| !is_taken(name) && !whole.outputs.contains_key(*name);
        if let Some(value) = step.outputs.values().find(is_lost) {
            return Err(Error::invalid(format!(
                "{}: `{value}` of `output_map` goes to no step and is no output of the ensemble",
                step.told
            )));
        }
    }
    Ok(())
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
    let report = ours.rfind(|report| wanted.is_none() || report.version == wanted);
    match report.map(|report| &report.outcome) {
        Some(Outcome::Loads(loaded)) => Ok(Step::of(loaded.config.as_object().unwrap_or(&Map::new()), true)),
        Some(Outcome::Fails { .. }) => Err(Error::invalid("it does not load")),
        Some(_) => Ok(Step::of(&model.written(), false)),
        None => Err(Error::not_found(format!("its version {} is not loaded", wanted.unwrap_or_default()))),
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

    /// Whether shapes may be equal: those of samples, or those of batches, where one model is batched and the other is
    /// not.
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
