//! The configuration as a server (tritonserver 2.51) sends it: the strings are its own, for the `config.pbtxt` above
//! each.

mod complete;
mod hostile;
mod validate;

use serde_json::json;

use super::*;
use gesso::error::ErrorKind;
use gesso::pipeline::{Input, Output};
use gesso::tensor::{DType, Device, Layout, ValueType};

/// `backend: "gesso"`, and the same with `max_batch_size: 0`: the server makes no difference.
const ONE_LINE: &str = r#"{"name":"one","platform":"","backend":"gesso","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":0,"input":[],"output":[],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"instance_group":[{"name":"one","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]}"#;

/// No file at all, in a directory called `none.gesso`.
const NO_FILE: &str = r#"{"name":"none.gesso","platform":"","backend":"gesso","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":0,"input":[],"output":[],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"instance_group":[{"name":"none.gesso","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"model.gesso","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[]}"#;

/// Everything written out: three inputs, a renamed model file, two instance groups, a queue policy, one version.
const FULL: &str = r#"{"name":"full","platform":"","backend":"gesso","runtime":"","version_policy":{"specific":{"versions":[1]}},"max_batch_size":8,"input":[{"name":"A","data_type":"TYPE_UINT8","format":"FORMAT_NONE","dims":[-1],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false},{"name":"B","data_type":"TYPE_STRING","format":"FORMAT_NONE","dims":[1],"reshape":{"shape":[]},"is_shape_tensor":false,"allow_ragged_batch":false,"optional":true,"is_non_linear_format_io":false},{"name":"C","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[2,3],"is_shape_tensor":false,"allow_ragged_batch":true,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"O","data_type":"TYPE_FP32","dims":[3,224,224],"label_filename":"l.txt","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"dynamic_batching":{"preferred_batch_size":[4,8],"max_queue_delay_microseconds":100,"preserve_ordering":false,"priority_levels":2,"default_priority_level":1,"priority_queue_policy":{}},"instance_group":[{"name":"full_0","kind":"KIND_CPU","count":2,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""},{"name":"full_1","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"x y.dali","cc_model_filenames":{},"metric_tags":{},"parameters":{"foo":{"string_value":""},"num_threads":{"string_value":"4"}},"model_warmup":[]}"#;

/// `max_batch_size: 4 sequence_batching { direct {} } input { name: "A" } output { name: "O" }`, decoupled.
const SEQUENCE: &str = r#"{"name":"seq","platform":"","backend":"gesso","runtime":"","version_policy":{"latest":{"num_versions":1}},"max_batch_size":4,"input":[{"name":"A","data_type":"TYPE_INVALID","format":"FORMAT_NONE","dims":[],"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}],"output":[{"name":"O","data_type":"TYPE_INVALID","dims":[],"label_filename":"","is_shape_tensor":false,"is_non_linear_format_io":false}],"batch_input":[],"batch_output":[],"optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":{"enable":true},"output_pinned_memory":{"enable":true},"gather_kernel_buffer_threshold":0,"eager_batching":false},"sequence_batching":{"direct":{"max_queue_delay_microseconds":0,"minimum_slot_utilization":0},"max_sequence_idle_microseconds":1000000,"control_input":[],"state":[],"iterative_sequence":false},"instance_group":[{"name":"seq","kind":"KIND_CPU","count":1,"gpus":[],"secondary_devices":[],"profile":[],"passive":false,"host_policy":""}],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[],"model_transaction_policy":{"decoupled":true}}"#;

/// The tensors of a pipeline, of which [`Facts`] borrows.
struct Tensors {
    inputs: Vec<Input>,
    outputs: Vec<Output>,
}

impl Tensors {
    fn facts(&self) -> Facts<'_> {
        Facts { inputs: &self.inputs, outputs: &self.outputs, max_batch_size: 16, takes_videos: false }
    }
}

fn input(name: &str, dtype: impl Into<Option<DType>>, ndim: impl Into<Option<usize>>) -> Input {
    Input {
        name: name.to_owned(),
        dtype: dtype.into(),
        ndim: ndim.into(),
        layout: Layout::NONE,
        device: Device::Cpu,
    }
}

/// An output of which nothing is declared; -1 is an extent that the pipeline does not fix.
fn output(name: &str, dtype: impl Into<Option<DType>>, dims: Option<&[i64]>) -> Output {
    let dims = dims.map(|dims| dims.iter().map(|&d| usize::try_from(d).ok()).collect());
    let ty = ValueType { dtype: dtype.into(), dims, layout: None };
    Output { name: name.to_owned(), ty, dtype: None, ndim: None }
}

/// With `output_dtype` and `output_ndim`.
fn declared(output: Output) -> Output {
    Output { dtype: output.ty.dtype, ndim: output.ty.ndim(), ..output }
}

/// An encoded image in, a normalized one out: what most models are.
fn classify() -> Tensors {
    Tensors {
        inputs: vec![input("IMAGE", DType::U8, 1)],
        outputs: vec![output("PIXELS", DType::F32, Some(&[3, 224, 224]))],
    }
}

