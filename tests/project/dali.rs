//! Our table of operators beside DALI's, which `dali_arguments.py` wrote down: what is missing or differs is listed
//! here, each with its reason, and nothing else is. `docs/reference/operators.md` shows the lists.

use std::collections::{BTreeMap, HashSet};

use gesso::operator::{ArgSpec, DefaultValue, SEED};
use gesso::ops::find;
use serde::Deserialize;
use serde_json::Value;

/// Operators that Gesso does not have.
pub(crate) const MISSING: &[(&str, &[&str])] = &[
    (
        "a reader, not an operator: the engine reads the data set itself, in a stream",
        &[
            "COCOReader",
            "Caffe2Reader",
            "CaffeReader",
            "FileReader",
            "MXNetReader",
            "NemoAsrReader",
            "NumpyReader",
            "SequenceReader",
            "VideoReader",
            "VideoReaderResize",
            "experimental__readers__Video",
            "readers__COCO",
            "readers__Caffe",
            "readers__Caffe2",
            "readers__File",
            "readers__MXNet",
            "readers__NemoAsr",
            "readers__Numpy",
            "readers__Sequence",
            "readers__Video",
            "readers__VideoResize",
            "readers__Webdataset",
        ],
    ),
    (
        "reads files: the Python package does so; elsewhere feed what is in them to an external source",
        &["experimental__readers__Fits", "io__file__Read"],
    ),
];

