//! `config.pbtxt` as the server reads it: protobuf's text format, with the line of every field, and the JSON that the
//! server makes of it. [`fields`] knows which fields a model configuration has and which of them repeat, and nothing
//! what they mean; `print` writes that JSON as text again.

mod fields;
mod print;

use serde_json::{Map, Number, Value, json};

use gesso::error::{Error, Result};
use gesso::limits;

pub use print::print;

/// A field with its line, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Where it stands.
    pub line: usize,
    /// What it holds.
    pub value: Content,
}

/// What a field holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A quoted text.
    Text(String),
    /// A number, `true`, `false` or a name.
    Word(String),
    /// Fields.
    Message(Vec<Field>),
}

/// Reads the text of a `config.pbtxt`.
///
/// # Errors
/// Invalid, with the line, for what is no text format or no field of a model configuration.
pub fn parse(text: &str) -> Result<Vec<Field>> {
    if text.len() as u64 > limits::MAX_CONFIG_BYTES {
        return Err(Error::invalid(format!(
            "config.pbtxt has {} bytes, more than the limit of {}",
            text.len(),
            limits::MAX_CONFIG_BYTES
        )));
    }
    let mut parser = Parser { rest: text, line: 1, depth: 0 };
    let fields = parser.fields(None)?;
    fields::check_all(&fields)?;
    Ok(fields)
}

fn at(line: usize, what: String) -> Error {
    Error::invalid(what).context(format!("config.pbtxt, line {line}"))
}

/// The fields as the JSON of a model configuration.
pub fn to_json(fields: &[Field]) -> Map<String, Value> {
    let mut object = Map::new();
    for field in fields {
        let name = field.name.as_str();
        let value = match &field.value {
            Content::Text(text) => Value::String(text.clone()),
            Content::Word(word) => scalar(word),
            Content::Message(inner) => Value::Object(to_json(inner)),
        };
        if fields::is_map(name) {
            let entry = object.entry(name).or_insert_with(|| json!({}));
            let key = value.get("key").map(|key| key.as_str().map_or_else(|| key.to_string(), str::to_owned));
            if let Value::Object(map) = entry {
                // An entry without a value has an empty one.
                let inner = value.get("value").cloned().unwrap_or_else(|| json!(""));
                map.insert(key.unwrap_or_default(), inner);
            }
        } else if fields::repeats(name) {
            if let Value::Array(list) = object.entry(name).or_insert_with(|| json!([])) {
                list.push(value);
            }
        } else {
            object.insert(name.to_owned(), value);
        }
    }
    object
}

fn scalar(word: &str) -> Value {
    match word {
        "true" | "True" | "t" => return Value::Bool(true),
        "false" | "False" | "f" => return Value::Bool(false),
        _ => {}
    }
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |digits| (-1, digits));
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let octal = digits.strip_prefix('0').filter(|rest| !rest.is_empty());
    let integer = match (hexadecimal, octal) {
        (Some(digits), _) => i64::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) => i64::from_str_radix(digits, 8).ok(),
        (None, None) => {
            digits.parse::<i64>().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit()))
        }
    };
    let float =
        || word.parse::<f64>().ok().filter(|_| digits.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
    let large = || word.parse::<u64>().ok().filter(|_| octal.is_none()).map(Number::from);
    integer
        .map(|integer| Value::Number(Number::from(sign * integer)))
        .or_else(|| large().map(Value::Number))
        .or_else(|| float().and_then(Number::from_f64).map(Value::Number))
        .unwrap_or_else(|| Value::String(word.to_owned()))
}

struct Parser<'t> {
    rest: &'t str,
    line: usize,
    depth: usize,
}

