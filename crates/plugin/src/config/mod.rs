//! The configuration of one model: the JSON that the server hands over, what a pipeline adds to it, whether the two
//! agree, and where the model file is. JSON in, JSON out; it must not know the server's C API or run a pipeline.
//!
//! ```text
//! parse --> complete(facts) --> to_json --> the server
//!       \-> validate(facts) --> TensorMap: which configured tensor is which of the pipeline
//!       \-> settings                       model_file: bytes of the pipeline
//! ```
//!
//! The server prints every primitive field, also those that `config.pbtxt` leaves out: a field that is absent and one
//! that was set to its default look the same. What follows from that stands in `complete`; `text` looks the one field
//! up where it matters.

pub mod autoserialize;
mod clients;
mod complete;
mod data_type;
mod default_sample;
mod fetching;
mod model_file;
pub mod pbtxt;
mod quota;
mod read;
mod recording;
mod server_rules;
mod settings;
mod source;
pub(crate) mod spelling;
mod tensors;
#[cfg(test)]
mod tests;
mod text;
mod validate;

use std::time::Duration;

use serde_json::{Map, Value, json};

pub use autoserialize::printed;
pub use clients::ClientLimits;
pub use data_type::{DataType, InstanceKind};
pub use default_sample::DefaultSample;
pub use fetching::Fetching;
pub use model_file::{Content, ModelFile};
pub use quota::Quota;
pub use recording::Recording;
pub use server_rules::check_metric_tags;
pub use settings::Settings;
pub use source::SerializedPipeline;
pub use tensors::{Facts, TensorConfig};
pub use text::written_max_batch_size;
pub use validate::{Tensor, TensorMap};

use gesso::error::{Context, Error, Result};

/// Name of the model file when the configuration gives none.
pub const DEFAULT_MODEL_FILE: &str = "model.dali";

/// What chooses how requests are batched; a model has at most one of them.
const SCHEDULERS: [&str; 3] = ["dynamic_batching", "sequence_batching", "ensemble_scheduling"];

/// A model configuration. Fields that it does not know survive [`ModelConfig::to_json`].
#[derive(Debug, Clone)]
pub struct ModelConfig {
    fields: Map<String, Value>,
    max_batch_size: i64,
    /// Whether the author wrote 0 for it, as far as that is known.
    zero_is_written: bool,
    inputs: Vec<TensorConfig>,
    outputs: Vec<TensorConfig>,
}

impl ModelConfig {
    /// Reads the JSON form of Triton's `ModelConfig`. Integers may be written as strings.
    ///
    /// # Errors
    /// Invalid when it is no such JSON, unsupported for a `data_type` that no pipeline has; both name the field.
    pub fn parse(json: &str) -> Result<Self> {
        let root: Value = serde_json::from_str(json)
            .map_err(|error| Error::invalid(format!("the model configuration is not JSON: {error}")))?;
        let Value::Object(mut fields) = root else {
            return Err(Error::invalid(format!(
                "the model configuration is {}, expected an object",
                read::kind(&root)
            )));
        };
        let max_batch_size = read::int(&fields, "max_batch_size").context(in_config)?.unwrap_or(0);
        let inputs = take_tensors(&mut fields, "input")?;
        let outputs = take_tensors(&mut fields, "output")?;
        Ok(Self { fields, max_batch_size, zero_is_written: false, inputs, outputs })
    }

    /// Adds what [`written_max_batch_size`] found: a 0 that was written is one that was meant.
    #[must_use]
    pub fn with_written_max_batch_size(mut self, written: Option<i64>) -> Self {
        self.zero_is_written = written == Some(0);
        self
    }

    /// The configuration as JSON, for the server.
    pub fn to_json(&self) -> String {
        let mut fields = self.fields.clone();
        let list = |tensors: &[TensorConfig]| tensors.iter().map(TensorConfig::to_json).collect();
        fields.insert("max_batch_size".to_owned(), self.max_batch_size.into());
        fields.insert("input".to_owned(), Value::Array(list(&self.inputs)));
        fields.insert("output".to_owned(), Value::Array(list(&self.outputs)));
        Value::Object(fields).to_string()
    }

    /// The largest batch; 0 means that requests have no batch dimension of the server's. [`ModelConfig::validate`]
    /// checks the range.
    pub fn max_batch_size(&self) -> i64 {
        self.max_batch_size
    }

    /// Whether the first dimension of every tensor is the server's batch dimension and missing in `dims`.
    pub fn is_batched(&self) -> bool {
        self.max_batch_size > 0
    }

    /// Inputs as configured, in the order of the configuration.
    pub fn inputs(&self) -> &[TensorConfig] {
        &self.inputs
    }

    /// Outputs as configured, in the order of the configuration.
    pub fn outputs(&self) -> &[TensorConfig] {
        &self.outputs
    }

