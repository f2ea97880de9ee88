//! Descriptions that somebody wrote: what they may leave out, and what no file can hold.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::pipeline::Pipeline;
use crate::tensor::Device;

/// A whole pipeline, with nothing but what it must say.
fn smallest() -> Json {
    json!({
        "max_batch_size": 8,
        "inputs": [{"name": "JPEGS", "dtype": "uint8", "ndim": 1}],
        "operators": [
            {"name": "decoders__Image", "device": "mixed", "inputs": ["JPEGS"], "outputs": ["images"]},
            {"name": "random__CoinFlip", "outputs": ["coin"], "arguments": {"probability": 0.5, "seed": 7}},
            {"name": "Resize", "device": "gpu", "inputs": ["images"], "outputs": ["small"],
             "arguments": {"size": [64.0, 48.0], "interp_type": 1}},
            {"name": "CropMirrorNormalize", "device": "gpu", "inputs": ["small"], "argument_inputs": {"mirror": "coin"},
             "outputs": ["pixels"], "arguments": {"output_layout": "CHW", "mean": [0, 0.5, 1], "dtype": 9}},
        ],
        "outputs": [{"name": "pixels"}, {"name": "images", "device": "cpu", "dtype": "uint8", "ndim": 3}],
    })
}

fn write(description: &Json) -> Result<Vec<u8>> {
    let description: Description = serde_json::from_value(description.clone())
        .map_err(|error| Error::invalid(format!("not a description: {error}")))?;
    author(&description)
}

fn refused(change: impl Fn(&mut Json)) -> String {
    let mut description = smallest();
    change(&mut description);
    write(&description).err().map_or_else(|| format!("{description} is written"), |error| error.to_string())
}

