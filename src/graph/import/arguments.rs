//! An operator's arguments from the file's form into ours. It must not know which operator they belong to.

use std::collections::BTreeMap;

use super::super::proto::Argument;
use crate::error::{Context, Error, Result};
use crate::limits;
use crate::operator::args::Value as ArgValue;
use crate::operator::{EVERYWHERE, SEED};

/// Prefix of the arguments that hold the Python stack of the author's machine.
const ORIGIN_PREFIX: &str = "_origin_stack";

/// The type of the features of a `TFRecord` reader.
pub(super) const FEATURE: &str = "TFRecord";

/// Whether an argument does not change what an operator computes. A seed does, where an operator takes one.
pub(super) fn is_bookkeeping(keyword: &str) -> bool {
    EVERYWHERE.iter().any(|arg| arg.name == keyword && keyword != SEED) || keyword.starts_with(ORIGIN_PREFIX)
}

/// The arguments of an operator by name.
pub(super) fn arguments(args: &[Argument]) -> Result<BTreeMap<String, ArgValue>> {
    let mut values = BTreeMap::new();
    for arg in args {
        let name = arg.name.as_deref().unwrap_or_default();
        if name.starts_with(ORIGIN_PREFIX) {
            continue;
        }
        let value = match features(arg) {
            Some(texts) => ArgValue::Strings(texts),
            None => argument(arg).context(|| format!("argument `{name}`"))?,
        };
        if values.insert(name.to_owned(), value).is_some() {
            return Err(Error::invalid(format!("argument `{name}` is given twice")));
        }
    }
    Ok(values)
}

/// The features of a `TFRecord` reader, which are arguments inside of arguments: each as an object of JSON, with a list
/// for each part.
pub(super) fn features(arg: &Argument) -> Option<Vec<String>> {
    let is_one = |element: &Argument| element.r#type.as_deref() == Some(FEATURE);
    let elements = arg.is_vector.unwrap_or(false).then_some(&arg.extra_args)?;
    if elements.is_empty() || elements.len() > limits::MAX_EDGES_PER_OPERATOR || !elements.iter().all(is_one)
    {
        return None;
    }
    let part = |part: &Argument| {
        // What JSON has no number for is a text.
        let floats = part.floats.iter().map(|&number| match number.is_finite() {
            true => serde_json::json!(number),
            false => serde_json::json!(number.to_string()),
        });
        let values = [
            part.ints.iter().map(|&value| value.into()).collect::<Vec<serde_json::Value>>(),
            part.bools.iter().map(|&value| value.into()).collect(),
            part.strings.iter().map(|value| value.as_str().into()).collect(),
            floats.collect(),
        ];
        (part.name.clone().unwrap_or_default(), serde_json::Value::from(values.concat()))
    };
    let text = |element: &Argument| {
        serde_json::Value::Object(element.extra_args.iter().map(part).collect()).to_string()
    };
    Some(elements.iter().map(text).collect())
}

/// One argument: a value or a list of one type.
pub(super) fn argument(arg: &Argument) -> Result<ArgValue> {
    let is_list = arg.is_vector.unwrap_or(false);
    let elements = if is_list { arg.extra_args.as_slice() } else { std::slice::from_ref(arg) };
    if elements.len() > limits::MAX_LIST_ARGUMENT {
        return Err(Error::invalid(format!(
            "{} elements, more than the limit of {}",
            elements.len(),
            limits::MAX_LIST_ARGUMENT
        )));
    }
    if let Some(inner) = elements.iter().find(|e| is_list && e.is_vector.unwrap_or(false)) {
        return Err(Error::invalid(format!(
            "element `{}` is itself a list",
            inner.name.as_deref().unwrap_or_default()
        )));
    }
    fn collect<T: Clone>(elements: &[Argument], payload: impl Fn(&Argument) -> &[T]) -> Result<Vec<T>> {
        elements
            .iter()
            .map(|element| match payload(element) {
                [value] => Ok(value.clone()),
                other => Err(Error::invalid(format!("{} values of its type, expected 1", other.len()))),
            })
            .collect()
    }
    match arg.r#type.as_deref().unwrap_or_default() {
        "int64" => collect(elements, |a| &a.ints).map(ArgValue::Ints),
        "float" => collect(elements, |a| &a.floats).map(ArgValue::Floats),
        "bool" => collect(elements, |a| &a.bools).map(ArgValue::Bools),
        "string" => collect(elements, |a| &a.strings).map(ArgValue::Strings),
        other => Err(Error::unsupported(format!(
            "type is `{other}`, expected `int64`, `float`, `bool` or `string`"
        ))),
    }
}
