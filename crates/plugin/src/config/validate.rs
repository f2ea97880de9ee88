//! Compares a configuration with the pipeline and says which configured tensor is which of the pipeline. It changes
//! neither.

use std::collections::HashSet;

use super::data_type::DataType;
use super::server_rules::check_metric_tags;
use super::tensors::{Fact, Facts, Role, TensorConfig, VARIABLE};
use super::{DefaultSample, ModelConfig, Settings};
use gesso::error::{Context, Error, Result};
use gesso::limits;
use gesso::pipeline::Output;
use gesso::tensor::ValueType;

/// A tensor of a request or a response, for one of the pipeline's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// Name that requests use.
    pub name: String,
    /// Element type on the wire. An input of [`DataType::Bytes`] holds one encoded file per element. Of an output the
    /// type that the pipeline makes, where that is known, else the configured one.
    pub data_type: DataType,
    /// Configured shape as the backend sees it; -1 is variable. Without the batch dimension when the model is batched,
    /// else beginning with it.
    pub dims: Vec<i64>,
    /// Whether requests of one batch may differ in shape. Inputs only.
    pub ragged: bool,
    /// Whether a request may leave it out. Inputs only.
    pub optional: bool,
    /// What it then is. An optional input without one must not be left out after all.
    pub default: Option<DefaultSample>,
    /// Whether the first dimension of its samples becomes part of the batch: `split_along_outer_axis`. Outputs only.
    pub split: bool,
    /// Position in the configuration's list.
    pub position: usize,
}

/// The tensors of a model in the pipeline's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorMap {
    /// The largest batch; 0 when the first dimension of every tensor is not the server's.
    pub max_batch_size: usize,
    /// One for each input of the pipeline, in its order.
    pub inputs: Vec<Tensor>,
    /// One for each output of the pipeline, in its order.
    pub outputs: Vec<Tensor>,
    /// Where the configuration says otherwise than the pipeline does, which answers all the same; a line each.
    pub differences: Vec<String>,
}

impl Tensor {
    /// Why an optional input without a default has none.
    pub fn why_no_default(&self) -> String {
        match self.data_type {
            DataType::Bytes => "as nothing can stand in for an encoded file".to_owned(),
            DataType::Dense(_) => format!(
                "as its dims {:?} are variable; parameter `default.{}` of the model can give it one",
                self.dims, self.name
            ),
        }
    }
}

impl TensorMap {
    /// What the author should know although the model loads: of differences, optional inputs and outputs to split; a
    /// line each.
    pub fn warnings(&self, settings: &Settings) -> Vec<String> {
        let mut warnings = self.differences.clone();
        for input in self.inputs.iter().filter(|input| input.optional && input.default.is_none()) {
            warnings.push(format!(
                "input `{}` is optional but has no default, {}",
                input.name,
                input.why_no_default()
            ));
        }
        let wanted = settings.split_along_outer_axis.len();
        let found = self.outputs.iter().filter(|output| output.split).count();
        if found < wanted {
            warnings.push(format!(
                "parameter `split_along_outer_axis` names {wanted} outputs, of which {found} are the model's"
            ));
        }
        warnings
    }

    /// What the configuration says of samples of the outputs.
    pub fn output_types(&self) -> Vec<ValueType> {
        let batch = usize::from(self.max_batch_size == 0);
        let ty = |output: &Tensor| {
            let dtype = if let DataType::Dense(dtype) = output.data_type { Some(dtype) } else { None };
            // Samples that are split have a dimension more.
            let ndim = output.dims.len().checked_sub(batch).filter(|_| !output.split);
            ValueType { dtype, dims: ndim.map(|ndim| vec![None; ndim]), layout: None }
        };
        self.outputs.iter().map(ty).collect()
    }
}

