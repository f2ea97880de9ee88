//! The value of an argument as somebody wrote it in JSON, before its type is known. It must not know which argument it
//! is.

use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::{ArgumentType, Value};
use super::NOT_FINITE;
use crate::error::{Error, Result};
use crate::limits;

/// The value of an argument: one, or a list.
pub(super) struct WrittenValue {
    elements: Vec<Element>,
    pub(super) list: bool,
}

enum Element {
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
}

impl Element {
    fn told(&self) -> String {
        match self {
            Element::Int(value) => value.to_string(),
            Element::Float(value) => value.to_string(),
            Element::Bool(value) => value.to_string(),
            Element::Text(value) => {
                format!("the text `{}`", value.chars().take(32).collect::<String>().escape_debug())
            }
        }
    }
}

impl WrittenValue {
    /// `true`.
    pub(super) fn yes() -> Self {
        Self { elements: vec![Element::Bool(true)], list: false }
    }

    /// The type that the elements have by themselves.
    pub(super) fn kind(&self) -> Result<ArgumentType> {
        let of = |element: &Element| match element {
            Element::Int(_) => ArgumentType::Int64,
            Element::Float(_) => ArgumentType::Float,
            Element::Bool(_) => ArgumentType::Bool,
            Element::Text(_) => ArgumentType::String,
        };
        let first =
            self.elements.first().map(of).ok_or_else(|| {
                Error::invalid("an empty list, whose type is not known: state it in `stored`")
            })?;
        let is_number = |kind| matches!(kind, ArgumentType::Int64 | ArgumentType::Float);
        let mut kind = first;
        for other in self.elements.iter().map(of) {
            if other != kind {
                if !is_number(kind) || !is_number(other) {
                    return Err(Error::invalid("elements of several types, expected a list of one"));
                }
                kind = ArgumentType::Float;
            }
        }
        Ok(kind)
    }

    /// The elements as this type.
    pub(super) fn into_kind(self, kind: ArgumentType) -> Result<Value> {
        fn all<T>(elements: &[Element], what: &str, one: impl Fn(&Element) -> Option<T>) -> Result<Vec<T>> {
            let wrong = |element: &Element| Error::invalid(format!("{}, expected {what}", element.told()));
            elements.iter().map(|element| one(element).ok_or_else(|| wrong(element))).collect()
        }
        let elements = &self.elements;
        Ok(match kind {
            ArgumentType::Int64 => Value::Ints(all(elements, "an integer", |element| match *element {
                Element::Int(value) => Some(value),
                Element::Bool(value) => Some(value.into()),
                _ => None,
            })?),
            ArgumentType::Float => Value::Floats(all(elements, "a number", |element| match element {
                Element::Int(value) => Some(*value as f32),
                Element::Float(value) => Some(*value as f32),
                Element::Text(name) => {
                    NOT_FINITE.iter().find(|(known, _)| known == name).map(|&(_, value)| value)
                }
                Element::Bool(_) => None,
            })?),
            ArgumentType::Bool => Value::Bools(all(elements, "true or false", |element| match *element {
                Element::Bool(value) => Some(value),
                Element::Int(value @ 0..=1) => Some(value == 1),
                _ => None,
            })?),
            ArgumentType::String | ArgumentType::Feature => {
                let text = |element: &Element| match element {
                    Element::Text(text) => Some(text.clone()),
                    _ => None,
                };
                Value::Strings(all(elements, "a text", text)?)
            }
        })
    }
}

impl<'de> Deserialize<'de> for WrittenValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl ValueVisitor {
    fn one<E>(element: Element) -> Result<WrittenValue, E> {
        Ok(WrittenValue { elements: vec![element], list: false })
    }
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = WrittenValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, a text, true, false, or a list of one of these")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<WrittenValue, E> {
        Self::one(Element::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<WrittenValue, E> {
        Self::one(Element::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<WrittenValue, E> {
        let value =
            i64::try_from(value).map_err(|_| E::custom(format!("{value} is beyond 64 bits with a sign")))?;
        Self::one(Element::Int(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<WrittenValue, E> {
        Self::one(Element::Float(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<WrittenValue, E> {
        Self::one(Element::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WrittenValue, A::Error> {
        let mut elements = Vec::new();
        while let Some(WrittenValue { elements: mut one, list }) = list.next_element()? {
            if list {
                return Err(de::Error::custom("a list in a list, which a file cannot hold"));
            }
            if elements.len() == limits::MAX_LIST_ARGUMENT {
                return Err(de::Error::custom(format!("more than {} elements", limits::MAX_LIST_ARGUMENT)));
            }
            elements.append(&mut one);
        }
        Ok(WrittenValue { elements, list: true })
    }
}