/// Arguments that Gesso does not know, or reads otherwise than DALI tells: operator, argument, what is otherwise, why.
pub(crate) const DIFFERENT: &[(&str, &str, Difference, &str)] = &[
    (
        "BrightnessContrast",
        "contrast_center",
        Difference::Default,
        "DALI's documentation and code take half of the input's range; its schema tells that of float inputs",
    ),
    (
        "Contrast",
        "contrast_center",
        Difference::Default,
        "DALI's documentation and code take half of the input's range; its schema tells that of float inputs",
    ),
    ("Debayer", "algorithm", Difference::Default, "DALI's schema tells none"),
    ("decoders__Video", "start_frame", Difference::Default, "DALI's schema tells none"),
    ("decoders__Video", "stride", Difference::Default, "DALI's schema tells none"),
    ("random__Beta", "dtype", Difference::Default, "DALI's schema tells none"),
    ("decoders__Video", "pad_mode", Difference::Tensor, "no tensor holds texts"),
    ("Erase", "axes", Difference::Default, "what is not given follows from `axis_names`"),
    ("Erase", "axis_names", Difference::Default, "what is not given follows from the layout"),
    (
        "Erase",
        "normalized_anchor",
        Difference::Default,
        "what is not given follows from `normalized`, as in DALI",
    ),
    (
        "Erase",
        "normalized_shape",
        Difference::Default,
        "what is not given follows from `normalized`, as in DALI",
    ),
    (
        "FastResizeCropMirror",
        "mag_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    (
        "FastResizeCropMirror",
        "min_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    (
        "RandomBBoxCrop",
        "allow_no_crop",
        Difference::Default,
        "what is not given follows from `crop_shape`; DALI's schema tells true for both",
    ),
    (
        "RandomResizedCrop",
        "mag_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    (
        "RandomResizedCrop",
        "min_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    ("Resize", "mag_filter", Difference::Default, "what is not given follows from `interp_type`, as in DALI"),
    ("Resize", "min_filter", Difference::Default, "what is not given follows from `interp_type`, as in DALI"),
    (
        "ResizeCropMirror",
        "mag_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    (
        "ResizeCropMirror",
        "min_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    (
        "TensorResize",
        "mag_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    (
        "TensorResize",
        "min_filter",
        Difference::Default,
        "what is not given follows from `interp_type`, as in DALI",
    ),
    ("Reinterpret", "src_dims", Difference::Tensor, "dimensions are known at load"),
    ("Reshape", "src_dims", Difference::Tensor, "dimensions are known at load"),
    ("Slice", "axes", Difference::Default, "what is not given follows from `axis_names`, as in DALI"),
    (
        "decoders__ImageSlice",
        "axes",
        Difference::Default,
        "what is not given follows from `axis_names`, as in DALI",
    ),
    ("Squeeze", "axes", Difference::Tensor, "dimensions are known at load"),
    ("TensorResize", "axes", Difference::Tensor, "a tensor is taken too"),
    ("TensorSubscript", "at_*", Difference::Unknown, "dimensions from 16 on: tensors have fewer"),
    ("TensorSubscript", "hi_*", Difference::Unknown, "dimensions from 16 on: tensors have fewer"),
    ("TensorSubscript", "lo_*", Difference::Unknown, "dimensions from 16 on: tensors have fewer"),
    ("TensorSubscript", "step_*", Difference::Unknown, "dimensions from 16 on: tensors have fewer"),
    (
        "TensorSubscript",
        "step_*",
        Difference::Default,
        "1, which DALI's code takes where its schema says nothing",
    ),
    (
        "decoders__Image",
        "hw_decoder_load",
        Difference::Default,
        "what is not given follows from measured speeds",
    ),
    (
        "decoders__ImageCrop",
        "hw_decoder_load",
        Difference::Default,
        "what is not given follows from measured speeds",
    ),
    (
        "decoders__ImageRandomCrop",
        "hw_decoder_load",
        Difference::Default,
        "what is not given follows from measured speeds",
    ),
    (
        "decoders__ImageSlice",
        "hw_decoder_load",
        Difference::Default,
        "what is not given follows from measured speeds",
    ),
    (
        "decoders__Image",
        "jpeg_fancy_upsampling",
        Difference::Default,
        "it is on where another library's arithmetic is asked for, and DALI has none",
    ),
    (
        "decoders__ImageCrop",
        "jpeg_fancy_upsampling",
        Difference::Default,
        "it is on where another library's arithmetic is asked for, and DALI has none",
    ),
    (
        "decoders__ImageRandomCrop",
        "jpeg_fancy_upsampling",
        Difference::Default,
        "it is on where another library's arithmetic is asked for, and DALI has none",
    ),
    (
        "decoders__ImageSlice",
        "jpeg_fancy_upsampling",
        Difference::Default,
        "it is on where another library's arithmetic is asked for, and DALI has none",
    ),
    ("noise__Shot", "factor", Difference::Default, "what DALI's code does; its schema tells 20"),
    (
        "transforms__Translation",
        "offset",
        Difference::PerFrame,
        "only the old name `TransformTranslation` does not have it in DALI",
    ),
];

/// What is otherwise with an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Difference {
    /// It is not known.
    Unknown,
    /// It is of another kind.
    Kind,
    /// It is a tensor in one of both.
    Tensor,
    /// It may differ by frame in one of both.
    PerFrame,
    /// Its default differs, or is worked out in one of both.
    Default,
}

impl Difference {
    /// For the page.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Difference::Unknown => "is not known",
            Difference::Kind => "is of another kind",
            Difference::Tensor => "as a tensor",
            Difference::PerFrame => "by frame",
            Difference::Default => "has another default",
        }
    }
}

#[derive(Deserialize)]
struct Facts {
    version: String,
    operators: BTreeMap<String, Operator>,
}

#[derive(Deserialize)]
struct Operator {
    r#fn: String,
    inputs: (usize, usize),
    #[serde(default)]
    sequences: bool,
    arguments: BTreeMap<String, Argument>,
}

#[derive(Deserialize)]
struct Argument {
    kind: Option<String>,
    #[serde(default)]
    required: bool,
    default: Option<Value>,
    #[serde(default)]
    tensor: bool,
    #[serde(default)]
    per_frame: bool,
    #[serde(default)]
    deprecated: bool,
}

