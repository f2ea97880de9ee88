//! The table of operators as JSON, for programs that make pipelines: what they are called, what goes in and out, which
//! arguments they take. How pipelines are made, it must not know.

use serde::{Serialize, Serializer};

use super::{OPS, custom};
use crate::operator::{ArgKind, ArgSpec, Args, DefaultValue, OpDef};
use crate::tensor::Device;

/// All operators, those of libraries too, as a JSON list sorted by name. An entry has:
///
/// ```text
/// name        as in a file, without the underscore that some have since DALI 2.0
/// spellings   that name and all others, each with the names of DALI's Python: `schema`, `fn`, `ops`
/// hidden      whether DALI's Python calls it for its users: arithmetic, subscripts, conditionals
/// doc         one sentence
/// devices     `cpu`, `gpu`, or `mixed`: reads on the host, writes to the device
/// inputs      fewest and most regular inputs
/// outputs     how many, null where that depends on arguments
/// random      whether it takes a seed
/// sequences   whether samples may be sequences
/// kernels     sources in `kernels/` that it launches
/// arguments   sorted by name: `name`, `kind` (ArgKind), `default` (null without one; enumerations are DALI's numbers),
///             `computed` (in words what stands in its place, or null), `required`, `tensor` (may differ by sample),
///             `per_frame`, `read` (false: has no effect), `deprecated`, `doc`
/// ```
pub fn json() -> String {
    let all = all();
    let operators: Vec<Operator<'_>> = all.into_iter().map(Operator::new).collect();
    written(&operators)
}

/// The entry of one operator in [`json`].
pub fn json_of(op: &OpDef) -> String {
    written(&Operator::new(op))
}

/// All operators, those of libraries too, sorted by name.
pub fn all() -> Vec<&'static OpDef> {
    let mut all: Vec<&OpDef> = OPS.iter().copied().chain(custom::all()).collect();
    all.sort_by_key(|op| op.name);
    all
}

fn written(value: &impl Serialize) -> String {
    // Texts, numbers and lists always have a form in JSON.
    serde_json::to_string_pretty(value).unwrap_or_default()
}

#[derive(Serialize)]
struct Operator<'a> {
    name: &'a str,
    spellings: Vec<Spelling>,
    hidden: bool,
    doc: &'a str,
    devices: Vec<&'static str>,
    inputs: (usize, usize),
    outputs: Option<usize>,
    random: bool,
    sequences: bool,
    kernels: Vec<String>,
    arguments: Vec<Argument<'a>>,
}

#[derive(Serialize)]
struct Argument<'a> {
    name: &'a str,
    kind: ArgKind,
    default: DefaultValue,
    computed: Option<&'static str>,
    required: bool,
    tensor: bool,
    per_frame: bool,
    read: bool,
    deprecated: bool,
    doc: &'a str,
}

/// One of the names of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spelling {
    /// In files.
    pub schema: String,
    /// The function in DALI's Python, behind `fn.`.
    #[serde(rename = "fn")]
    pub function: String,
    /// The class in DALI's Python, behind `ops.`.
    #[serde(rename = "ops")]
    pub class: String,
}

impl<'a> Operator<'a> {
    fn new(op: &'a OpDef) -> Self {
        let mut arguments: Vec<Argument<'a>> = op.all_args().map(Argument::new).collect();
        arguments.sort_by_key(|argument| argument.name);
        let mut kernels: Vec<String> =
            op.kernels.iter().flat_map(|kernels| kernels()).map(|spec| spec.source().to_owned()).collect();
        kernels.sort_unstable();
        kernels.dedup();
        Self {
            name: op.name,
            spellings: op.spellings(),
            hidden: op.is_hidden(),
            doc: op.doc,
            devices: op.placements(),
            inputs: op.inputs,
            outputs: op.output_count(&Args::default(), op.inputs.0).ok(),
            random: op.is_random(),
            sequences: op.sequences,
            kernels,
            arguments,
        }
    }
}

impl<'a> Argument<'a> {
    fn new(spec: &'a ArgSpec) -> Self {
        Self {
            name: spec.name,
            kind: spec.kind,
            default: spec.default,
            computed: match spec.default {
                DefaultValue::Computed(how) => Some(how),
                _ => None,
            },
            required: spec.default == DefaultValue::Required,
            tensor: spec.tensor,
            per_frame: spec.per_frame,
            read: spec.read,
            deprecated: spec.deprecated,
            doc: spec.doc,
        }
    }
}

