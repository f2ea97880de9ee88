//! The configuration as a server (tritonserver 2.51) sends it: the strings are its own, for the `config.pbtxt` above each.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::error::ErrorKind;
use crate::pipeline::{Input, Output};
use crate::tensor::{DType, Layout, ValueType};
use crate::triton::api::DataType;

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
        Facts { inputs: &self.inputs, outputs: &self.outputs, max_batch_size: 16 }
    }
}

fn input(name: &str, dtype: impl Into<Option<DType>>, ndim: impl Into<Option<usize>>) -> Input {
    Input { name: name.to_owned(), dtype: dtype.into(), ndim: ndim.into(), layout: Layout::NONE }
}

/// -1 is an extent that the pipeline does not fix.
fn output(name: &str, dtype: impl Into<Option<DType>>, dims: Option<&[i64]>) -> Output {
    let dims = dims.map(|dims| dims.iter().map(|&d| usize::try_from(d).ok()).collect());
    Output { name: name.to_owned(), ty: ValueType { dtype: dtype.into(), dims, layout: None } }
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
fn one_line_is_enough() {
    for json in [ONE_LINE, NO_FILE] {
        let mut config = ModelConfig::parse(json).unwrap();
        let tensors = classify();
        config.complete(&tensors.facts()).unwrap();
        let done: Value = serde_json::from_str(&config.to_json()).unwrap();
        assert_eq!(done["max_batch_size"], 16);
        assert_eq!(
            done["input"],
            json!([{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1], "allow_ragged_batch": true}])
        );
        assert_eq!(
            done["output"],
            json!([{"name": "PIXELS", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}])
        );
        assert_eq!(done["dynamic_batching"], json!({}));
        let map = config.validate(&tensors.facts()).unwrap();
        assert_eq!(map.max_batch_size, 16);
        let expected = Tensor {
            name: "IMAGE".to_owned(),
            data_type: DataType::Dense(DType::U8),
            dims: vec![-1],
            ragged: true,
            optional: false,
            position: 0,
        };
        assert_eq!(map.inputs, [expected]);
        assert_eq!(map.outputs[0].name, "PIXELS");
    }
    assert_eq!(ModelConfig::parse(ONE_LINE).unwrap().model_filename().unwrap(), "model.dali");
    assert_eq!(ModelConfig::parse(NO_FILE).unwrap().model_filename().unwrap(), "model.gesso");
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
fn listed_inputs_keep_their_order_and_missing_ones_follow_sorted() {
    let mut tensors = two();
    tensors.inputs.push(input("B", DType::U8, 1));
    let done = completed(&json!({"max_batch_size": 4, "input": [{"name": "X"}]}), &tensors);
    let names: Vec<_> = done["input"].as_array().unwrap().iter().map(|input| input["name"].clone()).collect();
    assert_eq!(names, ["X", "B", "Y"]);
    assert_eq!(done["max_batch_size"], 4);
    let map = config(&done).validate(&tensors.facts()).unwrap();
    let positions: Vec<_> = map.inputs.iter().map(|t| (t.name.as_str(), t.position)).collect();
    assert_eq!(positions, [("Y", 2), ("X", 0), ("B", 1)]);
}

#[test]
fn outputs_are_matched_by_position_and_renamed() {
    let done = completed(&json!({"output": [{"name": "FIRST"}]}), &two());
    assert_eq!(
        done["output"],
        json!([{"name": "FIRST", "data_type": "TYPE_INT16", "dims": [-1, 4]},
            {"name": "P", "data_type": "TYPE_FP32", "dims": [3]}])
    );
}

#[test]
fn variable_extents_become_concrete_where_the_pipeline_fixes_them() {
    let fields = json!({"max_batch_size": 2,
        "input": [{"name": "X", "dims": [7, -1]}, {"name": "Y", "dims": [10, 20, 3]}],
        "output": [{"name": "A", "dims": [9, -1]}]});
    let done = completed(&fields, &two());
    assert_eq!(done["input"][0]["dims"], json!([7, -1]));
    assert_eq!(done["output"][0]["dims"], json!([9, 4]));
    // Only shapes that vary need to be ragged.
    assert_eq!(done["input"][0]["allow_ragged_batch"], true);
    assert_eq!(done["input"][1].get("allow_ragged_batch"), None);
    assert_eq!(config(&fields).validate(&two().facts()).unwrap_err().kind(), ErrorKind::InvalidArg);
}

#[test]
fn listed_inputs_become_ragged_although_the_server_says_false() {
    let fields = json!({"max_batch_size": 8, "input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1],
        "allow_ragged_batch": false, "optional": true}]});
    let done = completed(&fields, &classify());
    assert_eq!(done["input"][0]["allow_ragged_batch"], true);
    assert_eq!(done["input"][0]["optional"], true);
}

