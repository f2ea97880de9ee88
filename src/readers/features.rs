//! The features that a `TFRecord` reader is told to find, and their values in an `Example`. It must not know files.

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;

use super::wire::{Fields, Value, packed};
use super::{Tensor, tensors};
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::memory::{HostBuffer, HostPool};
use crate::tensor::{DType, Shape, ValueType};

/// A feature of an `Example`: an output of the reader.
#[derive(Debug, PartialEq)]
pub(super) struct Feature {
    name: String,
    kind: Kind,
    extents: Extents,
}

/// Its type, and what stands for one that is missing.
#[derive(Debug, PartialEq)]
enum Kind {
    Int(i64),
    Text(String),
    Float(f32),
}

#[derive(Debug, PartialEq)]
enum Extents {
    /// A list of as many values as there are.
    Any,
    /// As many of these as there are.
    Rows(Vec<usize>),
    Fixed(Vec<usize>),
}

/// A feature as a file has it: parts by their names, each a list of values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Told {
    r#type: [i64; 1],
    #[serde(default)]
    has_shape: Vec<bool>,
    #[serde(default)]
    shape: Vec<i64>,
    #[serde(default)]
    partial_shape: Vec<i64>,
    #[serde(default)]
    default_value: Vec<serde_json::Value>,
}

impl Feature {
    /// The feature `name` that is what `text` says, an object of JSON.
    ///
    /// # Errors
    /// Invalid for another text.
    pub(super) fn new(name: &str, text: &str) -> Result<Self> {
        let wrong = |what: String| Error::invalid(format!("feature `{name}`: {what}"));
        let told: Told = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        let default = told.default_value.first();
        let text = default.and_then(serde_json::Value::as_str);
        let kind = match told.r#type {
            [0] => Kind::Int(default.and_then(serde_json::Value::as_i64).unwrap_or_default()),
            [1] => Kind::Text(text.unwrap_or_default().to_owned()),
            [2] => {
                let number = text.and_then(|text| text.parse().ok());
                Kind::Float(number.or(default.and_then(serde_json::Value::as_f64)).unwrap_or_default() as f32)
            }
            [other] => return Err(wrong(format!("its type is {other}, expected 0 to 2"))),
        };
        let extents = |extents: &[i64]| {
            let all: Option<Vec<usize>> =
                extents.iter().map(|&extent| usize::try_from(extent).ok()).collect();
            all.filter(|all| all.len() < limits::MAX_NDIM)
                .ok_or_else(|| wrong(format!("its shape is {extents:?}, expected fixed extents")))
        };
        let extents = if !told.partial_shape.is_empty() {
            Extents::Rows(extents(&told.partial_shape)?)
        } else if told.has_shape.first() == Some(&true) {
            Extents::Fixed(extents(&told.shape)?)
        } else {
            Extents::Any
        };
        Ok(Self { name: name.to_owned(), kind, extents })
    }

    /// What is known of it beforehand. One that is missing is a single number, whatever its shape.
    pub(super) fn value_type(&self) -> ValueType {
        let (dtype, dims) = match self.kind {
            Kind::Int(_) => (DType::I64, None),
            Kind::Text(_) => (DType::U8, Some(vec![None])),
            Kind::Float(_) => (DType::F32, None),
        };
        ValueType { dtype: Some(dtype), dims, layout: Some(Default::default()) }
    }

    fn shape(&self, count: usize) -> Result<Shape> {
        let fits = |extents: &[usize], more: usize| {
            extents.iter().try_fold(more, |product, &extent| product.checked_mul(extent)) == Some(count)
        };
        match &self.extents {
            Extents::Any => Some(Shape::from([count])),
            Extents::Fixed(extents) => Some(Shape::from(extents.clone())).filter(|_| fits(extents, 1)),
            Extents::Rows(extents) => {
                let row = extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
                let rows = row.and_then(|row| count.checked_div(row)).filter(|&rows| fits(extents, rows));
                rows.map(|rows| Shape::from([&[rows], extents.as_slice()].concat()))
            }
        }
        .ok_or_else(|| Error::invalid(format!("{count} values, expected a shape of {:?}", self.extents)))
    }

    /// Its value in `found`, the features of the example in `buffer`.
    fn tensor(&self, found: &[Found], buffer: &Arc<HostBuffer>, memory: &Arc<HostPool>) -> Result<Tensor> {
        let bytes = buffer.bytes();
        let of = found.iter().rev().find(|one| bytes.get(one.name.clone()) == Some(self.name.as_bytes()));
        let Some(Found { kind, values, .. }) = of.filter(|one| one.kind != 0) else {
            return match &self.kind {
                Kind::Int(value) => tensors::shaped(Shape::from([]), &[*value], memory),
                Kind::Text(text) => tensors::list(text.as_bytes(), memory),
                Kind::Float(value) => tensors::shaped(Shape::from([]), &[*value], memory),
            };
        };
        let values = || Fields::new(bytes, values.clone());
        match (kind, &self.kind) {
            (1, Kind::Text(_)) => {
                for field in values() {
                    if let (1, Value::Bytes(text)) = field? {
                        return Ok(tensors::part(buffer, text, DType::U8));
                    }
                }
                tensors::list::<u8>(&[], memory)
            }
            (2, Kind::Float(_)) => {
                let numbers = floats(values(), bytes)?;
                tensors::shaped(self.shape(numbers.len())?, &numbers, memory)
            }
            (3, Kind::Int(_)) => {
                let numbers = integers(values(), bytes)?;
                tensors::shaped(self.shape(numbers.len())?, &numbers, memory)
            }
            (other, wanted) => Err(Error::invalid(format!(
                "its values are of kind {other}, expected those of {wanted:?}: 1 texts, 2 floats, 3 integers"
            ))),
        }
    }
}

