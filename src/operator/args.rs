//! Arguments of operators: what the file gave ([`Value`], [`Args`]), and an argument that is either fixed or a tensor
//! with a value per sample ([`Arg`]). What an operator accepts is in `spec`.
//!
//! Reading is tolerant where libdali is strict: an integer serves where a float is wanted and the other way round when
//! nothing is lost, a scalar serves as a list of one.

use std::collections::BTreeMap;

use crate::cpu::convert::ConvertSat;
use crate::dispatch;
use crate::error::{Error, Result};
use crate::operator::SampleInputs;
use crate::operator::spec::{ArgSpec, ArgTable, DefaultValue};
pub use crate::operator::value::Value;
use crate::tensor::{DType, View};

/// The arguments of one operator instance: fixed values, and which tensor feeds which keyword.
#[derive(Debug, Clone, Default)]
pub struct Args {
    values: BTreeMap<String, Value>,
    tensors: BTreeMap<String, usize>,
    table: ArgTable,
}

impl Args {
    /// Arguments with fixed `values`, and `tensors`: keyword to index among the operator's argument inputs. They have
    /// no defaults yet.
    pub fn new(values: BTreeMap<String, Value>, tensors: BTreeMap<String, usize>) -> Self {
        Self { values, tensors, table: ArgTable::default() }
    }

    /// The same arguments with the defaults of `table`.
    #[must_use]
    pub fn with_defaults(&self, table: ArgTable) -> Self {
        Self { table, ..self.clone() }
    }

    /// How many arguments are tensors.
    pub fn tensor_count(&self) -> usize {
        self.tensors.len()
    }

    /// The same arguments where `by` other argument inputs come first.
    #[must_use]
    pub fn shifted(&self, by: usize) -> Self {
        let tensors = self.tensors.iter().map(|(name, index)| (name.clone(), index + by)).collect();
        Self { values: self.values.clone(), tensors, table: self.table }
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

    /// A fixed list of integers; the table's default where it was not given.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        self.or_default(name, to_ints)
    }

    /// A fixed list of integers; `None` where it was not given.
    pub fn given_ints(&self, name: &str) -> Result<Option<Vec<i64>>> {
        self.given(name, to_ints)
    }

    /// A fixed list of floats; the table's default where it was not given.
    pub fn floats(&self, name: &str) -> Result<Vec<f32>> {
        self.or_default(name, to_floats)
    }

    /// A fixed list of floats; `None` where it was not given.
    pub fn given_floats(&self, name: &str) -> Result<Option<Vec<f32>>> {
        self.given(name, to_floats)
    }

    /// A fixed integer; the table's default where it was not given.
    pub fn int(&self, name: &str) -> Result<i64> {
        self.or_default(name, to_int)
    }

    /// A fixed integer; `None` where it was not given.
    pub fn given_int(&self, name: &str) -> Result<Option<i64>> {
        self.given(name, to_int)
    }

    /// A fixed float; the table's default where it was not given.
    pub fn float(&self, name: &str) -> Result<f32> {
        self.or_default(name, to_float)
    }

    /// A fixed float; `None` where it was not given.
    pub fn given_float(&self, name: &str) -> Result<Option<f32>> {
        self.given(name, to_float)
    }

    /// A fixed truth value; the table's default where it was not given.
    pub fn bool(&self, name: &str) -> Result<bool> {
        self.or_default(name, to_bool)
    }

    /// A fixed truth value; `None` where it was not given.
    pub fn given_bool(&self, name: &str) -> Result<Option<bool>> {
        self.given(name, to_bool)
    }

    /// A fixed element type, given by its number; the table's default where it was not given.
    pub fn dtype(&self, name: &str) -> Result<DType> {
        self.or_default(name, to_dtype)
    }

    /// A fixed element type, given by its number; `None` where it was not given.
    pub fn given_dtype(&self, name: &str) -> Result<Option<DType>> {
        self.given(name, to_dtype)
    }

    /// A fixed element type, given as `name` or under the name `older`.
    pub fn dtype_or_older(&self, name: &str, older: &str) -> Result<DType> {
        self.dtype(if self.has(older) && !self.has(name) { older } else { name })
    }

