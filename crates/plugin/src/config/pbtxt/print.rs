//! The JSON of a model configuration as text that the server reads. It must not know what fields mean.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::fields;

/// A configuration as JSON in the text format of `config.pbtxt`; fields that hold nothing are left out.
pub fn print(config: &Map<String, Value>) -> String {
    let mut text = String::new();
    for (name, value) in config {
        field(&mut text, name, value, "");
    }
    text
}

/// One field, with what it holds.
fn field(text: &mut String, name: &str, value: &Value, blank: &str) {
    match value {
        Value::Object(map) if fields::is_map(name) => {
            for (key, value) in map {
                let entry = [("key".to_owned(), key_of(name, key)), ("value".to_owned(), value.clone())];
                message(text, name, &Map::from_iter(entry), blank);
            }
        }
        Value::Object(inner) => message(text, name, inner, blank),
        Value::Array(list) if list.iter().any(Value::is_object) => {
            list.iter().filter_map(Value::as_object).for_each(|inner| message(text, name, inner, blank));
        }
        // A shape without dimensions is one, too.
        Value::Array(list) if list.is_empty() && name != "shape" => {}
        Value::Array(list) => {
            let values: Vec<String> = list.iter().map(|value| literal(name, value)).collect();
            line(text, format_args!("{blank}{name}: [ {} ]", values.join(", ")));
        }
        Value::Null => {}
        Value::String(empty) if empty.is_empty() => {}
        scalar => line(text, format_args!("{blank}{name}: {}", literal(name, scalar))),
    }
}

fn message(text: &mut String, name: &str, inner: &Map<String, Value>, blank: &str) {
    if inner.is_empty() {
        return line(text, format_args!("{blank}{name} {{ }}"));
    }
    line(text, format_args!("{blank}{name} {{"));
    let deeper = format!("{blank}  ");
    for (name, value) in inner {
        field(text, name, value, &deeper);
    }
    line(text, format_args!("{blank}}}"));
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

/// A key of the map `name`, which JSON has as text.
fn key_of(name: &str, key: &str) -> Value {
    let number = key.parse::<u64>().ok().filter(|_| fields::has_numbers_as_keys(name));
    number.map_or_else(|| json!(key), |number| json!(number))
}

/// A scalar; names of enumerations stand without quotes.
fn literal(field: &str, value: &Value) -> String {
    match value {
        Value::String(text) if fields::is_bare(field) && is_word(text) => text.clone(),
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-".contains(c))
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(quoted, "\\{c}"),
            '\n' => write!(quoted, "\\n"),
            '\r' => write!(quoted, "\\r"),
            '\t' => write!(quoted, "\\t"),
            // Also what a terminal does not show. Byte by byte, as the text format has it; three digits, as others may
            // follow.
            c if c.is_control() || (!c.is_ascii() && c.escape_debug().len() > 1) => {
                c.encode_utf8(&mut [0; 4]).bytes().try_for_each(|byte| write!(quoted, "\\{byte:03o}"))
            }
            c => write!(quoted, "{c}"),
        };
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{parse, to_json};
    use super::*;

    fn read(text: &str) -> Map<String, Value> {
        to_json(&parse(text).unwrap_or_else(|error| panic!("{error} in\n{text}")))
    }

    #[test]
    fn every_map_is_printed_as_entries() {
        let text = r#"name: "m"
            input [ { name: "A" data_type: TYPE_BF16 dims: [ 2 ] reshape { shape: [ ] } }, { name: "B" format: FORMAT_NHWC } ]
            parameters { key: "num_threads" value { string_value: "many" } } parameters { key: "empty" }
            metric_tags { key: "team" value: "a \"b\"" } metric_tags { key: "without" }
            cc_model_filenames { key: "7.5" value: "x" }
            model_warmup {
              name: "w" batch_size: 1
              inputs { key: "A" value { data_type: TYPE_FP32 dims: [ 2 ] zero_data: True } }
              inputs { key: "B" value { data_type: TYPE_STRING dims: 1 input_data_file: "b" } }
            }
            ensemble_scheduling { step {
              model_name: "a" input_map { key: "I" value: "x" } output_map { key: "O" value: "y" } output_map { key: "P" value: "z" }
            } step { model_name: "b" } }
            dynamic_batching {
              priority_levels: 2 default_queue_policy { timeout_action: DELAY }
              priority_queue_policy { key: 1 value { max_queue_size: 4 timeout_action: REJECT } }
            }
            sequence_batching { minimum_: 1 direct { minimum_slot_utilization: inf }
              control_input { name: "C" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 0.5 ] } } }
            optimization { priority: PRIORITY_MAX cuda { graph_spec { input { key: "A" value { dim: [ 1, 2 ] } } } } }
            instance_group { kind: KIND_GPU rate_limiter { resources [ { name: "r" count: 1 }, { name: "s" } ] priority: 3 } }
            model_repository_agents { agents { name: "g" parameters { key: "k" value: "v" } } }
            model_metrics { metric_control { histogram_options { buckets: [ 0.5, 18446744073709551615 ] } } }
            "#
        .replace("minimum_: 1 ", "");
        let json = read(&text);
        let printed = print(&json);
        assert_eq!(read(&printed), json, "{printed}");
        for expected in [
            "  inputs {\n    key: \"B\"\n    value {\n",
            "    output_map {\n      key: \"P\"\n      value: \"z\"\n    }\n",
            "metric_tags {\n  key: \"team\"\n  value: \"a \\\"b\\\"\"\n}\n",
            "metric_tags {\n  key: \"without\"\n}\n",
            "    key: 1\n",
            "timeout_action: DELAY\n",
            "minimum_slot_utilization: inf\n",
            "fp32_false_true: [ 0, 0.5 ]\n",
            "data_type: TYPE_BF16\n",
            "  reshape { }\n",
            "buckets: [ 0.5, 18446744073709551615 ]\n",
            "zero_data: true\n",
        ] {
            assert!(printed.contains(expected), "{expected} is not in\n{printed}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_it_was(name in any::<String>(), key in any::<String>(), value in any::<String>()) {
            let json = json!({ "backend": format!("a{name}"), "metric_tags": { key: format!("b{value}") } });
            let Value::Object(json) = json else { unreachable!() };
            prop_assert_eq!(read(&print(&json)), json);
        }
    }
}