#[test]
fn a_scheduler_is_added_only_when_there_is_none() {
    let tensors = Tensors {
        inputs: vec![input("A", DType::U8, 1)],
        outputs: vec![output("O", DType::F32, Some(&[3, 8, 8]))],
    };
    let mut config = ModelConfig::parse(SEQUENCE).unwrap();
    config.complete(&tensors.facts()).unwrap();
    let done: Value = serde_json::from_str(&config.to_json()).unwrap();
    assert_eq!(done.get("dynamic_batching"), None);
    assert_eq!(done["input"][0]["dims"], json!([-1]));
    assert_eq!(done["model_transaction_policy"], json!({"decoupled": true}));
    let unbatched = completed(&json!({"output": [{"name": "O", "dims": [-1, 3, 8, 8]}]}), &tensors);
    assert_eq!(unbatched.get("dynamic_batching"), None);
    let null = completed(&json!({"dynamic_batching": null}), &tensors);
    assert_eq!(null["dynamic_batching"], json!({}));
}

#[test]
fn shapes_tell_whether_zero_was_written() {
    let batch_size = |fields: Value, tensors: &Tensors| completed(&fields, tensors)["max_batch_size"].clone();
    let tensors = classify();
    // Nothing to tell by: absent.
    assert_eq!(batch_size(json!({}), &tensors), 16);
    assert_eq!(batch_size(json!({"max_batch_size": 0, "input": [{"name": "IMAGE"}]}), &tensors), 16);
    // Shapes of one sample: absent.
    assert_eq!(batch_size(json!({"input": [{"name": "IMAGE", "dims": [-1]}]}), &tensors), 16);
    assert_eq!(batch_size(json!({"output": [{"name": "O", "dims": [3, 224, 224]}]}), &tensors), 16);
    // Shapes that begin with the number of samples: 0.
    assert_eq!(batch_size(json!({"input": [{"name": "IMAGE", "dims": [-1, -1]}]}), &tensors), 0);
    assert_eq!(batch_size(json!({"output": [{"name": "O", "dims": [-1, 3, 224, 224]}]}), &tensors), 0);
    // An element of `TYPE_STRING` is a sample of its own: no sign. The output is one.
    let strings = json!({"name": "IMAGE", "data_type": "TYPE_STRING", "dims": [-1]});
    assert_eq!(batch_size(json!({"input": [strings]}), &tensors), 16);
    let unbatched = json!({"input": [strings], "output": [{"name": "O", "dims": [-1, -1, -1, -1]}]});
    assert_eq!(batch_size(unbatched, &tensors), 0);
    // A scalar is written as `[1]` in any case.
    let scalar = Tensors {
        inputs: vec![input("FLAG", DType::Bool, 0)],
        outputs: vec![output("O", DType::F32, Some(&[]))],
    };
    assert_eq!(batch_size(json!({"input": [{"name": "FLAG", "dims": [1]}]}), &scalar), 16);
    assert_eq!(batch_size(json!({"input": [{"name": "FLAG", "dims": [-1]}]}), &scalar), 0);
}