impl Serialize for DefaultValue {
    /// The value; null where there is none.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            DefaultValue::Required | DefaultValue::None | DefaultValue::Computed(_) => {
                serializer.serialize_none()
            }
            DefaultValue::Bool(value) => value.serialize(serializer),
            DefaultValue::Int(value) => value.serialize(serializer),
            DefaultValue::Float(value) => value.serialize(serializer),
            DefaultValue::String(value) => value.serialize(serializer),
            DefaultValue::Dtype(dtype) => (dtype as i64).serialize(serializer),
            DefaultValue::Ints(values) => values.serialize(serializer),
            DefaultValue::Floats(values) => values.serialize(serializer),
        }
    }
}

impl OpDef {
    /// Its names, that of its table first.
    pub fn spellings(&self) -> Vec<Spelling> {
        std::iter::once(&self.name).chain(self.aliases).map(|name| Spelling::new(name)).collect()
    }

    /// Whether DALI's Python calls it for its users.
    pub fn is_hidden(&self) -> bool {
        self.aliases.iter().any(|alias| alias.strip_prefix('_') == Some(self.name))
    }

    /// Where a file may put it.
    pub fn placements(&self) -> Vec<&'static str> {
        let name = |device: &Device| match device {
            Device::Cpu => "cpu",
            Device::Gpu if self.is_mixed() => "mixed",
            Device::Gpu => "gpu",
        };
        self.devices.iter().map(name).collect()
    }
}

impl Spelling {
    fn new(schema: &str) -> Self {
        // `experimental__decoders__Image`: modules and a name. An underscore at the front belongs to what follows.
        let mut parts: Vec<&str> = Vec::new();
        let mut rest = schema;
        while let Some(at) = rest.get(1..).and_then(|tail| tail.find("__")) {
            let (module, tail) = rest.split_at(at + 1);
            parts.push(module);
            rest = &tail[2..];
        }
        let path = |name: &str| parts.iter().copied().chain([name]).collect::<Vec<_>>().join(".");
        Self { schema: schema.to_owned(), function: path(&snake_case(rest)), class: path(rest) }
    }
}

/// `BBoxPaste` as `bbox_paste`, `MFCC` as `mfcc`, `ROIRandomCrop` as `roi_random_crop`.
fn snake_case(name: &str) -> String {
    // Two words that DALI writes as one.
    let name = name.replace("BBox", "Bbox").replace("MXNet", "Mxnet");
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (i, &letter) in letters.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| letters.get(i));
        let ends_word = before.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let starts_word =
            before.is_some_and(|c| *c != '_') && letters.get(i + 1).is_some_and(char::is_ascii_lowercase);
        if letter.is_ascii_uppercase() && (ends_word || starts_word) {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_python() {
        for (schema, function, class) in [
            ("Resize", "resize", "Resize"),
            ("MFCC", "mfcc", "MFCC"),
            ("BBoxPaste", "bbox_paste", "BBoxPaste"),
            ("decoders__ImageRandomCrop", "decoders.image_random_crop", "decoders.ImageRandomCrop"),
            ("experimental__decoders__Image", "experimental.decoders.image", "experimental.decoders.Image"),
            ("_conditional__Not_", "_conditional.not_", "_conditional.Not_"),
            ("readers__Caffe2", "readers.caffe2", "readers.Caffe2"),
            ("readers___TFRecord", "readers._tf_record", "readers._TFRecord"),
        ] {
            let found = Spelling::new(schema);
            assert_eq!((found.function.as_str(), found.class.as_str()), (function, class));
        }
    }

    #[test]
    fn the_list_is_whole_sorted_and_always_the_same() {
        let list: Vec<serde_json::Value> = serde_json::from_str(&json()).unwrap();
        let names: Vec<&str> = list.iter().filter_map(|op| op["name"].as_str()).collect();
        assert!(names.is_sorted() && OPS.iter().all(|op| names.contains(&op.name)));
        assert_eq!(json(), json());
        let rotate = list.iter().find(|op| op["name"] == "Rotate").unwrap();
        let arguments = rotate["arguments"].as_array().unwrap();
        let angle = arguments.iter().find(|argument| argument["name"] == "angle").unwrap();
        assert_eq!((angle["kind"].as_str(), angle["required"].as_bool()), (Some("float"), Some(true)));
        let keep = arguments.iter().find(|argument| argument["name"] == "keep_size").unwrap();
        assert_eq!(keep["default"], false);
    }
}
