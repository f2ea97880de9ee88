//! What validation refuses, and how it says so.

use super::*;

type Change<'c> = &'c dyn Fn(&mut Value);

/// The same, with everything declared.
fn strict(tensors: Tensors) -> Tensors {
    Tensors { outputs: tensors.outputs.into_iter().map(declared).collect(), ..tensors }
}

#[test]
fn contradicting_shapes_are_an_error() {
    let fields = json!({"max_batch_size": 0, "input": [{"name": "IMAGE", "dims": [-1]}],
        "output": [{"name": "O", "dims": [-1, 3, 224, 224]}]});
    let error = config(&fields).complete(&strict(classify()).facts()).unwrap_err().to_string();
    assert!(error.contains("output `O` has 4 dimensions") && error.contains("the pipeline has 3"), "{error}");
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
fn differences_name_the_tensor_and_both_values() {
    let valid = |change: Change<'_>| {
        let mut fields = json!({"max_batch_size": 8,
            "input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [3, -1, 224]}]});
        change(&mut fields);
        fields
    };
    let tensors = strict(classify());
    config(&valid(&|_| ())).validate(&tensors.facts()).unwrap();
    let cases: [(Change<'_>, &[&str]); 13] = [
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
fn a_split_output_loses_the_first_dimension_of_its_samples() {
    let tensors = Tensors { inputs: vec![], outputs: vec![output("O", DType::U8, Some(&[-1, 4, 3]))] };
    let split = |name: &str, more: &Value| {
        let mut fields = json!({"parameters": {"split_along_outer_axis": {"string_value": name}}});
        fields.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        fields
    };
    let renamed = json!({"output": [{"name": "CROPS"}]});
    for name in ["O", "CROPS"] {
        let done = completed(&split(name, &renamed), &tensors);
        assert_eq!(done["output"][0]["dims"], json!([4, 3]), "{name}");
        assert!(config(&done).validate(&tensors.facts()).unwrap().outputs[0].split);
    }
    assert_eq!(completed(&split("X", &renamed), &tensors)["output"][0]["dims"], json!([-1, 4, 3]));
    let whole = json!({"max_batch_size": 4, "output": [{"name": "O", "data_type": "TYPE_UINT8", "dims": [-1, 4, 3]}]});
    let declared = strict(Tensors { inputs: vec![], outputs: tensors.outputs.clone() });
    assert!(refused(&split("O", &whole), &declared).contains("output `O` has 3 dimensions"));
    let flat = Tensors { inputs: vec![], outputs: vec![output("O", DType::U8, Some(&[4]))] };
    let said = config(&split("O", &json!({}))).complete(&flat.facts()).unwrap_err().to_string();
    assert!(said.contains("at least 2 dimensions, the pipeline has 1"), "{said}");
}

#[test]
fn an_optional_input_has_a_default_where_its_shape_is_fixed() {
    let tensors = classify();
    let with = |input: Value, parameters: Value| {
        json!({"max_batch_size": 4, "input": [input], "parameters": parameters,
            "output": [{"name": "O", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}]})
    };
    let input = |dims: i64, optional: bool| json!({"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [dims], "optional": optional});
    let default =
        |fields: &Value| config(fields).validate(&tensors.facts()).unwrap().inputs[0].default.clone();
    assert_eq!(default(&with(input(2, false), json!({}))), None);
    assert_eq!(default(&with(input(-1, true), json!({}))), None);
    assert_eq!(default(&with(input(2, true), json!({}))).unwrap().shape, [2]);
    let five = json!({"default.IMAGE": {"string_value": "5"}});
    assert_eq!(default(&with(input(-1, true), five.clone())).unwrap().shape, [1]);
    let said = refused(&with(input(2, false), five), &tensors);
    assert!(said.contains("parameter `default.IMAGE` is for no input with `optional: true`"), "{said}");
    let said = refused(&with(input(2, true), json!({"default.IMAGE": {"string_value": "1 x"}})), &tensors);
    assert!(said.contains("default of input `IMAGE`: `x` is no uint8"), "{said}");
}

/// As DALI's backend, which knows of outputs what their author declared and nothing else.
#[test]
fn what_differs_from_an_output_that_was_not_declared_is_noted() {
    let with = |change: Change<'_>| {
        let mut fields = json!({"max_batch_size": 8,
            "input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}]});
        change(&mut fields);
        fields
    };
    let cases: [(Change<'_>, &str, DataType); 3] = [
        (&|c| c["output"][0]["data_type"] = json!("TYPE_INT32"), "`TYPE_INT32`", DataType::Dense(DType::F32)),
        (&|c| c["output"][0]["dims"] = json!([224, 224, 3]), "[224, 224, 3]", DataType::Dense(DType::F32)),
        (&|c| c["output"][0]["dims"] = json!([-1, 9]), "[-1, 9]", DataType::Dense(DType::F32)),
    ];
    for (change, found, data_type) in cases {
        let mut config = config(&with(change));
        config.complete(&classify().facts()).unwrap();
        let map = config.validate(&classify().facts()).unwrap();
        let [warning] = map.warnings(&Settings::default()).try_into().unwrap();
        assert!(warning.starts_with("output `OUT` has ") && warning.contains(found), "{warning}");
        assert!(warning.ends_with(", which is what requests get"), "{warning}");
        // What is answered is what the pipeline makes; what the server is told is what the author wrote.
        assert_eq!(map.outputs[0].data_type, data_type);
        let told: Value = serde_json::from_str(&config.to_json()).unwrap();
        assert_eq!(told["output"][0], with(change)["output"][0]);
    }
    let strings = with(&|c| c["output"][0]["data_type"] = json!("TYPE_STRING"));
    assert!(refused(&strings, &classify()).contains("`TYPE_STRING`"));
    // Extents cannot be declared.
    let flipped = with(&|c| c["output"][0]["dims"] = json!([224, 224, 3]));
    config(&flipped).validate(&strict(classify()).facts()).unwrap();
}

#[test]
fn outputs_without_a_name_are_told_by_their_operators() {
    let float = |name: &str| output(name, DType::F32, None);
    let outputs =
        vec![float("__CropMirrorNormalize_2"), float("PIXELS"), float("__Split_7[1]"), float("__mine")];
    let said = refused(&json!({}), &Tensors { inputs: vec![], outputs });
    let names = "an unnamed one of `CropMirrorNormalize`, `PIXELS`, an unnamed one of `Split`, `__mine`";
    assert!(said.ends_with(&format!("the pipeline has 4 ({names})")), "{said}");
}

#[test]
fn a_decoupled_model_is_told_what_it_does_not_get() {
    let decoupled = config(&json!({"model_transaction_policy": {"decoupled": true}, "max_batch_size": 4,
        "input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [-1]}],
        "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [3, 224, 224]}]}));
    let [note] =
        decoupled.validate(&classify().facts()).unwrap().warnings(&Settings::default()).try_into().unwrap();
    assert!(note.contains("one response"), "{note}");
}

#[test]
fn a_pipeline_that_takes_videos_needs_a_decoupled_model_without_batches() {
    let tensors = classify();
    let facts = Facts { takes_videos: true, ..tensors.facts() };
    let listed = |more: Value| {
        let mut fields = json!({"input": [{"name": "IMAGE", "data_type": "TYPE_UINT8", "dims": [1, -1]}],
            "output": [{"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1, 3, 224, 224]}]});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config(&fields)
    };
    let said = |more: Value| listed(more).validate(&facts).unwrap_err().to_string();
    let decoupled = json!({"decoupled": true});
    assert!(said(json!({"max_batch_size": 0})).contains("model_transaction_policy { decoupled: true }"));
    let batched = said(json!({"max_batch_size": 4, "model_transaction_policy": decoupled}));
    assert!(batched.contains("max_batch_size is 4") && batched.contains("expected 0"), "{batched}");
    let fits = listed(json!({"max_batch_size": 0, "model_transaction_policy": decoupled})).validate(&facts);
    assert!(fits.unwrap().warnings(&Settings::default()).is_empty());
    let mut bare = config(&json!({"max_batch_size": 0}));
    bare.complete(&facts).unwrap();
    assert!(bare.is_decoupled() && bare.max_batch_size() == 0);
}

#[test]
fn what_loads_all_the_same_is_told() {
    let warnings = |optional: &str, split: &str| {
        let mut fields = json!({"max_batch_size": 4,
            "input": [{"name": "Y", "data_type": "TYPE_UINT8", "dims": [-1, -1, 3]}, {"name": "X", "data_type": "TYPE_FP32", "dims": [-1, 2]}],
            "output": [{"name": "A", "data_type": "TYPE_INT16", "dims": [-1, 4]}, {"name": "B", "data_type": "TYPE_FP32", "dims": [3]}],
            "parameters": {"split_along_outer_axis": {"string_value": split}}});
        for input in fields["input"].as_array_mut().unwrap() {
            input["optional"] = json!(input["name"] == optional);
        }
        let config = config(&fields);
        config.validate(&two().facts()).unwrap().warnings(&config.settings().unwrap())
    };
    assert_eq!(warnings("", ""), [""; 0]);
    let [told] = warnings("X", "").try_into().unwrap();
    assert!(
        told.contains("input `X` is optional but has no default") && told.contains("`default.X`"),
        "{told}"
    );
    let [told] = warnings("", "C").try_into().unwrap();
    assert!(told.contains("names 1 outputs, of which 0 are the model's"), "{told}");
}

#[test]
fn strings_are_encoded_files_alone() {
    let text = json!({"max_batch_size": 4, "input": [{"name": "X", "data_type": "TYPE_UINT8", "dims": [1]}],
        "output": [{"name": "O", "data_type": "TYPE_STRING", "dims": [1]}]});
    let unknown =
        Tensors { inputs: vec![input("X", DType::U8, 1)], outputs: vec![output("O", None, Some(&[1]))] };
    let said = refused(&text, &unknown);
    assert!(said.contains("only 1-D inputs of `TYPE_UINT8` can have"), "{said}");
}

#[test]
fn sizes_of_batches_that_no_batch_has_are_the_servers_to_refuse() {
    let said = |fields: Value| config(&fields).check_as_written().err().map(|error| error.to_string());
    let dynamic = |sizes: Value| json!({"preferred_batch_size": sizes});
    for fits in [
        json!({}),
        json!({"dynamic_batching": {}}),
        json!({"dynamic_batching": dynamic(json!([]))}),
        json!({"max_batch_size": 8, "dynamic_batching": dynamic(json!([1, "8"]))}),
        json!({"max_batch_size": 8, "sequence_batching": {"direct": {}}}),
        json!({"max_batch_size": 2, "sequence_batching": {"oldest": dynamic(json!([2]))}}),
    ] {
        assert_eq!(said(fits.clone()), None, "{fits}");
    }
    assert_eq!(
        said(json!({"dynamic_batching": dynamic(json!([4]))})).unwrap(),
        "`dynamic_batching` has the preferred_batch_size [4], expected a max_batch_size beside it: the server reads both before the \
         pipeline says how large batches are"
    );
    for (field, sizes) in
        [("dynamic_batching", [4, 9]), ("dynamic_batching", [0, 1]), ("sequence_batching", [9, 9])]
    {
        let inner = dynamic(json!(sizes));
        let inner = if field == "dynamic_batching" { inner } else { json!({"oldest": inner}) };
        assert_eq!(
            said(json!({"max_batch_size": 8, field: inner})).unwrap(),
            format!("`{field}` has the preferred_batch_size {sizes:?}, expected 1 to 8, the max_batch_size")
        );
    }
    assert!(said(json!({"dynamic_batching": 1})).unwrap().contains("is `1`, expected an object"));
}

#[test]
fn labels_at_which_the_server_would_end_are_refused() {
    let with = |tag: &str| json!({"max_batch_size": 4, "metric_tags": {tag: "a"}});
    for fits in ["team", "Team_2", "1a", ""] {
        completed(&with(fits), &classify());
    }
    for wrong in ["te-am", "te am", "_team", "__name__", "\u{e4}", "a.b", "a\n"] {
        let said = refused(&with(wrong), &classify());
        let begins = format!("`metric_tags` has the key `{}`, expected letters", wrong.escape_debug());
        assert!(said.starts_with(&begins), "{said}");
    }
}

#[test]
fn the_servers_own_batches_are_counted() {
    let count = |fields: Value| config(&fields).warm_ups();
    assert_eq!(count(json!({})).unwrap(), 0);
    let samples =
        json!([{"name": "a", "batch_size": 4, "count": 0}, {"name": "b", "count": "3"}, {"count": -1}]);
    assert_eq!(count(json!({"model_warmup": samples})).unwrap(), 5);
    assert!(
        count(json!({"model_warmup": {}})).is_err()
            && count(json!({"model_warmup": [{"count": "x"}]})).is_err()
    );
}
