//! Arguments of operators: what the file gave ([`Value`], [`Args`]), and an argument that is either fixed or a tensor with a
//! value per sample ([`Arg`]). What an operator accepts is in `spec`.
//!
//! Reading is tolerant where libdali is strict: an integer serves where a float is wanted and the other way round when
//! nothing is lost, a scalar serves as a list of one.

use std::collections::BTreeMap;

use crate::cpu::convert::ConvertSat;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::SampleInputs;
use crate::tensor::{DType, View};

/// The value of an argument as the file gives it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// A scalar or list of integers (enumerations too).
    Ints(Vec<i64>),
    /// A scalar or list of floats.
    Floats(Vec<f32>),
    /// A scalar or list of truth values.
    Bools(Vec<bool>),
    /// A scalar or list of texts.
    Strings(Vec<String>),
}

impl Value {
    fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Value::Ints(v) => Some(v.clone()),
            Value::Bools(v) => Some(v.iter().map(|&b| i64::from(b)).collect()),
            Value::Floats(v) => {
                v.iter().map(|&f| (f == f.trunc() && f.abs() < 9e18).then_some(f as i64)).collect()
            }
            Value::Strings(_) => None,
        }
    }

    fn floats(&self) -> Option<Vec<f32>> {
        match self {
            Value::Floats(v) => Some(v.clone()),
            Value::Ints(v) => Some(v.iter().map(|&i| i as f32).collect()),
            Value::Bools(v) => Some(v.iter().map(|&b| f32::from(u8::from(b))).collect()),
            Value::Strings(_) => None,
        }
    }
}

/// The arguments of one operator instance: fixed values, and which tensor feeds which keyword.
#[derive(Debug, Clone, Default)]
pub struct Args {
    values: BTreeMap<String, Value>,
    tensors: BTreeMap<String, usize>,
}

impl Args {
    /// Arguments with fixed `values`, and `tensors`: keyword to index among the operator's argument inputs.
    pub fn new(values: BTreeMap<String, Value>, tensors: BTreeMap<String, usize>) -> Self {
        Self { values, tensors }
    }

    /// How many arguments are tensors.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// The same arguments where `by` other argument inputs come first.
    #[must_use]
    pub fn shifted(&self, by: usize) -> Self {
        let tensors = self.tensors.iter().map(|(name, index)| (name.clone(), index + by)).collect();
        Self { values: self.values.clone(), tensors }
    }

    /// The same arguments where what is called `from` is called `to`.
    #[must_use]
    pub fn renamed(&self, from: &str, to: &str) -> Self {
        let mut args = self.clone();
        if let Some(value) = args.values.remove(from) {
            args.values.insert(to.to_owned(), value);
        }
        if let Some(tensor) = args.tensors.remove(from) {
            args.tensors.insert(to.to_owned(), tensor);
        }
        args
    }

    /// The same arguments, `name` being `value` where it was not given.
    #[must_use]
    pub fn or(&self, name: &str, value: Value) -> Self {
        let mut args = self.clone();
        if !args.has(name) {
            args.values.insert(name.to_owned(), value);
        }
        args
    }

