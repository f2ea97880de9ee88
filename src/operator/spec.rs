//! What an operator accepts: the entries of its argument table as data, from which arguments are checked and pages,
//! signatures and the C API's description of all operators are made. What a file gave is in `args`.

use super::value::Value;
use crate::tensor::DType;

/// One entry of an operator's argument table.
///
/// ```text
/// ArgSpec::float("angle", "degrees, counter-clockwise").tensor().per_frame().required()
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ArgSpec {
    /// Keyword in the file.
    pub name: &'static str,
    /// What its values are.
    pub kind: ArgKind,
    /// What holds when the file does not give it.
    pub default: DefaultValue,
    /// Whether a tensor may feed it, one value per sample.
    pub tensor: bool,
    /// Whether that tensor may hold a value for each frame of a sequence, marked by `PerFrame`.
    pub per_frame: bool,
    /// Whether the operator reads it. Arguments that do not change the result are accepted and not read.
    pub read: bool,
    /// Whether DALI advises against it.
    pub deprecated: bool,
    /// Meaning and unit.
    pub doc: &'static str,
}

/// The arguments that an operator or a reader accepts: its own, and tables that it shares with others.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArgTable {
    /// Its own.
    pub own: &'static [ArgSpec],
    /// Those that it shares.
    pub shared: &'static [&'static [ArgSpec]],
}

impl ArgTable {
    /// All of them.
    pub fn all(self) -> impl Iterator<Item = &'static ArgSpec> {
        self.own.iter().chain(self.shared.iter().copied().flatten())
    }

    /// The argument `name`.
    pub fn find(self, name: &str) -> Option<&'static ArgSpec> {
        self.all().find(|spec| spec.name == name)
    }
}

/// The types that arguments have in DALI. In a file the enumerations are integers and layouts are strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgKind {
    /// A truth value.
    Bool,
    /// An integer.
    Int,
    /// A float.
    Float,
    /// A text.
    String,
    /// A list of integers; one stands for a list of one.
    Ints,
    /// A list of floats; one stands for a list of one.
    Floats,
    /// A list of texts.
    Strings,
    /// An element type, `DALIDataType`.
    Dtype,
    /// A colour space, `DALIImageType`: 0 RGB, 1 BGR, 2 gray, 3 YCbCr, 4 as in the file.
    ImageType,
    /// A resampling filter, `DALIInterpType`: 0 nearest neighbour, 1 linear, 2 cubic, 3 Lanczos, 4 triangular, 5
    /// Gaussian.
    InterpType,
    /// A layout such as `HWC`.
    Layout,
    /// Whatever it is: of an operator that does not say.
    Any,
}

impl ArgKind {
    /// Its name in JSON, pages and messages.
    pub fn name(self) -> &'static str {
        match self {
            ArgKind::Bool => "bool",
            ArgKind::Int => "int",
            ArgKind::Float => "float",
            ArgKind::String => "string",
            ArgKind::Ints => "ints",
            ArgKind::Floats => "floats",
            ArgKind::Strings => "strings",
            ArgKind::Dtype => "dtype",
            ArgKind::ImageType => "image_type",
            ArgKind::InterpType => "interp_type",
            ArgKind::Layout => "layout",
            ArgKind::Any => "any",
        }
    }
}

/// Members of [`ArgKind::ImageType`], by number.
const IMAGE_TYPES: [&str; 5] = ["RGB", "BGR", "gray", "YCbCr", "as in the file"];

/// Members of [`ArgKind::InterpType`], by number.
const INTERP_TYPES: [&str; 6] = ["nearest neighbour", "linear", "cubic", "Lanczos", "triangular", "Gaussian"];