    /// A fixed text; the table's default where it was not given.
    pub fn string(&self, name: &str) -> Result<&str> {
        match (self.given_string(name)?, self.table.find(name).map(|spec| spec.default)) {
            (Some(text), _) | (None, Some(DefaultValue::String(text))) => Ok(text),
            _ => Err(self.missing(name)),
        }
    }

    /// A fixed text; `None` where it was not given.
    pub fn given_string(&self, name: &str) -> Result<Option<&str>> {
        match self.values.get(name) {
            None => Ok(None),
            Some(Value::Strings(v)) if v.len() == 1 => Ok(Some(&v[0])),
            Some(other) => Err(unexpected(name, other, "a text")),
        }
    }

    /// An argument that may be fixed or a tensor, as numbers; the table's default where it was not given.
    ///
    /// # Errors
    /// When it holds no numbers.
    pub fn arg(&self, name: &'static str) -> Result<Arg> {
        match self.given_arg(name)? {
            Some(given) => Ok(given),
            None => Arg::of(name, &self.default_of(name)?),
        }
    }

    /// An argument that may be fixed or a tensor, as numbers; `None` where it was not given.
    pub fn given_arg(&self, name: &'static str) -> Result<Option<Arg>> {
        if let Some(&input) = self.tensors.get(name) {
            return Ok(Some(Arg { name, source: Given::Tensor(input) }));
        }
        self.values.get(name).map(|value| Arg::of(name, value)).transpose()
    }

    fn given<T>(&self, name: &str, to: impl Fn(&str, &Value) -> Result<T>) -> Result<Option<T>> {
        if self.tensors.contains_key(name) {
            return Err(Error::unsupported(format!("argument `{name}` is a tensor, expected a fixed value")));
        }
        self.values.get(name).map(|value| to(name, value)).transpose()
    }

    fn or_default<T>(&self, name: &str, to: impl Fn(&str, &Value) -> Result<T>) -> Result<T> {
        match self.given(name, &to)? {
            Some(given) => Ok(given),
            None => to(name, &self.default_of(name)?),
        }
    }

    fn default_of(&self, name: &str) -> Result<Value> {
        self.table.find(name).and_then(ArgSpec::default_value).ok_or_else(|| self.missing(name))
    }

    /// The error for an argument that was not given and has no default.
    fn missing(&self, name: &str) -> Error {
        match self.table.find(name).map(|spec| spec.default) {
            Some(DefaultValue::Required) => Error::invalid(format!("argument `{name}` is missing")),
            _ => Error::internal(format!("argument `{name}` has no default in its table")),
        }
    }
}

fn to_ints(name: &str, value: &Value) -> Result<Vec<i64>> {
    value.ints().ok_or_else(|| unexpected(name, value, "integers"))
}

fn to_floats(name: &str, value: &Value) -> Result<Vec<f32>> {
    value.floats().ok_or_else(|| unexpected(name, value, "floats"))
}

fn to_int(name: &str, value: &Value) -> Result<i64> {
    single(name, &to_ints(name, value)?)
}

fn to_float(name: &str, value: &Value) -> Result<f32> {
    single(name, &to_floats(name, value)?)
}

fn to_bool(name: &str, value: &Value) -> Result<bool> {
    Ok(to_int(name, value)? != 0)
}

fn to_dtype(name: &str, value: &Value) -> Result<DType> {
    let id = to_int(name, value)?;
    DType::in_file(id).ok_or_else(|| {
        Error::invalid(format!("argument `{name}` is {id}, expected a tensor type from 0 to 11"))
    })
}

fn unexpected(name: &str, value: &Value, expected: &str) -> Error {
    Error::invalid(format!("argument `{name}` is {value}, expected {expected}"))
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
    source: Given,
}

#[derive(Debug, Clone)]
enum Given {
    Fixed(Vec<f64>),
    Tensor(usize),
}

impl Arg {
    /// The argument `name` fixed to `values`.
    #[cfg(test)]
    pub(crate) fn fixed(name: &'static str, values: &[f64]) -> Self {
        Self { name, source: Given::Fixed(values.to_vec()) }
    }

