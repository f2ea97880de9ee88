//! Fields of a JSON object, read with as much tolerance as protobuf's JSON has: absent and `null` are the same,
//! integers may be strings. It knows no field by name; every error names the field and what was found.

use serde_json::{Map, Value};

use gesso::error::{Error, Result};

/// What a value is, for errors.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a bool",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn present<'v>(fields: &'v Map<String, Value>, key: &str) -> Option<&'v Value> {
    fields.get(key).filter(|value| !value.is_null())
}

fn unexpected(key: &str, found: &Value, expected: &str) -> Error {
    let found = match found {
        Value::Number(number) => format!("`{number}`"),
        Value::String(text) => format!("`{}`", text.escape_debug()),
        other => kind(other).to_owned(),
    };
    Error::invalid(format!("`{key}` is {found}, expected {expected}"))
}

/// The integer that `value` is, or that it spells.
pub(super) fn as_int(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

/// An integer field.
pub(super) fn int(fields: &Map<String, Value>, key: &str) -> Result<Option<i64>> {
    present(fields, key)
        .map(|value| as_int(value).ok_or_else(|| unexpected(key, value, "an integer")))
        .transpose()
}

/// A field that is true or false; absent is false.
pub(super) fn flag(fields: &Map<String, Value>, key: &str) -> Result<bool> {
    present(fields, key)
        .map_or(Ok(false), |value| value.as_bool().ok_or_else(|| unexpected(key, value, "`true` or `false`")))
}

/// A field with text.
pub(super) fn text<'v>(fields: &'v Map<String, Value>, key: &str) -> Result<Option<&'v str>> {
    present(fields, key)
        .map(|value| value.as_str().ok_or_else(|| unexpected(key, value, "a string")))
        .transpose()
}

/// A field with a list; absent is empty.
pub(super) fn list<'v>(fields: &'v Map<String, Value>, key: &str) -> Result<&'v [Value]> {
    match present(fields, key) {
        None => Ok(&[]),
        Some(Value::Array(list)) => Ok(list),
        Some(other) => Err(unexpected(key, other, "a list")),
    }
}

/// A field with a list of integers; absent is empty.
pub(super) fn ints(fields: &Map<String, Value>, key: &str) -> Result<Vec<i64>> {
    list(fields, key)?
        .iter()
        .map(|value| as_int(value).ok_or_else(|| unexpected(key, value, "integers")))
        .collect()
}

/// A field with an object.
pub(super) fn object<'v>(
    fields: &'v Map<String, Value>,
    key: &str,
) -> Result<Option<&'v Map<String, Value>>> {
    present(fields, key)
        .map(|value| value.as_object().ok_or_else(|| unexpected(key, value, "an object")))
        .transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fields(value: &Value) -> &Map<String, Value> {
        value.as_object().unwrap()
    }

    #[test]
    fn integers_may_be_strings() {
        let value = json!({"a": 8, "b": "-3", "c": null, "d": 1.5, "e": "x", "f": u64::MAX, "g": ["1", 2]});
        let fields = fields(&value);
        assert_eq!(int(fields, "a").unwrap(), Some(8));
        assert_eq!(int(fields, "b").unwrap(), Some(-3));
        assert_eq!(int(fields, "c").unwrap(), None);
        assert_eq!(int(fields, "none").unwrap(), None);
        assert_eq!(int(fields, "d").unwrap_err().to_string(), "`d` is `1.5`, expected an integer");
        assert_eq!(int(fields, "e").unwrap_err().to_string(), "`e` is `x`, expected an integer");
        assert!(int(fields, "f").unwrap_err().to_string().contains("18446744073709551615"));
        assert_eq!(ints(fields, "g").unwrap(), [1, 2]);
    }

    #[test]
    fn a_wrong_kind_is_named() {
        let value = json!({"a": [], "b": {}, "c": true});
        let fields = fields(&value);
        assert_eq!(flag(fields, "a").unwrap_err().to_string(), "`a` is a list, expected `true` or `false`");
        assert_eq!(text(fields, "b").unwrap_err().to_string(), "`b` is an object, expected a string");
        assert_eq!(list(fields, "c").unwrap_err().to_string(), "`c` is a bool, expected a list");
        assert_eq!(object(fields, "c").unwrap_err().to_string(), "`c` is a bool, expected an object");
    }
}
