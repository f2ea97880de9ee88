//! Configurations that nobody would write: an answer or an error, never a panic.

use proptest::prelude::*;

use super::*;

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
        any::<i16>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
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