    /// The argument `name` with a fixed value.
    fn of(name: &'static str, value: &Value) -> Result<Self> {
        // Integers stay exact up to 2^53, which is more than any shape or index needs.
        let numbers = match value {
            Value::Ints(v) => v.iter().map(|&i| i as f64).collect(),
            Value::Floats(v) => v.iter().map(|&f| f64::from(f)).collect(),
            Value::Bools(v) => v.iter().map(|&b| f64::from(u8::from(b))).collect(),
            Value::Strings(_) => return Err(unexpected(name, value, "numbers")),
        };
        Ok(Self { name, source: Given::Fixed(numbers) })
    }

    /// The values when they do not depend on the sample: for type inference at load.
    pub fn known(&self) -> Option<&[f64]> {
        match &self.source {
            Given::Fixed(values) => Some(values),
            Given::Tensor(_) => None,
        }
    }

    /// The values of one sample, whatever the tensor's type; a scalar is a list of one.
    pub fn numbers(&self, sample: &SampleInputs<'_>) -> Result<Vec<f64>> {
        match &self.source {
            Given::Fixed(values) => Ok(values.clone()),
            Given::Tensor(input) => numbers(&sample.argument(*input)?),
        }
    }

    /// The tensor of one sample, with its shape, when a tensor feeds the argument.
    pub fn tensor<'a>(&self, sample: &SampleInputs<'a>) -> Result<Option<View<'a>>> {
        match &self.source {
            Given::Fixed(_) => Ok(None),
            Given::Tensor(input) => sample.argument(*input).map(Some),
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
            Given::Fixed(values) => Ok(values.iter().map(|&v| of(v)).collect()),
            Given::Tensor(_) => Ok(self.numbers(sample)?.into_iter().map(of).collect()),
        }
    }

    fn one(&self, sample: &SampleInputs<'_>) -> Result<f64> {
        match &self.source {
            Given::Fixed(values) => single(self.name, values),
            Given::Tensor(_) => single(self.name, &self.numbers(sample)?),
        }
    }
}

/// The elements of a small tensor as numbers.
pub fn numbers(view: &View<'_>) -> Result<Vec<f64>> {
    dispatch!(view.dtype, T => Ok(view.as_slice::<T>()?.iter().map(|&v| v.convert_sat()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(name: &str, value: Value) -> Args {
        Args::new(BTreeMap::from([(name.to_owned(), value)]), BTreeMap::new())
    }

    #[test]
    fn numbers_are_coerced_where_nothing_is_lost() {
        assert_eq!(args("a", Value::Ints(vec![3])).given_float("a").unwrap(), Some(3.0));
        assert_eq!(args("a", Value::Floats(vec![3.0])).given_int("a").unwrap(), Some(3));
        assert_eq!(args("a", Value::Ints(vec![1])).given_bool("a").unwrap(), Some(true));
        assert!(args("a", Value::Floats(vec![3.5])).given_int("a").is_err());
        assert!(args("a", Value::Strings(vec!["x".into()])).given_float("a").is_err());
        assert!(args("a", Value::Ints(vec![1, 2])).given_int("a").is_err());
        assert_eq!(args("a", Value::Ints(vec![1])).given_int("b").unwrap(), None);
    }

    #[test]
    fn what_is_not_given_is_the_default_of_the_table() {
        const TABLE: &[ArgSpec] = &[
            ArgSpec::int("count", "how many").or_int(3),
            ArgSpec::string("mode", "which way").or_string("round"),
            ArgSpec::float("angle", "degrees").required(),
            ArgSpec::float("scale", "factor").or_computed("from `angle`"),
        ];
        let table = ArgTable { own: TABLE, shared: &[] };
        let none = Args::default().with_defaults(table);
        assert_eq!((none.int("count").unwrap(), none.string("mode").unwrap()), (3, "round"));
        assert_eq!(none.arg("count").unwrap().known(), Some(&[3.0][..]));
        assert_eq!(none.given_int("count").unwrap(), None);
        assert!(!none.has("count"));
        assert_eq!(none.float("angle").unwrap_err().to_string(), "argument `angle` is missing");
        for name in ["scale", "other"] {
            assert!(none.float(name).unwrap_err().to_string().contains("no default"), "{name}");
        }
        let given = args("count", Value::Ints(vec![5])).with_defaults(table);
        assert_eq!((given.int("count").unwrap(), given.given_int("count").unwrap()), (5, Some(5)));
    }
}