#[test]
fn contradicting_shapes_are_an_error() {
    let fields = json!({"max_batch_size": 0, "input": [{"name": "IMAGE", "dims": [-1]}],
        "output": [{"name": "O", "dims": [-1, 3, 224, 224]}]});
    let error = config(&fields).complete(&classify().facts()).unwrap_err().to_string();
    assert!(error.contains("output `O` has 4 dimensions") && error.contains("the pipeline has 3"), "{error}");
}

#[test]
fn unbatched_dims_begin_with_the_number_of_samples() {
    let tensors = classify();
    let done = completed(&json!({"input": [{"name": "IMAGE", "dims": [1, -1]}]}), &tensors);
    assert_eq!(
        done["input"],
        json!([{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [1, -1]}]),
        "nothing is merged, so nothing is ragged"
    );
    assert_eq!(done["output"][0]["dims"], json!([-1, 3, 224, 224]));
    let map = config(&done).validate(&tensors.facts()).unwrap();
    assert_eq!((map.max_batch_size, &map.inputs[0].dims[..]), (0, &[1, -1][..]));
    // Without completion a batched shape in a model with 0 is told what is missing.
    let error = refused(
        &json!({"max_batch_size": 0, "input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1]}],
        "output": [{"name": "O", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}]}),
        &tensors,
    );
    assert_eq!(
        error,
        "input `IMAGE` has 1 dimensions in the configuration (dims [-1]), the pipeline has 2 ([-1, -1] with the batch \
         dimension, as max_batch_size is 0)"
    );
}

#[test]
fn strings_hold_one_file_per_element() {
    let tensors = classify();
    let strings = |dims: Value, size: i64| {
        json!({"max_batch_size": size,
            "input": [{"name": "IMAGE", "data_type": "TYPE_STRING", "dims": dims}],
            "output": [{"name": "O", "dims": if size == 0 { json!([-1, 3, 224, 224]) } else { json!([3, 224, 224]) }}]})
    };
    let done = completed(&strings(json!([]), 8), &tensors);
    assert_eq!(
        done["input"][0],
        json!({"name": "IMAGE", "data_type": "TYPE_STRING", "dims": [1]}),
        "a file's length is no part of its shape: not ragged"
    );
    assert_eq!(completed(&strings(json!([]), 0), &tensors)["input"][0]["dims"], json!([-1]));
    for (dims, size) in [(json!([1]), 8), (json!([-1]), 8), (json!([-1]), 0), (json!([5, 1]), 0)] {
        let done = completed(&strings(dims.clone(), size), &tensors);
        assert_eq!(done["input"][0]["dims"], dims);
        assert_eq!(done["input"][0].get("allow_ragged_batch"), None);
    }
    let error = config(&strings(json!([4]), 8)).complete(&tensors.facts()).unwrap_err().to_string();
    assert!(error.contains("input `IMAGE` has dims [4]") && error.contains("expected [1]"), "{error}");
    // Strings cannot feed what is no encoded file.
    let fields =
        json!({"max_batch_size": 8, "input": [{"name": "X", "data_type": "TYPE_STRING", "dims": [1]}]});
    let error = config(&fields).complete(&two().facts()).unwrap_err().to_string();
    assert!(
        error.contains("input `X`") && error.contains("`TYPE_STRING`") && error.contains("`TYPE_FP32`"),
        "{error}"
    );
    let bytes_out = json!({"output": [{"name": "O", "data_type": "TYPE_STRING", "dims": [3, 224, 224]}]});
    let error = config(&bytes_out).complete(&tensors.facts()).unwrap_err().to_string();
    assert!(error.contains("output `O` has data_type `TYPE_STRING`"), "{error}");
}