/// Two images of any size in, in an order that is not lexicographic; two outputs.
fn two() -> Tensors {
    Tensors {
        inputs: vec![input("Y", DType::U8, 3), input("X", DType::F32, 2)],
        outputs: vec![output("__Cast_1", DType::I16, Some(&[-1, 4])), output("P", DType::F32, Some(&[3]))],
    }
}

fn config(fields: &Value) -> ModelConfig {
    ModelConfig::parse(&fields.to_string()).unwrap()
}

fn completed(fields: &Value, tensors: &Tensors) -> Value {
    let mut config = config(fields);
    config.complete(&tensors.facts()).unwrap();
    serde_json::from_str(&config.to_json()).unwrap()
}

fn refused(fields: &Value, tensors: &Tensors) -> String {
    let checked = config(fields).validate(&tensors.facts()).unwrap_err();
    assert_eq!(checked.kind(), ErrorKind::InvalidArg, "{checked}");
    checked.to_string()
}

#[test]
fn what_is_not_ours_is_written_back_as_it_was() {
    for json in [ONE_LINE, NO_FILE, FULL, SEQUENCE] {
        let before: Value = serde_json::from_str(json).unwrap();
        let after: Value = serde_json::from_str(&ModelConfig::parse(json).unwrap().to_json()).unwrap();
        assert_eq!(before, after);
    }
    let odd = json!({"max_batch_size": 1, "new_field": {"a": [1.5, null, u64::MAX]}, "output": [],
        "input": [{"name": "A", "data_type": "TYPE_FP16", "dims": [1], "is_shape_tensor": true, "newer": []}]});
    let after: Value = serde_json::from_str(&config(&odd).to_json()).unwrap();
    assert_eq!(after, odd);
}

#[test]
fn a_full_configuration_is_read() {
    let config = ModelConfig::parse(FULL).unwrap();
    assert_eq!(config.max_batch_size(), 8);
    assert_eq!(config.model_filename().unwrap(), "x y.dali");
    assert_eq!(config.instance_kinds().unwrap(), [InstanceKind::Cpu, InstanceKind::Cpu]);
    let settings = config.settings().unwrap();
    assert_eq!((settings.num_threads, settings.unknown), (Some(4), vec!["foo".to_owned()]));
    let tensors = Tensors {
        inputs: vec![input("C", DType::F32, 2), input("B", DType::U8, 1), input("A", DType::U8, 1)],
        outputs: vec![output("__Resize_3", DType::F32, Some(&[-1, -1, -1]))],
    };
    let map = config.validate(&tensors.facts()).unwrap();
    let inputs: Vec<_> = map
        .inputs
        .iter()
        .map(|t| (t.name.as_str(), t.position, t.ragged, t.optional, t.dims.as_slice()))
        .collect();
    assert_eq!(
        inputs,
        [("C", 2, true, false, &[2, 3][..]), ("B", 1, false, true, &[]), ("A", 0, false, false, &[-1])]
    );
    assert_eq!(map.inputs[1].data_type, DataType::Bytes);
    assert_eq!((map.outputs[0].name.as_str(), &map.outputs[0].dims[..]), ("O", &[3, 224, 224][..]));
    // The author's scheduler stays as it is.
    let mut done = config.clone();
    done.complete(&tensors.facts()).unwrap();
    let done: Value = serde_json::from_str(&done.to_json()).unwrap();
    assert_eq!(done["dynamic_batching"]["preferred_batch_size"], json!([4, 8]));
}

#[test]
fn integers_may_be_strings() {
    let fields = json!({"max_batch_size": "8", "input": [{"name": "IMAGE", "dims": ["-1"]}],
        "output": [{"name": "O", "dims": ["3", "224", 224]}]});
    let config = config(&fields);
    assert_eq!((config.max_batch_size(), &config.outputs()[0].dims[..]), (8, &[3, 224, 224][..]));
}

#[test]
fn what_is_no_configuration_is_named() {
    let error = |json: &str| ModelConfig::parse(json).unwrap_err().to_string();
    assert!(error("").contains("is not JSON"));
    assert!(error("[]").contains("is a list, expected an object"));
    assert_eq!(error(r#"{"input": {}}"#), "model configuration: `input` is an object, expected a list");
    assert_eq!(error(r#"{"input": [1]}"#), "model configuration: `input` holds a number, expected objects");
    assert_eq!(
        error(r#"{"max_batch_size": "many"}"#),
        "model configuration: `max_batch_size` is `many`, expected an integer"
    );
    assert_eq!(
        error(r#"{"output": [{"name": "O", "data_type": "TYPE_BF16"}]}"#),
        "model configuration: output `O`: data_type `TYPE_BF16` is not supported"
    );
    assert_eq!(
        error(r#"{"input": [{"name": "I", "dims": [1, 2.5]}]}"#),
        "model configuration: input `I`: `dims` is `2.5`, expected integers"
    );
    let kinds = config(&json!({"instance_group": [{"kind": "KIND_TPU"}]})).instance_kinds().unwrap_err();
    assert!(kinds.to_string().contains("`KIND_TPU`"));
    let nested = "[".repeat(100_000);
    assert!(error(&format!(r#"{{"parameters": {nested}"#)).contains("is not JSON"));
}