#[test]
fn what_is_left_out_is_what_dali_writes() {
    let bytes = write(&smallest()).unwrap();
    for device in [Device::Cpu, Device::Gpu] {
        let pipeline = Pipeline::load(&bytes, device).unwrap();
        assert_eq!((pipeline.inputs()[0].name.as_str(), pipeline.max_batch_size()), ("JPEGS", 8));
        assert_eq!(pipeline.outputs()[0].name, "pixels");
    }
    let def = PipelineDef::decode(bytes.as_slice()).unwrap();
    assert_eq!((def.num_threads, def.device_id, def.executor_type), (Some(4), Some(NO_DEVICE), Some(11)));
    let [source, decode, coin, resize, normalize] = def.op.as_slice() else { panic!("{:?}", def.op) };
    let keywords = |op: &OpDef| op.args.iter().filter_map(|arg| arg.name.clone()).collect::<Vec<_>>();
    assert_eq!(keywords(source), ["device", "preserve_name", "dtype", "ndim"]);
    assert_eq!(keywords(coin), ["device", "probability", "seed"]);
    let devices =
        |edges: &[InputOutput]| edges.iter().filter_map(|edge| edge.device.clone()).collect::<Vec<_>>();
    assert_eq!(
        (devices(&decode.input), devices(&decode.output)),
        (vec!["cpu".into()], vec!["gpu".to_owned()])
    );
    assert_eq!(
        (devices(&normalize.input), devices(&def.pipe_outputs)),
        (vec!["gpu".into(), "cpu".into()], vec!["gpu".into(), "cpu".into()])
    );
    let ids: Vec<Option<i32>> = def.op.iter().map(|op| op.logical_id).collect();
    assert_eq!(ids, [Some(0), Some(1), Some(2), Some(3), Some(4)]);
    let argument = |op: &OpDef, name: &str| {
        op.args.iter().find(|arg| arg.name.as_deref() == Some(name)).cloned().unwrap()
    };
    let size = argument(resize, "size");
    assert_eq!((size.is_vector, size.extra_args[1].floats.as_slice()), (Some(true), &[48.0][..]));
    assert_eq!(size.extra_args[1].name.as_deref(), Some("element 1"));
    assert_eq!(argument(resize, "interp_type").ints, [1]);
    // Numbers of which one is a float are floats.
    let mean = argument(normalize, "mean");
    assert_eq!((mean.r#type.as_deref(), mean.extra_args[2].floats.as_slice()), (Some("float"), &[1.0][..]));
    // And it stays what it is.
    let described = Pipeline::describe(&bytes).unwrap();
    assert_eq!(author(&described).unwrap(), bytes);
}

#[test]
fn types_are_stated_where_json_has_none() {
    let mut description = smallest();
    description["operators"][2]["arguments"] = json!({"size": [], "roi_start": ["nan", "-inf", 3], "resize_x": 4, "interp_type": 9.0e18, "antialias": 1});
    description["operators"][2]["stored"] = json!([
        {"name": "resize_x", "type": "float"},
        {"name": "size", "type": "float", "list": true},
        {"name": "roi_start", "type": "float", "list": true},
        {"name": "antialias", "type": "bool"},
        {"name": "not_there", "type": "bool"},
    ]);
    let described = Pipeline::describe(&write(&description).unwrap()).unwrap();
    let stored: Vec<(&str, ArgumentType, bool)> = described.operators[2]
        .stored
        .iter()
        .map(|entry| (entry.name.as_str(), entry.kind, entry.list))
        .collect();
    let (float, bool) = (ArgumentType::Float, ArgumentType::Bool);
    assert_eq!(
        stored[..4],
        [
            ("resize_x", float, false),
            ("size", float, true),
            ("roi_start", float, true),
            ("antialias", bool, false)
        ]
    );
    assert_eq!(stored[4..], [("interp_type", float, false), ("device", ArgumentType::String, false)]);
    let arguments = &described.operators[2].arguments;
    assert_eq!(
        (&arguments["resize_x"], &arguments["size"]),
        (&Value::Floats(vec![4.0]), &Value::Floats(vec![]))
    );
    let Value::Floats(odd) = &arguments["roi_start"] else { panic!("{arguments:?}") };
    assert!(odd[0].is_nan() && odd[1] == f32::NEG_INFINITY && odd[2] == 3.0);
    // They come through JSON as they are.
    let again: Description = serde_json::from_str(&serde_json::to_string(&described).unwrap()).unwrap();
    assert_eq!(author(&again).unwrap(), author(&described).unwrap());
}

#[test]
fn what_no_file_can_hold_is_said_with_its_place() {
    let set = |place: &'static str, value: Json| {
        refused(move |description| *description.pointer_mut(place).unwrap() = value.clone())
    };
    let resize = "/operators/2/arguments/size";
    let cases = [
        (set("/max_batch_size", json!(0)), "`max_batch_size` is 0, expected 1 to 65536"),
        (set("/max_batch_size", json!("many")), "expected i32"),
        (set("/outputs", json!([])), "the pipeline has no outputs"),
        (
            set("/outputs/0/name", json!("nothing")),
            "output 0: edge `nothing` is produced by nothing before it",
        ),
        (set("/outputs/0", json!({"name": "pixels", "devcie": "cpu"})), "unknown field `devcie`"),
        (set("/outputs/0/name", json!("")), "output 0: edge `` is produced by nothing"),
        (set("/outputs/1/device", json!("tpu")), "output 1: device is `tpu`"),
        (
            set("/outputs/1/dtype", json!("complex64")),
            "output `images`: `dtype` is `complex64`, expected one of uint8",
        ),
        (set("/inputs/0/name", json!("")), "its name has 0 bytes"),
        (set("/inputs/0/name", json!("x".repeat(300))), "its name has 300 bytes"),
        (set("/inputs/0/ndim", json!(1.5)), "expected i64"),
        (
            set("/operators/0/inputs", json!(["small"])),
            "operator `decoders__Image` (`images`): edge `small` is produced by nothing before it",
        ),
        (set("/operators/0/device", json!("tpu")), "device is `tpu`, expected `cpu` or `gpu` or `mixed`"),
        (set("/operators/0/outputs", json!(["JPEGS"])), "the instance name is used twice"),
        (set("/operators/0/name", json!("")), "its operator's name has 0 bytes"),
        (set("/operators/3/argument_inputs", json!({"mirror": "flip"})), "argument `mirror`: edge `flip`"),
        (
            set(resize, json!([1, "two"])),
            "operator `Resize` (`small`): argument `size`: elements of several types",
        ),
        (set(resize, json!([[1]])), "a list in a list"),
        (set(resize, json!([])), "an empty list, whose type is not known"),
        (set(resize, json!(u64::MAX)), "beyond 64 bits"),
        (set(resize, json!({"a": 1})), "expected a number, a text"),
        (set(resize, json!(null)), "expected a number, a text"),
        (
            refused(|d| d["operators"][2]["stored"] = json!([{"name": "size", "type": "int64"}])),
            "argument `size`: 64, expected an integer",
        ),
        (
            refused(|d| d["operators"][2]["stored"] = json!([{"name": "size", "type": "float"}])),
            "argument `size` has 2 values, expected at most 1",
        ),
        (
            refused(|d| d["operators"][2]["stored"] = json!([{"name": "size", "type": "int"}])),
            "unknown variant `int`",
        ),
        (
            refused(|d| d["operators"][2]["bookkeeping"] = json!({"size": [1.0]})),
            "stands in `arguments` and in `bookkeeping`",
        ),
        (
            refused(|d| d["operators"][2]["input_devices"] = json!(["gpu", "gpu"])),
            "names 2 devices, expected one for each of 1 inputs",
        ),
        (
            refused(|d| d["operators"][2]["unreadable"] = json!(["features"])),
            "argument `features` of the file that was described",
        ),
        (refused(|d| d["operators"] = json!([{"outputs": ["x"]}])), "missing field `name`"),
        (
            refused(|d| {
                d["operators"] =
                    Json::Array(vec![json!({"name": "a", "outputs": []}); limits::MAX_OPERATORS]);
            }),
            "16385 inputs and operators",
        ),
        (refused(|d| *d = json!([])), "not a description"),
    ];
    for (found, expected) in &cases {
        assert!(found.contains(expected), "`{expected}` is not in `{found}`");
    }
}

#[test]
fn lists_have_an_end() {
    let mut description = smallest();
    description["operators"][2]["arguments"]["size"] =
        Json::Array(vec![json!(1); limits::MAX_LIST_ARGUMENT + 1]);
    let error = write(&description).err().unwrap().to_string();
    assert!(error.contains("more than 1048576 elements"), "{error}");
}

#[test]
fn features_are_written_in_dalis_order() {
    let with = |text: &str| {
        let mut description = smallest();
        description["operators"][1]["arguments"]["features"] = json!([text]);
        description["operators"][1]["stored"] =
            json!([{"name": "features", "type": "TFRecord", "list": true}]);
        write(&description)
    };
    let text = r#"{"default_value": ["nan"], "has_shape": [false], "shape": [], "type": [2]}"#;
    let def = PipelineDef::decode(with(text).unwrap().as_slice()).unwrap();
    let features = def.op[2].args.iter().find(|arg| arg.name.as_deref() == Some("features")).unwrap();
    assert_eq!(features.extra_args[0].r#type.as_deref(), Some("TFRecord"));
    let parts = &features.extra_args[0].extra_args;
    let names: Vec<_> = parts.iter().filter_map(|part| part.name.as_deref()).collect();
    assert_eq!(names, ["type", "has_shape", "shape", "default_value"]);
    assert_eq!((&parts[0].ints[..], &parts[1].bools[..]), (&[2][..], &[false][..]));
    assert_eq!((parts[2].r#type.as_deref(), parts[3].floats[0].is_nan()), (None, true));
    for wrong in ["", "[]", r#"{"type": 1}"#, r#"{"other": []}"#, r#"{"shape": [null]}"#] {
        let error = with(wrong).err().unwrap().to_string();
        assert!(error.contains("argument `features`: "), "{error}");
    }
}

proptest! {
    #[test]
    fn damaged_json_never_panics(at in 0usize..4096, value: u8, cut in 0usize..4096) {
        let mut text = smallest().to_string().into_bytes();
        let length = text.len();
        text[at % length] = value;
        text.truncate(length - if cut < 2048 { 0 } else { cut % length });
        if let Ok(description) = serde_json::from_slice::<Description>(&text) && let Ok(bytes) = author(&description) {
            let _ = Pipeline::load(&bytes, Device::Cpu);
        }
    }
}