    /// Every keyword that was given, fixed or as a tensor.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().chain(self.tensors.keys()).map(String::as_str)
    }

    /// Every fixed value with its keyword.
    pub fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Every keyword that a tensor feeds, and which of the argument inputs it is.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, usize)> {
        self.tensors.iter().map(|(name, &input)| (name.as_str(), input))
    }

    /// Whether a tensor feeds `name`.
    pub fn is_tensor(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Which argument input feeds `name`, if one does.
    pub fn tensor(&self, name: &str) -> Option<usize> {
        self.tensors.get(name).copied()
    }

    /// Whether `name` was given at all.
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name) || self.tensors.contains_key(name)
    }

    /// A fixed list of integers.
    pub fn ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.list(name, "integers", Value::ints)
    }

    /// A fixed list of floats.
    pub fn floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        self.list(name, "floats", Value::floats)
    }

    /// A fixed integer.
    pub fn int(&self, name: &str) -> Result<Option<i64>> {
        self.ints(name)?.map(|v| single(name, &v)).transpose()
    }

    /// A fixed float.
    pub fn float(&self, name: &str) -> Result<Option<f32>> {
        self.floats(name)?.map(|v| single(name, &v)).transpose()
    }

    /// A fixed truth value.
    pub fn bool(&self, name: &str) -> Result<Option<bool>> {
        Ok(self.int(name)?.map(|v| v != 0))
    }

    /// A fixed text.
    pub fn string(&self, name: &str) -> Result<Option<&str>> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Strings(v)) if v.len() == 1 => Ok(Some(&v[0])),
            Some(other) => Err(Error::invalid(format!("argument `{name}` is {other}, expected a text"))),
        }
    }

    /// A fixed element type, given by its number.
    pub fn dtype(&self, name: &str) -> Result<Option<DType>> {
        let Some(id) = self.int(name)? else { return Ok(None) };
        DType::in_file(id).map(Some).ok_or_else(|| {
            Error::invalid(format!("argument `{name}` is {id}, expected a tensor type from 0 to 11"))
        })
    }

    /// An argument that may be fixed or a tensor, as numbers; `default` when it was not given.
    ///
    /// # Errors
    /// When it holds no numbers.
    pub fn arg_or(&self, name: &'static str, default: &[f64]) -> Result<Arg> {
        Ok(self.arg(name)?.unwrap_or_else(|| Arg::fixed(name, default)))
    }

    /// An argument that may be fixed or a tensor, as numbers; `None` when it was not given.
    pub fn arg(&self, name: &'static str) -> Result<Option<Arg>> {
        if let Some(&input) = self.tensors.get(name) {
            return Ok(Some(Arg { name, source: Source::Tensor(input) }));
        }
        // Integers stay exact up to 2^53, which is more than any shape or index needs.
        let Some(value) = self.values.get(name) else { return Ok(None) };
        let numbers = match value {
            Value::Ints(v) => v.iter().map(|&i| i as f64).collect(),
            Value::Floats(v) => v.iter().map(|&f| f64::from(f)).collect(),
            Value::Bools(v) => v.iter().map(|&b| f64::from(u8::from(b))).collect(),
            Value::Strings(_) => {
                return Err(Error::invalid(format!("argument `{name}` is {value}, expected numbers")));
            }
        };
        Ok(Some(Arg { name, source: Source::Fixed(numbers) }))
    }

    fn list<T>(
        &self,
        name: &str,
        what: &str,
        read: impl Fn(&Value) -> Option<Vec<T>>,
    ) -> Result<Option<Vec<T>>> {
        if self.tensors.contains_key(name) {
            return Err(Error::unsupported(format!("argument `{name}` is a tensor, expected a fixed value")));
        }
        self.values
            .get(name)
            .map(|value| {
                read(value)
                    .ok_or_else(|| Error::invalid(format!("argument `{name}` is {value}, expected {what}")))
            })
            .transpose()
    }
}

fn single<T: Copy>(name: &str, values: &[T]) -> Result<T> {
    match values {
        [value] => Ok(*value),
        _ => Err(Error::invalid(format!("argument `{name}` has {} values, expected one", values.len()))),
    }
}

/// A numeric argument whose value may differ from sample to sample.
#[derive(Debug, Clone)]
pub struct Arg {
    name: &'static str,
    source: Source,
}

#[derive(Debug, Clone)]
enum Source {
    Fixed(Vec<f64>),
    Tensor(usize),
}

impl Arg {
    /// The argument `name` fixed to `values`: for defaults.
    pub fn fixed(name: &'static str, values: &[f64]) -> Self {
        Self { name, source: Source::Fixed(values.to_vec()) }
    }

    /// The values when they do not depend on the sample: for type inference at load.
    pub fn known(&self) -> Option<&[f64]> {
        match &self.source {
            Source::Fixed(values) => Some(values),
            Source::Tensor(_) => None,
        }
    }