impl ModelConfig {
    /// Checks that the configuration is complete and fits the pipeline.
    ///
    /// # Errors
    /// Invalid for an unknown or missing input, another number of outputs, a `data_type` or rank that differs from what
    /// the pipeline's author declared, or one that neither side knows; names the tensor, the configured value and the
    /// pipeline's. Invalid for a default that fits no optional input, and for an output to split whose samples have
    /// fewer than 2 dimensions. What differs from an output that was not declared, only inferred, is one of
    /// [`TensorMap::differences`].
    pub fn validate(&self, facts: &Facts<'_>) -> Result<TensorMap> {
        let max_batch_size = usize::try_from(self.max_batch_size)
            .ok()
            .filter(|&n| n <= limits::MAX_BATCH_SIZE)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "max_batch_size is {} in the configuration, expected 0 to {}",
                    self.max_batch_size,
                    limits::MAX_BATCH_SIZE
                ))
            })?;
        check_metric_tags(&self.fields)?;
        let settings = self.settings()?;
        let mut differences = Vec::new();
        if facts.takes_videos && !self.is_decoupled() {
            return Err(Error::invalid(
                "the pipeline takes videos and answers them piece by piece: the model needs `model_transaction_policy { decoupled: true }`",
            ));
        }
        if facts.takes_videos && max_batch_size > 0 {
            return Err(Error::invalid(format!(
                "max_batch_size is {max_batch_size} in the configuration, expected 0: the pipeline takes one video a request, and a response \
                 has as many of its sequences as the pipeline's batch_size, {}",
                facts.max_batch_size
            )));
        }
        if self.has_state()? {
            return Err(Error::unsupported(
                "`sequence_batching` has a `state`, but a pipeline keeps nothing from one request to the next",
            ));
        }
        if self.is_decoupled() && !facts.takes_videos {
            differences.push("the model is decoupled, but every request gets one response".to_owned());
        }
        let inputs = self.match_inputs(facts, &settings, &mut differences)?;
        let outputs = self.match_outputs(facts, &settings, &mut differences)?;
        Ok(TensorMap { max_batch_size, inputs, outputs, differences })
    }

    fn match_inputs(
        &self,
        facts: &Facts<'_>,
        settings: &Settings,
        differences: &mut Vec<String>,
    ) -> Result<Vec<Tensor>> {
        check_names("input", &self.inputs)?;
        let of_pipeline = || names(facts.inputs.iter().map(|input| input.name.as_str()));
        if let Some(unknown) =
            self.inputs.iter().find(|tensor| facts.inputs.iter().all(|input| input.name != tensor.name))
        {
            return Err(Error::invalid(format!(
                "input `{}` of the configuration is not in the pipeline, whose inputs are {}",
                unknown.name.escape_debug(),
                of_pipeline()
            )));
        }
        let is_optional =
            |name: &String| self.inputs.iter().any(|tensor| tensor.name == *name && tensor.optional);
        if let Some(name) = settings.defaults.keys().find(|name| !is_optional(name)) {
            return Err(Error::invalid(format!(
                "parameter `default.{}` is for no input with `optional: true`",
                name.escape_debug()
            )));
        }
        let takes_names = |name: &String| {
            let tensor = self.inputs.iter().find(|tensor| tensor.name == *name);
            tensor.is_some_and(|tensor| tensor.data_type == Some(DataType::Bytes))
        };
        if let Some(name) = settings.files.keys().find(|name| !takes_names(name)) {
            return Err(Error::invalid(format!(
                "parameter `files.{}` is for no input of `TYPE_STRING`, which can name files",
                name.escape_debug()
            )));
        }
        let find = |name: &str| {
            self.inputs.iter().enumerate().find(|(_, tensor)| tensor.name == name).ok_or_else(|| {
                Error::invalid(format!(
                    "input `{}` of the pipeline is not in the configuration, whose inputs are {}",
                    name.escape_debug(),
                    names(self.inputs.iter().map(|tensor| tensor.name.as_str()))
                ))
            })
        };
        facts
            .inputs
            .iter()
            .map(|input| {
                let (position, tensor) = find(&input.name)?;
                let mut matched = self.match_tensor(position, tensor, &Fact::input(input), differences)?;
                matched.default = self.default(&matched, settings)?;
                Ok(matched)
            })
            .collect()
    }

    fn default(&self, input: &Tensor, settings: &Settings) -> Result<Option<DefaultSample>> {
        let text = settings.defaults.get(&input.name).map(String::as_str);
        let sample = if self.is_batched() { Some(&input.dims[..]) } else { input.dims.get(1..) };
        match (input.data_type, sample) {
            (DataType::Dense(dtype), Some(dims)) if input.optional => DefaultSample::new(dtype, dims, text)
                .context(|| format!("default of input `{}`", input.name.escape_debug())),
            (_, _) if text.is_some() => Err(Error::invalid(format!(
                "input `{}` has data_type `{}` in the configuration, which has no default",
                input.name.escape_debug(),
                input.data_type
            ))),
            _ => Ok(None),
        }
    }

    fn match_outputs(
        &self,
        facts: &Facts<'_>,
        settings: &Settings,
        differences: &mut Vec<String>,
    ) -> Result<Vec<Tensor>> {
        if self.outputs.len() != facts.outputs.len() {
            return Err(Error::invalid(format!(
                "the configuration has {} outputs ({}), the pipeline has {} ({})",
                self.outputs.len(),
                names(self.outputs.iter().map(|tensor| tensor.name.as_str())),
                facts.outputs.len(),
                outputs_of(facts.outputs)
            )));
        }
        check_names("output", &self.outputs)?;
        let outputs = self.outputs.iter().zip(facts.outputs).enumerate();
        outputs
            .map(|(i, (tensor, output))| {
                let split = is_split(settings, tensor, output);
                if let (true, Some(dims)) = (split, output.ty.dims.as_ref().filter(|dims| dims.len() < 2)) {
                    return Err(Error::invalid(format!(
                        "output `{}` is to be split along its outer axis, which takes samples of at least 2 dimensions, the \
                         pipeline has {}",
                        tensor.name.escape_debug(),
                        dims.len()
                    )));
                }
                let matched = self.match_tensor(i, tensor, &Fact::output(output, split), differences)?;
                Ok(Tensor { split, ..matched })
            })
            .collect()
    }

    fn match_tensor(
        &self,
        position: usize,
        tensor: &TensorConfig,
        fact: &Fact,
        differences: &mut Vec<String>,
    ) -> Result<Tensor> {
        let subject = format!("{} `{}`", fact.role, tensor.name.escape_debug());
        let data_type = match_type(&subject, tensor, fact, differences)?;
        let dims = self.match_dims(&subject, tensor, fact, data_type, differences)?;
        Ok(Tensor {
            name: tensor.name.clone(),
            data_type,
            dims,
            ragged: tensor.allow_ragged_batch,
            optional: tensor.optional,
            default: None,
            split: false,
            position,
        })
    }

    fn match_dims(
        &self,
        subject: &str,
        tensor: &TensorConfig,
        fact: &Fact,
        data_type: DataType,
        differences: &mut Vec<String>,
    ) -> Result<Vec<i64>> {
        let batched = self.is_batched();
        let known = fact.dims(batched);
        let Some(dims) = tensor.backend_dims() else {
            return Err(Error::invalid(match known {
                Some(known) => {
                    format!("{subject} has no dims in the configuration, the pipeline has {known:?}")
                }
                None => format!(
                    "{subject} has no dims in the configuration, and the pipeline does not fix its rank: give the \
                     configuration its dims or the pipeline its `{}`",
                    if fact.role == Role::Input { "ndim" } else { "output_ndim" }
                ),
            }));
        };
        if let Some(bad) = dims.iter().chain(&tensor.dims).find(|&&extent| extent < 1 && extent != VARIABLE) {
            return Err(Error::invalid(format!(
                "{subject} has dims {dims:?} in the configuration, expected extents of at least 1 or -1, found {bad}"
            )));
        }
        if data_type == DataType::Bytes {
            return match_string_dims(subject, dims, batched);
        }
        let Some(known) = known else { return Ok(dims.to_vec()) };
        let seen = if tensor.reshape.is_some() { " after reshape" } else { "" };
        let batch = if batched { "" } else { " with the batch dimension, as max_batch_size is 0" };
        if dims.len() != known.len() {
            let text = format!(
                "{subject} has {} dimensions in the configuration (dims {dims:?}{seen}), the pipeline has {} \
                 ({known:?}{batch})",
                dims.len(),
                known.len(),
            );
            differ(fact.ndim_is_firm, text, differences)?;
            return Ok(dims.to_vec());
        }
        let unequal = |(&a, &b): (&i64, &i64)| a != b && a != VARIABLE && b != VARIABLE;
        if dims.iter().zip(&known).any(unequal) {
            // A pipeline's author declares ranks, never extents.
            let text = format!(
                "{subject} has dims {dims:?}{seen} in the configuration, the pipeline has {known:?}{batch}"
            );
            differ(false, text, differences)?;
            return Ok(dims.to_vec());
        }
        Ok(dims.iter().zip(known).map(|(&extent, known)| merge(extent, known)).collect())
    }
}