#[test]
fn scalars_are_reshaped_as_dims_must_not_be_empty() {
    let tensors = Tensors {
        inputs: vec![input("FLAG", DType::Bool, 0), input("LISTED", DType::F32, 0)],
        outputs: vec![output("O", DType::F32, Some(&[]))],
    };
    let done = completed(&json!({"max_batch_size": 2, "input": [{"name": "LISTED", "dims": [1]}]}), &tensors);
    for tensor in [&done["input"][0], &done["input"][1], &done["output"][0]] {
        assert_eq!((&tensor["dims"], &tensor["reshape"]), (&json!([1]), &json!({"shape": []})));
        assert_eq!(tensor.get("allow_ragged_batch"), None);
    }
    assert_eq!(config(&done).validate(&tensors.facts()).unwrap().inputs[0].dims, [0_i64; 0]);
}

#[test]
fn reshape_is_what_the_backend_sees() {
    let fields = |shape: Value| {
        json!({"max_batch_size": 2, "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [12],
            "reshape": {"shape": shape}}]})
    };
    let done = completed(&fields(json!([3, 4])), &two());
    assert_eq!(
        (&done["input"][0]["dims"], &done["input"][0]["reshape"]["shape"]),
        (&json!([12]), &json!([3, 4]))
    );
    let error = config(&fields(json!([3, 2, 2]))).complete(&two().facts()).unwrap_err().to_string();
    assert!(
        error.contains("input `X` has 3 dimensions in the configuration (dims [3, 2, 2] after reshape)"),
        "{error}"
    );
}

#[test]
fn an_extent_of_zero_cannot_be_configured() {
    let tensors = Tensors { inputs: vec![], outputs: vec![output("O", DType::F32, Some(&[0, i64::MAX, 2]))] };
    assert_eq!(completed(&json!({}), &tensors)["output"][0]["dims"], json!([-1, i64::MAX, 2]));
}