fn facts() -> Facts {
    serde_json::from_str(include_str!("dali-arguments.json")).unwrap()
}

/// The version that the facts are of.
pub(crate) fn version() -> String {
    facts().version
}

/// Whether two defaults are the same value; DALI tells floats with six digits behind the point.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| same(a, b))
        }
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() < 1e-6)
        }
        (a, b) => a == b,
    }
}

fn differences(theirs: &Argument, ours: Option<&ArgSpec>) -> Vec<Difference> {
    let Some(ours) = ours else { return vec![Difference::Unknown] };
    let mut found = Vec::new();
    if theirs.deprecated && theirs.kind.is_none() {
        return found;
    }
    if theirs.kind.as_deref() != Some(ours.kind.name()) {
        found.push(Difference::Kind);
    }
    // What changes nothing need not be looked at.
    if !ours.read {
        return found;
    }
    if theirs.tensor != ours.tensor {
        found.push(Difference::Tensor);
    }
    if theirs.per_frame != ours.per_frame {
        found.push(Difference::PerFrame);
    }
    let value = serde_json::to_value(ours.default).unwrap();
    let is_same = match &theirs.default {
        Some(default) => same(&value, default),
        None => value.is_null() && theirs.required == (ours.default == DefaultValue::Required),
    };
    if !is_same {
        found.push(Difference::Default);
    }
    found
}

/// `at_*` for `at_20`: arguments of a numbered kind differ alike.
fn kind_of(keyword: &str) -> String {
    match keyword.rsplit_once('_') {
        Some((kind, number)) if number.parse::<usize>().is_ok() => format!("{kind}_*"),
        _ => keyword.to_owned(),
    }
}

#[test]
fn what_dali_has_and_gesso_lacks_is_listed() {
    let facts = facts();
    let listed: Vec<&str> = MISSING.iter().flat_map(|(_, names)| *names).copied().collect();
    let missing = facts.operators.keys().filter(|name| find(name).is_none());
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    let mut sorted = listed.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, missing, "`MISSING` is not what is missing");
}

#[test]
fn arguments_are_dalis_but_for_those_that_are_listed() {
    let mut found = HashSet::new();
    for (name, theirs) in &facts().operators {
        let Some(op) = find(name) else { continue };
        for (keyword, argument) in &theirs.arguments {
            let spec = op.all_args().find(|spec| spec.name == *keyword);
            for difference in differences(argument, spec) {
                // Seeds that a file does not give are given when it is read.
                if (keyword.as_str(), difference) == (SEED, Difference::Default) {
                    continue;
                }
                found.insert((op.name, kind_of(keyword), difference));
            }
        }
    }
    let listed: HashSet<_> =
        DIFFERENT.iter().map(|(op, keyword, what, _)| (*op, (*keyword).to_owned(), *what)).collect();
    let mut wrong: Vec<_> = found.symmetric_difference(&listed).collect();
    wrong.sort_by_key(|(op, keyword, _)| (*op, keyword.clone()));
    let lines: Vec<String> = wrong.iter().map(|wrong| format!("{wrong:?}")).collect();
    assert!(wrong.is_empty(), "`DIFFERENT` is not what differs:\n{}", lines.join("\n"));
}

#[test]
fn names_inputs_and_sequences_are_dalis() {
    for (name, theirs) in &facts().operators {
        let Some(op) = find(name) else { continue };
        let spellings = op.spellings();
        let spelling = spellings.iter().find(|spelling| spelling.schema == *name);
        assert_eq!(spelling.map(|spelling| &spelling.function), Some(&theirs.r#fn), "{name}");
        // Of deprecated spellings DALI says less.
        if op.name == name.trim_start_matches('_') {
            assert_eq!(op.inputs.0, theirs.inputs.0, "{name}");
            assert!(op.inputs.1 <= theirs.inputs.1, "{name}");
            assert_eq!(op.sequences, theirs.sequences, "{name}");
        }
    }
}