    /// The values of one sample, whatever the tensor's type; a scalar is a list of one.
    pub fn numbers(&self, sample: &SampleInputs<'_>) -> Result<Vec<f64>> {
        match &self.source {
            Source::Fixed(values) => Ok(values.clone()),
            Source::Tensor(input) => numbers(&sample.argument(*input)?),
        }
    }

    /// The tensor of one sample, with its shape, when a tensor feeds the argument.
    pub fn tensor<'a>(&self, sample: &SampleInputs<'a>) -> Result<Option<View<'a>>> {
        match &self.source {
            Source::Fixed(_) => Ok(None),
            Source::Tensor(input) => sample.argument(*input).map(Some),
        }
    }

    /// The values of one sample as float32, the type that DALI computes arguments in.
    pub fn floats(&self, sample: &SampleInputs<'_>) -> Result<Vec<f32>> {
        self.values(sample, |v| v as f32)
    }

    /// The values of one sample as integers (truncated).
    pub fn ints(&self, sample: &SampleInputs<'_>) -> Result<Vec<i64>> {
        self.values(sample, |v| v as i64)
    }

    /// The one value of one sample.
    pub fn float(&self, sample: &SampleInputs<'_>) -> Result<f32> {
        self.one(sample).map(|v| v as f32)
    }

    /// The one value of one sample as an integer.
    pub fn int(&self, sample: &SampleInputs<'_>) -> Result<i64> {
        self.one(sample).map(|v| v as i64)
    }

    fn values<T>(&self, sample: &SampleInputs<'_>, of: impl Fn(f64) -> T) -> Result<Vec<T>> {
        match &self.source {
            Source::Fixed(values) => Ok(values.iter().map(|&v| of(v)).collect()),
            Source::Tensor(_) => Ok(self.numbers(sample)?.into_iter().map(of).collect()),
        }
    }

    fn one(&self, sample: &SampleInputs<'_>) -> Result<f64> {
        match &self.source {
            Source::Fixed(values) => single(self.name, values),
            Source::Tensor(_) => single(self.name, &self.numbers(sample)?),
        }
    }
}

/// The elements of a small tensor as numbers.
pub fn numbers(view: &View<'_>) -> Result<Vec<f64>> {
    dispatch!(view.dtype, T => Ok(view.as_slice::<T>()?.iter().map(|&v| v.convert_sat()).collect()))
}

/// Elements of a list that a message shows.
const SHOWN: usize = 8;

impl std::fmt::Display for Value {
    /// A scalar, or the first elements of a list in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        fn text<T: std::fmt::Display>(values: &[T]) -> String {
            let shown: Vec<String> = values.iter().take(SHOWN).map(ToString::to_string).collect();
            let shown = shown.join(", ");
            match values.len() {
                1 => shown,
                0..=SHOWN => format!("[{shown}]"),
                many => format!("[{shown}, ...] ({many} values)"),
            }
        }
        f.write_str(&match self {
            Value::Ints(v) => text(v),
            Value::Floats(v) => text(v),
            Value::Bools(v) => text(v),
            Value::Strings(v) => text(v),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(name: &str, value: Value) -> Args {
        Args::new(BTreeMap::from([(name.to_owned(), value)]), BTreeMap::new())
    }

    #[test]
    fn numbers_are_coerced_where_nothing_is_lost() {
        assert_eq!(args("a", Value::Ints(vec![3])).float("a").unwrap(), Some(3.0));
        assert_eq!(args("a", Value::Floats(vec![3.0])).int("a").unwrap(), Some(3));
        assert_eq!(args("a", Value::Ints(vec![1])).bool("a").unwrap(), Some(true));
        assert!(args("a", Value::Floats(vec![3.5])).int("a").is_err());
        assert!(args("a", Value::Strings(vec!["x".into()])).float("a").is_err());
        assert!(args("a", Value::Ints(vec![1, 2])).int("a").is_err());
        assert_eq!(args("a", Value::Ints(vec![1])).int("b").unwrap(), None);
    }
}
