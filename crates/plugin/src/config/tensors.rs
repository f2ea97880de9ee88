//! One tensor as the configuration has it, and one as the pipeline has it. It knows neither how the first is completed
//! from the second nor how they are compared.

use std::fmt;

use serde_json::{Map, Value, json};

use super::data_type::DataType;
use super::read;
use gesso::error::{Context, Error, Result};
use gesso::pipeline::{Input, Output, Pipeline};
use gesso::tensor::DType;

/// An extent that differs from request to request, in `dims`.
pub(super) const VARIABLE: i64 = -1;

/// What a pipeline says of its tensors.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'p> {
    /// What it takes.
    pub inputs: &'p [Input],
    /// What it gives, in order.
    pub outputs: &'p [Output],
    /// The batch size that its file was made for, at least 1.
    pub max_batch_size: usize,
    /// Whether a request brings a video, which is answered batch by batch.
    pub takes_videos: bool,
}

impl<'p> From<&'p Pipeline> for Facts<'p> {
    fn from(pipeline: &'p Pipeline) -> Self {
        Self {
            inputs: pipeline.inputs(),
            outputs: pipeline.outputs(),
            max_batch_size: pipeline.max_batch_size(),
            takes_videos: pipeline.takes_videos(),
        }
    }
}

/// Whether a tensor is fed or given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Input,
    Output,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Input => "input",
            Role::Output => "output",
        })
    }
}

/// A tensor of the pipeline.
#[derive(Debug, Clone)]
pub(super) struct Fact {
    pub(super) role: Role,
    pub(super) dtype: Option<DType>,
    /// Extents of a sample; `None`: not even the rank is known.
    sample: Option<Vec<Option<usize>>>,
    /// Whether a configuration with another type contradicts what the pipeline's author wrote, or what its operators
    /// can take.
    pub(super) dtype_is_firm: bool,
    /// As `dtype_is_firm`, for the rank.
    pub(super) ndim_is_firm: bool,
}

impl Fact {
    pub(super) fn input(input: &Input) -> Self {
        let sample = input.ndim.map(|ndim| vec![None; ndim]);
        Self { role: Role::Input, dtype: input.dtype, sample, dtype_is_firm: true, ndim_is_firm: true }
    }

    /// An output; one that `is_split` has samples without their first dimension. What was not declared, only inferred,
    /// is not firm: DALI, which infers nothing, lets a configuration say anything there.
    pub(super) fn output(output: &Output, is_split: bool) -> Self {
        let mut sample = output.ty.dims.clone();
        if let (true, Some(dims)) = (is_split, &mut sample) {
            dims.drain(..dims.len().min(1));
        }
        Self {
            role: Role::Output,
            dtype: output.ty.dtype,
            sample,
            dtype_is_firm: output.dtype.is_some(),
            ndim_is_firm: output.ndim.is_some(),
        }
    }

    /// Rank of a sample.
    pub(super) fn ndim(&self) -> Option<usize> {
        self.sample.as_ref().map(Vec::len)
    }

    /// The shape in the terms of a configuration; `None` when not even the rank is known. Without batching by the
    /// server, samples stand along a first dimension of their own.
    pub(super) fn dims(&self, batched: bool) -> Option<Vec<i64>> {
        let extents = self.sample.as_ref()?.iter().map(|extent| {
            // A configuration cannot hold extent 0.
            extent.and_then(|n| i64::try_from(n).ok()).filter(|&n| n > 0).unwrap_or(VARIABLE)
        });
        Some((!batched).then_some(VARIABLE).into_iter().chain(extents).collect())
    }

    /// Whether `TYPE_STRING` can feed it: each element of a request is then one encoded file, a 1-D sample of bytes.
    pub(super) fn takes_strings(&self) -> bool {
        self.role == Role::Input
            && matches!(self.dtype, None | Some(DType::U8))
            && matches!(self.ndim(), None | Some(1))
    }
}

/// One entry of `input` or `output`.
#[derive(Debug, Clone)]
pub struct TensorConfig {
    /// Name that requests use.
    pub name: String,
    /// Element type; `None` when the entry has none.
    pub data_type: Option<DataType>,
    /// Shape that clients see, without the server's batch dimension; -1 is variable. Empty when the entry has none.
    pub dims: Vec<i64>,
    /// Shape that the backend sees, when it is another one than `dims`.
    pub reshape: Option<Vec<i64>>,
    /// Whether requests with different shapes may be merged into one batch. Inputs only.
    pub allow_ragged_batch: bool,
    /// Whether a request may leave it out. Inputs only.
    pub optional: bool,
    fields: Map<String, Value>,
}

impl TensorConfig {
    pub(super) fn parse(key: &str, value: Value) -> Result<Self> {
        let Value::Object(fields) = value else {
            return Err(Error::invalid(format!("`{key}` holds {}, expected objects", read::kind(&value))));
        };
        let name = read::text(&fields, "name").context(|| key.to_owned())?.unwrap_or_default().to_owned();
        Self::parse_fields(name.clone(), fields).context(|| format!("{key} `{}`", name.escape_debug()))
    }

    fn parse_fields(name: String, fields: Map<String, Value>) -> Result<Self> {
        let data_type = match read::text(&fields, "data_type")? {
            None | Some("" | "TYPE_INVALID") => None,
            Some(text) => Some(DataType::from_config_name(text).ok_or_else(|| {
                Error::unsupported(format!("data_type `{}` is not supported", text.escape_debug()))
            })?),
        };
        let reshape =
            read::object(&fields, "reshape")?.map(|reshape| read::ints(reshape, "shape")).transpose()?;
        Ok(Self {
            name,
            data_type,
            dims: read::ints(&fields, "dims")?,
            reshape,
            allow_ragged_batch: read::flag(&fields, "allow_ragged_batch")?,
            optional: read::flag(&fields, "optional")?,
            fields,
        })
    }

    /// An entry that says nothing but the name.
    pub(super) fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            data_type: None,
            dims: Vec::new(),
            reshape: None,
            allow_ragged_batch: false,
            optional: false,
            fields: Map::new(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let mut fields = self.fields.clone();
        fields.insert("name".to_owned(), self.name.clone().into());
        let data_type = self.data_type.map_or("TYPE_INVALID", DataType::config_name);
        fields.insert("data_type".to_owned(), data_type.into());
        fields.insert("dims".to_owned(), json!(self.dims));
        if let Some(shape) = &self.reshape {
            fields.insert("reshape".to_owned(), json!({ "shape": shape }));
        }
        // Outputs have no such field, and the server refuses what it does not know.
        if self.allow_ragged_batch {
            fields.insert("allow_ragged_batch".to_owned(), true.into());
        }
        if self.optional {
            fields.insert("optional".to_owned(), true.into());
        }
        Value::Object(fields)
    }

    /// The shape that the backend sees; `None` when the entry has none.
    pub fn backend_dims(&self) -> Option<&[i64]> {
        if self.dims.is_empty() { None } else { Some(self.reshape.as_deref().unwrap_or(&self.dims)) }
    }
}