/// What holds when an argument is not given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DefaultValue {
    /// It must be given.
    Required,
    /// Nothing: what it would do is not done.
    None,
    /// What follows from other arguments or the inputs, in words.
    Computed(&'static str),
    /// A truth value.
    Bool(bool),
    /// An integer, or a member of an enumeration.
    Int(i64),
    /// A float.
    Float(f32),
    /// A text or a layout.
    String(&'static str),
    /// An element type.
    Dtype(DType),
    /// A list of integers.
    Ints(&'static [i64]),
    /// A list of floats.
    Floats(&'static [f32]),
}

/// The argument that operators with random numbers have. Old versions of DALI write it for every operator.
pub const SEED: &str = "seed";

/// What every operator may have in a file beside its own arguments. It says where an operator runs or where it was
/// written, and changes nothing of what is computed.
pub const EVERYWHERE: &[ArgSpec] = &[
    ArgSpec::string("device", "where it runs: `cpu`, `gpu` or `mixed`").or_string("cpu"),
    ArgSpec::int(SEED, "start of random numbers, for operators that draw some").or_int(-1),
    ArgSpec::bool("preserve", "keep it though nothing reads its outputs").or_bool(false).no_effect(),
    ArgSpec::bool("preserve_name", "keep its name").or_bool(false).no_effect(),
    ArgSpec::ints("bytes_per_sample_hint", "a hint for DALI's memory").or_ints(&[0]).no_effect(),
    ArgSpec::int("max_batch_size", "that of the pipeline").no_effect(),
    ArgSpec::int("num_threads", "those of the pipeline").no_effect(),
    ArgSpec::int("cpu_prefetch_queue_depth", "a hint for DALI's executor").no_effect(),
    ArgSpec::int("gpu_prefetch_queue_depth", "a hint for DALI's executor").no_effect(),
    ArgSpec::int("default_cuda_stream_priority", "a hint for DALI's executor").no_effect(),
    ArgSpec::string("_display_name", "how DALI's errors call it").no_effect(),
    ArgSpec::string("_module", "the author's module in Python").no_effect(),
    ArgSpec::bool("_if_stmt", "made of an `if` in Python").no_effect(),
];

/// Constructors: an argument that is fixed in the file, by its kind.
macro_rules! constructors {
    ($($name:ident $kind:ident)*) => {
        impl ArgSpec {
            $(
                #[doc = concat!("An argument of the kind [`ArgKind::", stringify!($kind), "`].")]
                pub const fn $name(name: &'static str, doc: &'static str) -> Self {
                    Self::new(name, ArgKind::$kind, doc)
                }
            )*
        }
    };
}
constructors! {
    bool Bool int Int float Float string String ints Ints floats Floats strings Strings
    dtype Dtype image_type ImageType interp_type InterpType layout Layout any Any
}

impl ArgSpec {
    const fn new(name: &'static str, kind: ArgKind, doc: &'static str) -> Self {
        let (tensor, per_frame, read, deprecated) = (false, false, true, false);
        Self { name, kind, default: DefaultValue::None, tensor, per_frame, read, deprecated, doc }
    }

    /// The same argument, which may also be a tensor with a value per sample.
    #[must_use]
    pub const fn tensor(self) -> Self {
        Self { tensor: true, ..self }
    }

    /// The same argument, whose tensor may also hold a value for each frame.
    #[must_use]
    pub const fn per_frame(self) -> Self {
        Self { per_frame: true, ..self }
    }

    /// The same argument, which does not change the result.
    #[must_use]
    pub const fn no_effect(self) -> Self {
        Self { read: false, ..self }
    }

    /// The same argument, which DALI advises against.
    #[must_use]
    pub const fn deprecated(self) -> Self {
        Self { deprecated: true, ..self }
    }

    /// The same argument, which must be given.
    #[must_use]
    pub const fn required(self) -> Self {
        self.or(DefaultValue::Required)
    }

    /// The same argument, in whose place something is worked out.
    #[must_use]
    pub const fn or_computed(self, how: &'static str) -> Self {
        self.or(DefaultValue::Computed(how))
    }

    /// The same argument with a default.
    #[must_use]
    pub const fn or_bool(self, value: bool) -> Self {
        self.or(DefaultValue::Bool(value))
    }

    /// The same argument with a default; enumerations too.
    #[must_use]
    pub const fn or_int(self, value: i64) -> Self {
        self.or(DefaultValue::Int(value))
    }

    /// The same argument with a default.
    #[must_use]
    pub const fn or_float(self, value: f32) -> Self {
        self.or(DefaultValue::Float(value))
    }

    /// The same argument with a default; layouts too.
    #[must_use]
    pub const fn or_string(self, value: &'static str) -> Self {
        self.or(DefaultValue::String(value))
    }

    /// The same argument with a default.
    #[must_use]
    pub const fn or_dtype(self, value: DType) -> Self {
        self.or(DefaultValue::Dtype(value))
    }

    /// The same argument with a default.
    #[must_use]
    pub const fn or_ints(self, values: &'static [i64]) -> Self {
        self.or(DefaultValue::Ints(values))
    }

    /// The same argument with a default.
    #[must_use]
    pub const fn or_floats(self, values: &'static [f32]) -> Self {
        self.or(DefaultValue::Floats(values))
    }

    const fn or(self, default: DefaultValue) -> Self {
        Self { default, ..self }
    }

    /// The default for people: members of enumerations by name, what is worked out in words; empty where there is none.
    pub fn default_text(&self) -> String {
        let member = |names: &[&str], value: i64| {
            let name = usize::try_from(value).ok().and_then(|i| names.get(i));
            name.map_or_else(|| value.to_string(), |name| (*name).to_owned())
        };
        match (self.kind, self.default) {
            (_, DefaultValue::Required) => "required".to_owned(),
            (_, DefaultValue::None) => String::new(),
            (_, DefaultValue::Computed(how)) => how.to_owned(),
            (_, DefaultValue::Bool(value)) => value.to_string(),
            (ArgKind::ImageType, DefaultValue::Int(value)) => member(&IMAGE_TYPES, value),
            (ArgKind::InterpType, DefaultValue::Int(value)) => member(&INTERP_TYPES, value),
            (_, DefaultValue::Int(value)) => value.to_string(),
            (_, DefaultValue::Float(value)) => value.to_string(),
            (_, DefaultValue::String(value)) => format!("'{value}'"),
            (_, DefaultValue::Dtype(dtype)) => dtype.name().to_owned(),
            (_, DefaultValue::Ints(values)) => format!("{values:?}"),
            (_, DefaultValue::Floats(values)) => format!("{values:?}"),
        }
    }

    /// The default as a value that a file could give; `None` where there is none.
    pub fn default_value(&self) -> Option<Value> {
        Some(match self.default {
            DefaultValue::Required | DefaultValue::None | DefaultValue::Computed(_) => return None,
            DefaultValue::Bool(value) => Value::Bools(vec![value]),
            DefaultValue::Int(value) => Value::Ints(vec![value]),
            DefaultValue::Float(value) => Value::Floats(vec![value]),
            DefaultValue::String(value) => Value::Strings(vec![value.to_owned()]),
            DefaultValue::Dtype(dtype) => Value::Ints(vec![dtype as i64]),
            DefaultValue::Ints(values) => Value::Ints(values.to_vec()),
            DefaultValue::Floats(values) => Value::Floats(values.to_vec()),
        })
    }

    /// Whether the default is one of the argument's kind.
    #[cfg(test)]
    pub(crate) fn default_fits(&self) -> bool {
        use DefaultValue as D;
        match self.default {
            D::Required | D::None | D::Computed(_) => true,
            D::Bool(_) => self.kind == ArgKind::Bool,
            D::Int(_) => matches!(self.kind, ArgKind::Int | ArgKind::ImageType | ArgKind::InterpType),
            D::Float(_) => self.kind == ArgKind::Float,
            D::String(_) => matches!(self.kind, ArgKind::String | ArgKind::Layout),
            D::Dtype(_) => self.kind == ArgKind::Dtype,
            D::Ints(_) => self.kind == ArgKind::Ints,
            D::Floats(_) => self.kind == ArgKind::Floats,
        }
    }
}