impl Parser<'_> {
    /// Fields up to `end`, or to the end of the text.
    fn fields(&mut self, end: Option<char>) -> Result<Vec<Field>> {
        self.depth += 1;
        if self.depth > limits::MAX_CONFIG_DEPTH {
            return Err(at(
                self.line,
                format!("fields within fields, more than {} deep", limits::MAX_CONFIG_DEPTH),
            ));
        }
        let mut fields = Vec::new();
        loop {
            match self.peek() {
                None if end.is_none() => break,
                None => {
                    return Err(at(
                        self.line,
                        format!("the text ends, expected `{}`", end.unwrap_or_default()),
                    ));
                }
                found if found == end => {
                    self.take();
                    break;
                }
                Some(',' | ';') => self.take(),
                Some(_) => self.field(&mut fields)?,
            }
        }
        self.depth -= 1;
        Ok(fields)
    }

    fn field(&mut self, fields: &mut Vec<Field>) -> Result<()> {
        self.peek();
        let (line, name) = (self.line, self.word());
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit() || "-.+".contains(c)) {
            let found = self.rest.chars().next().map_or(name.clone(), |c| format!("{name}{c}"));
            return Err(at(line, format!("expected the name of a field, found `{}`", found.escape_debug())));
        }
        let colon = self.peek() == Some(':');
        if colon {
            self.take();
        }
        let mut add = |line, value| fields.push(Field { name: name.clone(), line, value });
        if self.peek() != Some('[') {
            add(line, self.value(&name, colon)?);
            return Ok(());
        }
        self.take();
        loop {
            match self.peek() {
                Some(']') => break,
                Some(',') => self.take(),
                _ => add(self.line, self.value(&name, true)?),
            }
        }
        self.take();
        Ok(())
    }

    fn value(&mut self, name: &str, scalar: bool) -> Result<Content> {
        let found = self.peek();
        match found {
            Some('{') => {
                self.take();
                Ok(Content::Message(self.fields(Some('}'))?))
            }
            Some('<') => {
                self.take();
                Ok(Content::Message(self.fields(Some('>'))?))
            }
            Some('"' | '\'') if scalar => self.text().map(Content::Text),
            _ => {
                let word = if scalar { self.word() } else { String::new() };
                // A sign may stand apart from its number.
                let word = if word == "-" && self.peek().is_some() { word + &self.word() } else { word };
                if !word.is_empty() && word != "-" {
                    return Ok(Content::Word(word));
                }
                let expected = if scalar { "a value" } else { "`:` or `{`" };
                let shown =
                    |c: char| if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
                let found = found.map_or("the end".to_owned(), |c| format!("`{}`", shown(c)));
                Err(at(
                    self.line,
                    format!("expected {expected} for `{}`, found {found}", name.escape_debug()),
                ))
            }
        }
    }

    /// The next character that is neither blank nor in a comment.
    fn peek(&mut self) -> Option<char> {
        loop {
            match self.rest.chars().next()? {
                '#' => {
                    let end = self.rest.find('\n').unwrap_or(self.rest.len());
                    self.rest = self.rest.get(end..).unwrap_or_default();
                }
                c if c.is_whitespace() => self.take(),
                c => return Some(c),
            }
        }
    }

    fn take(&mut self) {
        let mut characters = self.rest.chars();
        self.line += usize::from(characters.next() == Some('\n'));
        self.rest = characters.as_str();
    }

    fn word(&mut self) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    /// Quoted pieces, which belong together when only blanks are between them.
    fn text(&mut self) -> Result<String> {
        let mut bytes = Vec::new();
        let line = self.line;
        while let Some(quote @ ('"' | '\'')) = self.peek() {
            self.take();
            loop {
                match self.rest.chars().next() {
                    Some(c) if c == quote => break,
                    Some('\\') => {
                        self.take();
                        self.escaped(&mut bytes);
                    }
                    None | Some('\n') => {
                        return Err(at(line, format!("a text begins that has no closing `{quote}`")));
                    }
                    Some(c) => {
                        bytes.extend(c.encode_utf8(&mut [0; 4]).as_bytes());
                        self.take();
                    }
                }
            }
            self.take();
        }
        String::from_utf8(bytes).map_err(|_| at(line, "a text is not UTF-8".to_owned()))
    }

    fn escaped(&mut self, bytes: &mut Vec<u8>) {
        let mut digits = |parser: &mut Self, radix: u32, most: usize| {
            let count = parser.rest.chars().take(most).take_while(|c| c.is_digit(radix)).count();
            let (digits, rest) = parser.rest.split_at(count);
            parser.rest = rest;
            bytes.push(u32::from_str_radix(digits, radix).unwrap_or_default() as u8);
        };
        match self.rest.chars().next() {
            Some('0'..='7') => digits(self, 8, 3),
            Some('x' | 'X') => {
                self.take();
                digits(self, 16, 2);
            }
            Some(c) => {
                let meant = match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                };
                bytes.extend(meant.encode_utf8(&mut [0; 4]).as_bytes());
                self.take();
            }
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Value> {
        parse(text).map(|fields| Value::Object(to_json(&fields)))
    }

    #[test]
    fn a_configuration_is_the_servers_json() {
        let text = r#"
            # a comment
            name: "m" backend: 'ge' "sso"
            max_batch_size: 0x10;
            input [ { name: "A", data_type: TYPE_UINT8, dims: [ -1, 2 ] }, { name: "B" dims: 3 dims: - 1 } ]
            output < name: "O\n\x41\101" optional_ : 1 >
        "#;
        let error = read(text).unwrap_err().to_string();
        assert_eq!(error, "config.pbtxt, line 6: `optional_` is no field of an output");
        let found = read(&text.replace("optional_ : 1", "reshape { shape: [] }")).unwrap();
        assert_eq!(
            found,
            json!({
                "name": "m", "backend": "gesso", "max_batch_size": 16,
                "input": [
                    { "name": "A", "data_type": "TYPE_UINT8", "dims": [-1, 2] }, { "name": "B", "dims": [3, -1] },
                ],
                "output": [{ "name": "O\nAA", "reshape": {} }],
            })
        );
        let text = "parameters { key: \"a\" value { string_value: \"1\" } } parameters: { key: 'b' value: { } }
            instance_group [ { kind: KIND_CPU count: 2 } ] dynamic_batching { } model_transaction_policy { decoupled: true }";
        assert_eq!(
            read(text).unwrap(),
            json!({
                "parameters": { "a": { "string_value": "1" }, "b": {} }, "dynamic_batching": {},
                "instance_group": [{ "kind": "KIND_CPU", "count": 2 }],
                "model_transaction_policy": { "decoupled": true },
            })
        );
        assert_eq!(scalar("-1.5"), json!(-1.5));
        assert_eq!(scalar("017"), json!(15));
        assert_eq!(scalar("inf"), json!("inf"));
        assert_eq!(read(r#"name: "a\tb\rc\qd""#).unwrap(), json!({ "name": "a\tb\rcqd" }));
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        for (text, expected) in [
            (
                "name: \"m\"\nmax_batch_sise: 8",
                "line 2: `max_batch_sise` is no field of a model configuration; did you mean `max_batch_size`?",
            ),
            ("max_batch_size: 1\n\nmax_batch_size: 2", "line 3: `max_batch_size` is given twice"),
            ("input {\n name: \"A\"\n", "line 3: the text ends, expected `}`"),
            ("name: \"m\n\"", "line 1: a text begins that has no closing `\"`"),
            ("name \"m\"", "line 1: expected `:` or `{` for `name`, found `\"`"),
            ("name:\n}", "line 2: expected a value for `name`, found `}`"),
            ("\n}", "line 2: expected the name of a field, found `}`"),
            ("input [ { name: \"A\" }", "line 1: expected a value for `input`, found the end"),
            ("max_batch_size: -", "line 1: expected a value for `max_batch_size`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let long = " ".repeat(limits::MAX_CONFIG_BYTES as usize + 1);
        assert!(read(&long).unwrap_err().to_string().contains("more than the limit"));
        let deep = "input {".repeat(10_000);
        assert!(read(&deep).unwrap_err().to_string().contains("deep"));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_an_error(text in "[\\[\\]{}<>:,;#\"'a-c0-9\\\\ \n-]{0,60}") {
            let _ = read(&text);
        }

        #[test]
        fn any_characters_are_read_or_an_error(text in "\\PC{0,60}") {
            let _ = read(&text);
        }
    }
}
