//! The value of an argument as a file gives it, and as messages show it.

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
    /// The value as integers, where nothing is lost.
    pub(super) fn ints(&self) -> Option<Vec<i64>> {
        match self {
            Value::Ints(v) => Some(v.clone()),
            Value::Bools(v) => Some(v.iter().map(|&b| i64::from(b)).collect()),
            Value::Floats(v) => {
                v.iter().map(|&f| (f == f.trunc() && f.abs() < 9e18).then_some(f as i64)).collect()
            }
            Value::Strings(_) => None,
        }
    }

    /// The value as floats.
    pub(super) fn floats(&self) -> Option<Vec<f32>> {
        match self {
            Value::Floats(v) => Some(v.clone()),
            Value::Ints(v) => Some(v.iter().map(|&i| i as f32).collect()),
            Value::Bools(v) => Some(v.iter().map(|&b| f32::from(u8::from(b))).collect()),
            Value::Strings(_) => None,
        }
    }
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