/// Whether parameter `split_along_outer_axis` names an output, by either of its names.
pub(super) fn is_split(settings: &Settings, tensor: &TensorConfig, output: &Output) -> bool {
    settings.splits(&[&tensor.name, &output.name])
}

/// The extent that two equal or partly variable ones stand for.
pub(super) fn merge(configured: i64, known: i64) -> i64 {
    if configured == VARIABLE { known } else { configured }
}

/// What differs from a firm fact is an error; what differs from another one is noted, as the pipeline answers all the
/// same.
fn differ(is_firm: bool, text: String, differences: &mut Vec<String>) -> Result<()> {
    if is_firm {
        return Err(Error::invalid(text));
    }
    differences.push(format!("{text}, which is what requests get"));
    Ok(())
}

fn match_type(
    subject: &str,
    tensor: &TensorConfig,
    fact: &Fact,
    differences: &mut Vec<String>,
) -> Result<DataType> {
    match (tensor.data_type, fact.dtype.map(DataType::Dense)) {
        (Some(DataType::Bytes), _) if fact.takes_strings() => Ok(DataType::Bytes),
        (Some(DataType::Bytes), None) => Err(Error::invalid(format!(
            "{subject} has data_type `TYPE_STRING` in the configuration, which only 1-D inputs of `TYPE_UINT8` can have"
        ))),
        (Some(configured), Some(known)) if configured != known => {
            let text = format!(
                "{subject} has data_type `{configured}` in the configuration, the pipeline has `{known}`"
            );
            let is_firm = fact.dtype_is_firm || configured == DataType::Bytes;
            differ(is_firm, text, differences)?;
            Ok(known)
        }
        (Some(configured), _) => Ok(configured),
        (None, Some(known)) => Err(Error::invalid(format!(
            "{subject} has no data_type in the configuration, the pipeline has `{known}`"
        ))),
        (None, None) => Err(Error::invalid(format!(
            "{subject} has no data_type in the configuration, and the pipeline does not fix it: give the configuration \
             its data_type or the pipeline its `{}`",
            if fact.role == Role::Input { "dtype" } else { "output_dtype" }
        ))),
    }
}

