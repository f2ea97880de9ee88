//! What a configuration is completed to.

use super::*;

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
            default: None,
            split: false,
            position: 0,
        };
        assert_eq!(map.inputs, [expected]);
        assert_eq!(map.outputs[0].name, "PIXELS");
    }
    assert_eq!(ModelConfig::parse(ONE_LINE).unwrap().model_filename().unwrap(), "model.dali");
    assert_eq!(ModelConfig::parse(NO_FILE).unwrap().model_filename().unwrap(), "model.gesso");
}

#[test]
fn an_input_that_names_files_is_text() {
    let files =
        |name: &str| json!({ "parameters": { format!("files.{name}"): { "string_value": "/data" } } });
    let done = completed(&files("IMAGE"), &classify());
    assert_eq!(
        (&done["input"][0]["data_type"], &done["input"][0]["dims"]),
        (&json!("TYPE_STRING"), &json!([1]))
    );
    assert_eq!(config(&done).settings().unwrap().files["IMAGE"], "/data");
    let mut bytes = files("IMAGE");
    bytes["input"] = json!([{ "name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1] }]);
    for wrong in [bytes, files("OTHER")] {
        let error = config(&wrong).complete(&classify().facts()).unwrap_err().to_string();
        assert!(error.contains("is for no input of `TYPE_STRING`, which can name files"), "{error}");
    }
}

#[test]
fn sequences_are_known() {
    let found = |fields: Value| config(&fields).sequences().unwrap();
    assert_eq!(found(json!({})), None);
    assert_eq!(found(json!({ "sequence_batching": {} })), Some(None));
    let idle = json!({ "sequence_batching": { "max_sequence_idle_microseconds": "2500000" } });
    assert_eq!(found(idle), Some(Some(std::time::Duration::from_millis(2_500))));
}

#[test]
fn what_the_server_adds_to_a_sequence_is_optional() {
    let mut fields = json!({ "max_batch_size": 4, "sequence_batching": {
        "control_input": [{ "name": "Y", "control": [{ "kind": "CONTROL_SEQUENCE_START" }] }] } });
    let done = completed(&fields, &two());
    let optional = |i: usize| done["input"][i].get("optional").cloned();
    assert_eq!((&done["input"][1]["name"], optional(1)), (&json!("Y"), Some(json!(true))));
    assert_eq!((&done["input"][0]["name"], optional(0)), (&json!("X"), None));
    fields["sequence_batching"]["state"] = json!([{ "input_name": "Y", "output_name": "A" }]);
    let error = config(&fields).complete(&two().facts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("`sequence_batching` has a `state`"), "{error}");
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
fn an_extent_of_zero_cannot_be_configured() {
    let tensors = Tensors { inputs: vec![], outputs: vec![output("O", DType::F32, Some(&[0, i64::MAX, 2]))] };
    assert_eq!(completed(&json!({}), &tensors)["output"][0]["dims"], json!([-1, i64::MAX, 2]));
}

#[test]
fn a_zero_that_is_written_stays() {
    let done = |written: Option<i64>| {
        let mut config = ModelConfig::parse(ONE_LINE).unwrap().with_written_max_batch_size(written);
        config.complete(&classify().facts()).unwrap();
        serde_json::from_str::<Value>(&config.to_json()).unwrap()
    };
    let unbatched = done(Some(0));
    assert_eq!(unbatched["max_batch_size"], 0);
    assert_eq!(
        (&unbatched["input"][0]["dims"], &unbatched["output"][0]["dims"]),
        (&json!([-1, -1]), &json!([-1, 3, 224, 224]))
    );
    // Another number in the file is not the configuration in force: that came from elsewhere.
    for written in [None, Some(8)] {
        assert_eq!(done(written)["max_batch_size"], 16);
    }
}