fn floats(fields: Fields<'_>, bytes: &[u8]) -> Result<Vec<f32>> {
    let mut numbers = Vec::new();
    for field in fields {
        let (1, value) = field? else { continue };
        let range = match value {
            Value::Bytes(range) if range.len().is_multiple_of(4) => range,
            other => {
                return Err(Error::invalid(format!("floats that are {other:?}, expected 4 bytes for each")));
            }
        };
        let (each, _) = bytes.get(range).unwrap_or_default().as_chunks::<4>();
        numbers.extend(each.iter().map(|&bytes| f32::from_le_bytes(bytes)));
    }
    Ok(numbers)
}

fn integers(fields: Fields<'_>, bytes: &[u8]) -> Result<Vec<i64>> {
    let mut numbers = Vec::new();
    for field in fields {
        match field? {
            (1, Value::Number(number)) => numbers.push(number as i64),
            (1, Value::Bytes(range)) => numbers.extend(packed(bytes, range)?),
            _ => {}
        }
    }
    Ok(numbers)
}

/// A feature of an example: where its name and its values are, and of which kind these are; 0: it has none.
struct Found {
    name: Range<usize>,
    kind: u64,
    values: Range<usize>,
}

/// The wanted features of the example at `range` of `buffer`.
///
/// # Errors
/// Bytes that are no example, values of another type or number.
pub(super) fn of_example(
    wanted: &[Feature],
    buffer: &Arc<HostBuffer>,
    range: Range<usize>,
    memory: &Arc<HostPool>,
) -> Result<Vec<Tensor>> {
    let bytes = buffer.bytes();
    let mut found = Vec::new();
    for entry in Fields::new(bytes, first_message(bytes, range)?) {
        if let (1, Value::Bytes(entry)) = entry? {
            found.push(feature(bytes, entry)?);
        }
    }
    let tensor = |feature: &Feature| {
        feature.tensor(&found, buffer, memory).context(|| format!("feature `{}`", feature.name))
    };
    wanted.iter().map(tensor).collect()
}

/// The first message inside of one that is field 1; empty without.
fn first_message(bytes: &[u8], range: Range<usize>) -> Result<Range<usize>> {
    for field in Fields::new(bytes, range) {
        if let (1, Value::Bytes(inside)) = field? {
            return Ok(inside);
        }
    }
    Ok(0..0)
}

fn feature(bytes: &[u8], entry: Range<usize>) -> Result<Found> {
    let (mut name, mut value) = (None, 0..0);
    for field in Fields::new(bytes, entry) {
        match field? {
            (1, Value::Bytes(range)) => name = Some(range),
            (2, Value::Bytes(range)) => value = range,
            _ => {}
        }
    }
    let name = name.ok_or_else(|| Error::invalid("a feature of an example has no name"))?;
    match Fields::new(bytes, value).next().transpose()? {
        Some((kind, Value::Bytes(values))) => Ok(Found { name, kind, values }),
        Some((kind, Value::Number(_))) => Err(Error::invalid(format!(
            "a feature of an example has a number as its field {kind}, expected a list"
        ))),
        None => Ok(Found { name, kind: 0, values: 0..0 }),
    }
}