/// One element is one sample: batched, each of the server's samples has one; else they stand along the first dimension.
fn match_string_dims(subject: &str, dims: &[i64], batched: bool) -> Result<Vec<i64>> {
    let per_sample = if batched { dims } else { dims.get(1..).unwrap_or_default() };
    if per_sample.iter().any(|&extent| extent != 1 && extent != VARIABLE) {
        let expected = if batched { "[1]" } else { "[-1]" };
        return Err(Error::invalid(format!(
            "{subject} has dims {dims:?} and data_type `TYPE_STRING` in the configuration, expected {expected}: one \
             element is one encoded file"
        )));
    }
    Ok(dims.to_vec())
}

fn check_names(role: &str, tensors: &[TensorConfig]) -> Result<()> {
    let mut seen = HashSet::new();
    for (i, tensor) in tensors.iter().enumerate() {
        if tensor.name.is_empty() {
            return Err(Error::invalid(format!("{role} {i} of the configuration has no name")));
        }
        if !seen.insert(tensor.name.as_str()) {
            return Err(Error::invalid(format!(
                "two {role}s are called `{}`: give each a name of its own in the configuration",
                tensor.name.escape_debug()
            )));
        }
    }
    Ok(())
}

/// Outputs in the words of the pipeline's author: by the name that he gave the operator, else by the operator. DALI
/// calls output 1 of an unnamed operator `__Operator_NUMBER[1]`.
fn outputs_of(outputs: &[Output]) -> String {
    let text = |output: &Output| {
        let name = output.name.escape_debug();
        let unnamed = output.name.strip_prefix("__").and_then(|rest| rest.rsplit_once('_'));
        match unnamed.filter(|(_, number)| number.starts_with(|c: char| c.is_ascii_digit())) {
            Some((operator, _)) => format!("an unnamed one of `{}`", operator.escape_debug()),
            None => format!("`{name}`"),
        }
    };
    if outputs.is_empty() {
        "none".to_owned()
    } else {
        outputs.iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{}`", name.escape_debug())).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
