//! Parameters of a model's configuration, as text.

use serde_json::json;

use super::*;

fn parse(parameters: &Value) -> Result<Settings> {
    Settings::parse(json!({ "parameters": parameters }).as_object().unwrap())
}

#[test]
fn threads_come_from_text() {
    let threads = |text: &str| parse(&json!({"num_threads": {"string_value": text}})).map(|s| s.num_threads);
    assert_eq!(threads("4").unwrap(), Some(4));
    assert_eq!(threads(" 16\n").unwrap(), Some(16));
    assert_eq!(threads("-1").unwrap(), None);
    assert_eq!(parse(&json!({})).unwrap(), Settings::default());
    assert_eq!(parse(&json!({"num_threads": 4})).unwrap().num_threads, Some(4));
    for wrong in ["", "four", "0", "-2", "1025", "4 threads", "99999999999999999999", "1e1", "0x4"] {
        let error = threads(wrong).unwrap_err().to_string();
        assert!(error.contains(&format!("`num_threads` is `{wrong}`")), "{error}");
        assert!(error.contains("1 to 1024"), "{error}");
    }
    let error = parse(&json!({"num_threads": {"string_value": [4]}})).unwrap_err().to_string();
    assert_eq!(error, "parameter `num_threads` is a list, expected a string");
    assert!(parse(&json!([])).unwrap_err().to_string().contains("`parameters` is a list"));
}

#[test]
fn batches_in_flight_are_a_small_number() {
    let batches = |text: &str| {
        parse(&json!({"max_batches_in_flight": {"string_value": text}})).map(|s| s.max_batches_in_flight)
    };
    assert_eq!(parse(&json!({})).unwrap().max_batches_in_flight, None);
    assert_eq!((batches("1").unwrap(), batches(" 16\n").unwrap()), (Some(1), Some(16)));
    for wrong in ["", "0", "-1", "17", "two"] {
        let error = batches(wrong).unwrap_err().to_string();
        assert_eq!(error, format!("parameter `max_batches_in_flight` is `{wrong}`, expected 1 to 16"));
    }
}

#[test]
fn memory_of_gpus_is_in_mebibytes() {
    let memory = |text: &str| parse(&json!({"gpu_memory_mb": text})).map(|s| s.gpu_memory.unwrap().get());
    assert_eq!(parse(&json!({})).unwrap().gpu_memory, None);
    assert_eq!((memory("1").unwrap(), memory(" 4096\n").unwrap()), (1 << 20, 4096 << 20));
    for wrong in ["", "0", "-1", "1.5", "1 GB", "16777217"] {
        let error = memory(wrong).unwrap_err().to_string();
        assert_eq!(error, format!("parameter `gpu_memory_mb` is `{wrong}`, expected 1 to 16777216"));
    }
}

#[test]
fn a_part_of_a_gpu_is_a_number_of_multiprocessors() {
    let part =
        |text: &str| parse(&json!({"gpu_multiprocessors": text})).map(|s| s.allowance().multiprocessors);
    assert_eq!(parse(&json!({})).unwrap().allowance().multiprocessors, None);
    assert_eq!(part(" 32\n").unwrap(), NonZeroUsize::new(32));
    for wrong in ["", "0", "-1", "4097", "a quarter"] {
        let error = part(wrong).unwrap_err().to_string();
        assert_eq!(error, format!("parameter `gpu_multiprocessors` is `{wrong}`, expected 1 to 4096"));
    }
}

#[test]
fn jpegs_are_decoded_where_the_author_says() {
    let path = |text: &str| parse(&json!({"jpeg_path": {"string_value": text}})).map(|s| s.jpeg_path);
    assert_eq!(parse(&json!({})).unwrap().jpeg_path, None);
    let known = [
        ("auto", None),
        ("engines", Some(JpegPath::Engines)),
        ("sm", Some(JpegPath::Sm)),
        ("cores", Some(JpegPath::Sm)),
        (" threads\n", Some(JpegPath::Threads)),
    ];
    for (text, expected) in known {
        assert_eq!(path(text).unwrap(), expected);
    }
    for wrong in ["", "gpu", "Engines"] {
        let error = path(wrong).unwrap_err().to_string();
        assert!(error.starts_with(&format!("parameter `jpeg_path` is `{wrong}`, expected")), "{error}");
    }
}