#[test]
fn differences_name_the_tensor_and_both_values() {
    let valid = |change: &dyn Fn(&mut Value)| {
        let mut fields = json!({"max_batch_size": 8,
            "input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [3, -1, 224]}]});
        change(&mut fields);
        fields
    };
    let tensors = classify();
    config(&valid(&|_| ())).validate(&tensors.facts()).unwrap();
    let cases: [(&dyn Fn(&mut Value), &[&str]); 14] = [
        (
            &|c| c["input"][0]["data_type"] = json!("TYPE_FP32"),
            &["input `IMAGE`", "`TYPE_FP32`", "`TYPE_UINT8`"],
        ),
        (
            &|c| c["output"][0]["data_type"] = json!("TYPE_FP16"),
            &["output `OUT`", "`TYPE_FP16`", "`TYPE_FP32`"],
        ),
        (
            &|c| c["output"][0]["data_type"] = json!("TYPE_INVALID"),
            &["output `OUT` has no data_type", "`TYPE_FP32`"],
        ),
        (
            &|c| c["input"][0]["dims"] = json!([-1, 3]),
            &["input `IMAGE` has 2 dimensions", "[-1, 3]", "has 1 ([-1])"],
        ),
        (
            &|c| c["output"][0]["dims"] = json!([3]),
            &["output `OUT` has 1 dimensions", "[3]", "3 ([3, 224, 224])"],
        ),
        (&|c| c["output"][0]["dims"] = json!([3, 9, -1]), &["output `OUT`", "[3, 9, -1]", "[3, 224, 224]"]),
        (&|c| c["output"][0]["dims"] = json!([]), &["output `OUT` has no dims", "[3, 224, 224]"]),
        (&|c| c["output"][0]["dims"] = json!([3, 0, -7]), &["output `OUT`", "[3, 0, -7]", "found 0"]),
        (&|c| c["input"][0]["name"] = json!("JPEG"), &["input `JPEG`", "not in the pipeline", "`IMAGE`"]),
        (&|c| c["input"] = json!([]), &["input `IMAGE`", "not in the configuration", "are none"]),
        (
            &|c| c["output"] = json!([]),
            &["the configuration has 0 outputs (none)", "the pipeline has 1 (`PIXELS`)"],
        ),
        (&|c| c["output"][0]["name"] = json!(""), &["output 0", "no name"]),
        (&|c| c["max_batch_size"] = json!(-3), &["max_batch_size is -3", "0 to 65536"]),
        (&|c| c["max_batch_size"] = json!(65537), &["max_batch_size is 65537", "0 to 65536"]),
    ];
    for (change, parts) in cases {
        let error = refused(&valid(change), &tensors);
        for part in parts {
            assert!(error.contains(part), "`{error}` does not contain `{part}`");
        }
        assert!(!error.ends_with('.'));
    }
    let twice = valid(&|c| c["input"] = json!([c["input"][0], c["input"][0]]));
    assert!(refused(&twice, &tensors).contains("two inputs are called `IMAGE`"));
    // Completion does not turn an error into something else.
    let mut wrong = config(&valid(&|c| c["input"][0]["name"] = json!("JPEG")));
    let error = wrong.complete(&tensors.facts()).unwrap_err().to_string();
    assert!(error.contains("input `JPEG` of the configuration is not in the pipeline"), "{error}");
    let mut more = config(&valid(&|c| c["output"] = json!([c["output"][0], {"name": "MORE"}])));
    let error = more.complete(&tensors.facts()).unwrap_err().to_string();
    assert!(error.contains("has 2 outputs (`OUT`, `MORE`), the pipeline has 1"), "{error}");
}

#[test]
fn what_neither_side_knows_is_an_error_that_says_how_to_help() {
    let tensors =
        Tensors { inputs: vec![input("A", None, None)], outputs: vec![output("O", DType::U8, None)] };
    let error = |fields: Value| config(&fields).complete(&tensors.facts()).unwrap_err().to_string();
    assert!(error(json!({})).contains("input `A` has no data_type"));
    assert!(error(json!({})).contains("`dtype`"));
    let input = json!([{"name": "A", "data_type": "TYPE_UINT8"}]);
    let said = error(json!({"input": input}));
    assert!(said.contains("input `A` has no dims") && said.contains("`ndim`"), "{said}");
    let input = json!([{"name": "A", "data_type": "TYPE_UINT8", "dims": [-1, 3]}]);
    let said = error(json!({"input": input}));
    assert!(said.contains("output `O` has no dims") && said.contains("`output_ndim`"), "{said}");
    let fields = json!({"input": input, "output": [{"name": "O", "dims": [4, 4]}]});
    let done = completed(&fields, &tensors);
    assert_eq!(
        (&done["max_batch_size"], &done["input"][0]["allow_ragged_batch"]),
        (&json!(16), &json!(true))
    );
    let nothing = Tensors { inputs: vec![], outputs: vec![output("O", None, Some(&[1]))] };
    let said = config(&json!({})).complete(&nothing.facts()).unwrap_err().to_string();
    assert!(said.contains("output `O` has no data_type") && said.contains("`output_dtype`"), "{said}");
}

#[test]
fn two_outputs_of_one_name_need_names_in_the_configuration() {
    let tensors = Tensors {
        inputs: vec![],
        outputs: vec![output("O", DType::U8, Some(&[1])), output("O", DType::U8, Some(&[1]))],
    };
    let error = config(&json!({})).complete(&tensors.facts()).unwrap_err().to_string();
    assert!(error.contains("two outputs are called `O`"), "{error}");
    completed(&json!({"output": [{"name": "FIRST"}]}), &tensors);
}

#[test]
fn split_outputs_are_refused_at_load() {
    let fields = json!({"parameters": {"split_along_outer_axis": {"string_value": "OUT"}}});
    let error = config(&fields).complete(&classify().facts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`split_along_outer_axis` is `OUT`"));
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

/// Any JSON, with the keys and values of configurations among the noise.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "IMAGE",
        "PIXELS",
        "O",
        "",
        "-1",
        "8",
        "TYPE_UINT8",
        "TYPE_FP32",
        "TYPE_STRING",
        "TYPE_INVALID",
        "KIND_CPU",
        "\u{0}\u{202e}é",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        let key = prop::sample::select(vec![
            "max_batch_size",
            "input",
            "output",
            "name",
            "data_type",
            "dims",
            "reshape",
            "shape",
            "allow_ragged_batch",
            "optional",
            "instance_group",
            "kind",
            "parameters",
            "num_threads",
            "split_along_outer_axis",
            "string_value",
            "dynamic_batching",
            "sequence_batching",
            "default_model_filename",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

/// A configuration that a server could send, right or wrong.
fn any_config() -> impl Strategy<Value = Value> {
    let dims = || prop::collection::vec(prop::sample::select(vec![-1_i64, 0, 1, 3, 224, i64::MIN]), 0..5);
    let types = prop::sample::select(vec!["TYPE_UINT8", "TYPE_FP32", "TYPE_STRING", "TYPE_INVALID"]);
    let names = prop::sample::select(vec!["IMAGE", "X", "Y", "O", ""]);
    let tensor = (names, types, dims(), prop::option::of(dims()), any::<bool>()).prop_map(
        |(name, data_type, dims, shape, ragged)| {
            let mut tensor =
                json!({"name": name, "data_type": data_type, "dims": dims, "allow_ragged_batch": ragged});
            if let Some(shape) = shape {
                tensor["reshape"] = json!({ "shape": shape });
            }
            tensor
        },
    );
    let tensors = || prop::collection::vec(tensor.clone(), 0..3);
    (-1_i64..3, tensors(), tensors(), any_json()).prop_map(|(size, inputs, outputs, noise)| {
        json!({"max_batch_size": size, "input": inputs, "output": outputs, "noise": noise})
    })
}

/// Everything that is done with a configuration, in the order in which it is done.
fn use_all(config: &mut ModelConfig, tensors: &Tensors) -> std::result::Result<(), TestCaseError> {
    let _ = (config.model_filename().is_ok(), config.instance_kinds().is_ok(), config.settings().is_ok());
    let valid_before = config.validate(&tensors.facts());
    if config.complete(&tensors.facts()).is_ok() {
        let map = config.validate(&tensors.facts()).unwrap();
        prop_assert_eq!(map.inputs.len(), tensors.inputs.len());
        prop_assert_eq!(map.outputs.len(), tensors.outputs.len());
        let json = config.to_json();
        let mut again = ModelConfig::parse(&json).unwrap();
        again.complete(&tensors.facts()).unwrap();
        prop_assert_eq!(json, again.to_json(), "completing twice changes nothing");
    } else if config.max_batch_size > 0 {
        prop_assert!(valid_before.is_err(), "completing does not break a batched model");
    }
    Ok(())
}

proptest! {
    #[test]
    fn no_json_brings_us_down(value in any_json()) {
        if let Ok(mut config) = ModelConfig::parse(&value.to_string()) {
            use_all(&mut config, &classify())?;
            use_all(&mut config, &two())?;
        }
    }

    #[test]
    fn no_configuration_brings_us_down(value in any_config()) {
        let mut config = ModelConfig::parse(&value.to_string()).unwrap();
        use_all(&mut config.clone(), &classify())?;
        use_all(&mut config, &two())?;
    }

    #[test]
    fn no_text_brings_us_down(at in 0..FULL.len(), with in any::<char>(), cut in any::<bool>()) {
        let (before, after) = FULL.split_at(at);
        let text = if cut { before.to_owned() } else { format!("{before}{with}{}", &after[1..]) };
        if let Ok(mut config) = ModelConfig::parse(&text) {
            use_all(&mut config, &classify())?;
        }
    }
}