    /// `default_model_filename`, or [`DEFAULT_MODEL_FILE`].
    ///
    /// # Errors
    /// Invalid when it is not text.
    pub fn model_filename(&self) -> Result<&str> {
        let name = read::text(&self.fields, "default_model_filename").context(in_config)?;
        Ok(name.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_MODEL_FILE))
    }

    /// The kind of each instance group. The server has replaced [`InstanceKind::Auto`] when it loads a model.
    ///
    /// # Errors
    /// Invalid for a group without a kind that we know.
    pub fn instance_kinds(&self) -> Result<Vec<InstanceKind>> {
        let groups = read::list(&self.fields, "instance_group").context(in_config)?;
        groups.iter().map(|group| instance_kind(group).context(in_config)).collect()
    }

    /// Whether a request may get any number of responses: `model_transaction_policy { decoupled: true }`.
    pub fn is_decoupled(&self) -> bool {
        let policy = self.fields.get("model_transaction_policy");
        policy.and_then(|policy| policy.get("decoupled")).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Whether the server keeps requests of a sequence together, and the time that a sequence may wait for its next
    /// request, if that is said.
    ///
    /// # Errors
    /// Invalid when it is not an object, or the time not a number.
    pub fn sequences(&self) -> Result<Option<Option<Duration>>> {
        let Some(sequences) = read::object(&self.fields, "sequence_batching").context(in_config)? else {
            return Ok(None);
        };
        let idle = read::int(sequences, "max_sequence_idle_microseconds").context(in_config)?;
        Ok(Some(
            idle.and_then(|idle| u64::try_from(idle).ok())
                .filter(|&idle| idle > 0)
                .map(Duration::from_micros),
        ))
    }

    /// Batches that the server itself makes for each instance, before the model is ready: `model_warmup`.
    ///
    /// # Errors
    /// Invalid when it is no list, or a count not a number.
    pub fn warm_ups(&self) -> Result<usize> {
        let samples = read::list(&self.fields, "model_warmup").context(in_config)?;
        samples.iter().filter_map(Value::as_object).try_fold(0_usize, |sum, sample| {
            let count = read::int(sample, "count").context(in_config)?.unwrap_or(0);
            Ok(sum.saturating_add(usize::try_from(count).unwrap_or(0).max(1)))
        })
    }

    /// Names of the inputs that the server itself adds to the requests of a sequence.
    fn control_inputs(&self) -> Result<Vec<String>> {
        let Some(sequences) = read::object(&self.fields, "sequence_batching").context(in_config)? else {
            return Ok(Vec::new());
        };
        let inputs = read::list(sequences, "control_input").context(in_config)?;
        Ok(inputs.iter().filter_map(|input| Some(input.get("name")?.as_str()?.to_owned())).collect())
    }

    /// Whether the server is to keep a state for the requests of a sequence.
    fn has_state(&self) -> Result<bool> {
        let sequences = read::object(&self.fields, "sequence_batching").context(in_config)?;
        Ok(match sequences {
            Some(sequences) => !read::list(sequences, "state").context(in_config)?.is_empty(),
            None => false,
        })
    }

    /// The model's `parameters`.
    ///
    /// # Errors
    /// Invalid, naming the parameter, its value and what is expected.
    pub fn settings(&self) -> Result<Settings> {
        Settings::parse(&self.fields)
    }

    fn has_scheduler(&self) -> bool {
        SCHEDULERS.iter().any(|key| self.fields.get(*key).is_some_and(|value| !value.is_null()))
    }

    fn decouple(&mut self) {
        self.fields.insert("model_transaction_policy".to_owned(), json!({ "decoupled": true }));
    }

    fn add_dynamic_batching(&mut self) {
        self.fields.insert("dynamic_batching".to_owned(), json!({}));
    }
}

fn in_config() -> String {
    "model configuration".to_owned()
}

fn take_tensors(fields: &mut Map<String, Value>, key: &'static str) -> Result<Vec<TensorConfig>> {
    let list = match fields.remove(key) {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(list)) => list,
        Some(other) => {
            return Err(Error::invalid(format!("`{key}` is {}, expected a list", read::kind(&other))))
                .context(in_config);
        }
    };
    list.into_iter().map(|value| TensorConfig::parse(key, value).context(in_config)).collect()
}

fn instance_kind(group: &Value) -> Result<InstanceKind> {
    match group.get("kind") {
        None | Some(Value::Null) => Ok(InstanceKind::Auto),
        Some(Value::String(kind)) => match kind.as_str() {
            "KIND_AUTO" => Ok(InstanceKind::Auto),
            "KIND_CPU" => Ok(InstanceKind::Cpu),
            "KIND_GPU" => Ok(InstanceKind::Gpu),
            "KIND_MODEL" => Ok(InstanceKind::Model),
            _ => Err(Error::invalid(format!(
                "`instance_group` has the unknown kind `{}`",
                kind.escape_debug()
            ))),
        },
        Some(other) => Err(Error::invalid(format!(
            "the kind of an `instance_group` is {}, expected a string",
            read::kind(other)
        ))),
    }
}