#[test]
fn jpegs_are_decoded_by_whom_the_author_says() {
    let decoder = |text: &str| parse(&json!({"jpeg_decoder": text})).map(|s| s.jpeg_decoder);
    assert_eq!(parse(&json!({})).unwrap().jpeg_decoder, None);
    assert_eq!(decoder("own").unwrap(), Some(JpegDecoder::Own));
    assert_eq!(decoder(" libjpeg-turbo\n").unwrap(), Some(JpegDecoder::LibjpegTurbo));
    for wrong in ["", "Own", "libjpeg"] {
        let error = decoder(wrong).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("parameter `jpeg_decoder` is `{wrong}`, expected `own` or `libjpeg-turbo`")
        );
    }
}

#[test]
fn resizes_have_the_arithmetic_that_the_author_names() {
    let arithmetic = |text: &str| parse(&json!({"arithmetic": text})).map(|s| s.arithmetic);
    assert_eq!(parse(&json!({})).unwrap().arithmetic, None);
    assert_eq!(arithmetic("dali").unwrap(), None);
    assert_eq!(arithmetic(" torchvision-float\n").unwrap(), Some(Arithmetic::TorchvisionFloat));
    assert_eq!(
        arithmetic("PIL").unwrap_err().to_string(),
        "parameter `arithmetic` is `PIL`, expected `dali`, `pillow`, `pillow13`, `torchvision`, `torchvision-float`, `opencv`"
    );
}

#[test]
fn formats_are_a_list() {
    let formats = |text: &str| parse(&json!({"formats": text})).map(|s| s.formats);
    assert_eq!(parse(&json!({})).unwrap().formats, None);
    assert_eq!(formats(" -avif\n").unwrap(), Some(Formats::parse("-avif").unwrap()));
    let error = formats("jpg").unwrap_err().to_string();
    assert!(error.starts_with("parameter `formats`: `jpg` is no format, expected some of jpeg, "), "{error}");
}

#[test]
fn smaller_jpegs_are_an_authors_choice() {
    let repeatable = |text: &str| parse(&json!({"deterministic": text})).map(|s| s.deterministic);
    assert!(repeatable("true").unwrap() && !repeatable("false").unwrap() && repeatable("1").is_err());
    let scaled = |text: &str| parse(&json!({"jpeg_scaled_decode": text})).map(|s| s.jpeg_scaled_decode);
    assert!(!parse(&json!({})).unwrap().jpeg_scaled_decode);
    assert_eq!((scaled("true").unwrap(), scaled(" false\n").unwrap()), (true, false));
    for wrong in ["", "1", "yes", "True"] {
        let error = scaled(wrong).unwrap_err().to_string();
        assert_eq!(error, format!("parameter `jpeg_scaled_decode` is `{wrong}`, expected `true` or `false`"));
    }
}

#[test]
fn unknown_parameters_are_named_and_the_servers_are_not() {
    let settings = parse(&json!({
        "num_thread": {"string_value": "4"}, "Quality": {"string_value": ""},
        "TRITON_BATCH_STRATEGY_PATH": {"string_value": "/x.so"},
    }))
    .unwrap();
    let warning = settings.warning().unwrap();
    assert!(warning.contains("`Quality`, `num_thread` (did you mean `num_threads`?)"), "{warning}");
    assert_eq!(settings.misspelt(), Some(("num_thread", "num_threads".to_owned())));
    let meant = |name: &str| {
        parse(&json!({ name: {"string_value": "1"} })).unwrap().misspelt().map(|(_, meant)| meant)
    };
    assert_eq!(meant("defaults.SCALE"), Some("default.SCALE".to_owned()));
    assert_eq!(meant("arithmetics"), Some("arithmetic".to_owned()));
    assert_eq!(
        (meant("file.IMAGE"), meant("labels.IMAGE"), meant("Quality")),
        (Some("files.IMAGE".to_owned()), None, None)
    );
    assert!(!warning.contains("TRITON_"), "{warning}");
    assert_eq!(parse(&json!({"num_threads": {"string_value": "2"}})).unwrap().warning(), None);
}

#[test]
fn outputs_to_split_stand_between_colons() {
    let split = |text: &str| parse(&json!({"split_along_outer_axis": {"string_value": text}})).unwrap();
    assert_eq!(split(":A::B:").split_along_outer_axis, ["A", "B"]);
    assert!(split("A:B").splits(&["x", "B"]) && !split("A:B").splits(&["C"]));
    assert!(!split("::").splits(&[""]));
}

#[test]
fn defaults_are_kept_by_input() {
    let settings =
        parse(&json!({"default.SCALE": {"string_value": "1.5"}, "default.a.b": {"string_value": ""}}));
    let defaults = settings.unwrap().defaults;
    let defaults: Vec<_> = defaults.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(defaults, [("SCALE", "1.5"), ("a.b", "")]);
}
