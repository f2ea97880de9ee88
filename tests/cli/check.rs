//! `gesso check` on repositories of good and of bad models.

use crate::recorded::{Folder, Recording};
use crate::{errors, gesso, json, out};

/// A repository with one good model of each kind that the server knows, and a classifier of somebody else.
fn repository(name: &str) -> Folder {
    let folder = Folder::new(name);
    let pipeline = Recording::open("pipelines").case("classify").pipeline;
    folder.write("one_line/config.pbtxt", b"backend: \"gesso\"\n");
    folder.write("one_line/1/model.dali", &pipeline);
    folder.write("named.gesso/1/model.dali", &pipeline);
    folder.write("dropin/config.pbtxt", b"backend: \"dali\"\nmax_batch_size: 8\noutput { name: \"OUT\" }\n");
    folder.write("dropin/2/model.dali", b"an old version that nobody loads");
    folder.write("dropin/10/model.dali", &pipeline);
    folder.write("classifier/config.pbtxt", b"backend: \"onnxruntime\"\n");
    folder
}

#[test]
fn good_models_are_ok_with_their_configuration() {
    let folder = repository("check good");
    let path = folder.path("").display().to_string();
    let text = out(&gesso(&["check", &path]));
    assert!(text.contains("ok       dropin, version 10: 3 operators, IMAGE TYPE_UINT8 [-1] -> OUT TYPE_FP32 [3, 64, 64], batches of up to 8"), "{text}");
    assert!(
        text.contains("ok       named.gesso, version 1")
            && text.contains("skipped  classifier: backend `onnxruntime`"),
        "{text}"
    );
    assert!(text.ends_with("3 ok, 0 failed, 1 of other backends\n"), "{text}");
    let reports = json(&gesso(&["check", "--json", &path]));
    let one_line = reports.as_array().unwrap().iter().find(|report| report["model"] == "one_line").unwrap();
    assert_eq!(
        (&one_line["config"]["max_batch_size"], &one_line["config"]["dynamic_batching"]),
        (&3.into(), &serde_json::json!({}))
    );
    let config = out(&gesso(&["check", "--config", &path]));
    assert!(
        config.contains("allow_ragged_batch: true") && config.contains("data_type: TYPE_FP32"),
        "{config}"
    );
    let strict = gesso(&["check", "--disable-auto-complete-config", &path]);
    assert_eq!(strict.status.code(), Some(1));
}

#[test]
fn bad_models_say_why_and_where() {
    let folder = Folder::new("check bad");
    let pipeline = Recording::open("pipelines").case("classify").pipeline;
    let config = |name: &str, text: &str| {
        folder.write(&format!("{name}/config.pbtxt"), format!("backend: \"gesso\"\n{text}").as_bytes());
        folder.write(&format!("{name}/1/model.dali"), &pipeline);
    };
    config("dtype", "input { name: \"IMAGE\"\n  data_type: TYPE_FP32\n}\n");
    config("name", "input {\n name: \"IMAGES\" }\n");
    config("field", "\nmax_batch_sise: 8\n");
    config("threads", "parameters { key: \"num_threads\" value { string_value: \"many\" } }\n");
    config("other_name", "name: \"another\"\n");
    config("file", "default_model_filename: \"../x\"\n");
    config("kind", "instance_group { kind: KIND_TPU }");
    config("tags", "max_batch_size: 8\nmetric_tags { key: \"cost-center\" value: \"7\" }\n");
    config("preferred", "dynamic_batching { preferred_batch_size: [ 4, 8 ] }\n");
    config("too_large", "max_batch_size: 4\ndynamic_batching {\n preferred_batch_size: [ 4, 8 ] }\n");
    config("sequences", "sequence_batching { oldest { preferred_batch_size: 2 } }\n");
    config("clients", "parameters { key: \"max_requests_per_client\" value { string_value: \"2\" } }\n");
    folder.write("broken/config.pbtxt", b"backend: \"gesso\"\n");
    folder.write("broken/1/model.dali", &pipeline[..pipeline.len() / 2]);
    folder.write("empty/config.pbtxt", b"backend: \"gesso\"\n");
    folder.write("nothing/config.pbtxt", b"backend: \"gesso\"\n");
    std::fs::create_dir(folder.path("nothing/1")).unwrap();
    let augmented = std::fs::read(crate::rand_augment()).unwrap();
    folder.write("augmented/config.pbtxt", b"backend: \"gesso\"\n");
    // An operator that no version of DALI has.
    let name = augmented.windows(10).position(|bytes| bytes == b"WarpAffine").unwrap();
    let mut unknown = augmented.clone();
    unknown[name..name + 10].copy_from_slice(b"WarpBeyond");
    folder.write("augmented/1/model.dali", &unknown);

    let path = folder.path("").display().to_string();
    let output = gesso(&["check", &path]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in [
        "dtype, version 1: config.pbtxt, line 3: input `IMAGE` has data_type `TYPE_FP32`",
        "name, version 1: config.pbtxt, line 2: input `IMAGES` of the configuration is not in the pipeline",
        "field: config.pbtxt, line 3: `max_batch_sise` is no field of a model configuration; did you mean `max_batch_size`?",
        "threads, version 1: config.pbtxt, line 2: parameter `num_threads` is `many`",
        "other_name, version 1: config.pbtxt, line 2: `name` is \"another\", expected the name of the directory, `other_name`",
        "file, version 1: config.pbtxt, line 2: `default_model_filename` is `../x`",
        "kind, version 1: config.pbtxt, line 2: model configuration: `instance_group` has the unknown kind `KIND_TPU`",
        "tags, version 1: config.pbtxt, line 3: `metric_tags` has the key `cost-center`, expected letters of ASCII, digits and `_`",
        "preferred, version 1: config.pbtxt, line 2: `dynamic_batching` has the preferred_batch_size [4, 8], expected a max_batch_size beside it",
        "too_large, version 1: config.pbtxt, line 3: `dynamic_batching` has the preferred_batch_size [4, 8], expected 1 to 4",
        "sequences, version 1: config.pbtxt, line 2: `sequence_batching` has the preferred_batch_size [2], expected a max_batch_size",
        "clients, version 1: config.pbtxt, line 2: parameter `max_requests_per_client` needs `client_header`",
        "broken, version 1: `",
        "not a serialized DALI pipeline",
        "/empty` has no directory of a version",
        "nothing, version 1: there is no model file: looked for `",
        "augmented, version 1: `",
        ": operator `",
        "0 ok, 16 failed",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(errors(&gesso(&["check", "no such folder"])).contains("cannot read `no such folder`"));
}

/// The ensemble of the guides, and one with a mistake in each place.
#[test]
fn ensembles_fit_together_or_say_where_not() {
    const GOOD: &str = r#"platform: "ensemble"
max_batch_size: 3
input { name: "JPEG" data_type: TYPE_UINT8 dims: [ -1 ] }
output { name: "SCORES" data_type: TYPE_FP32 dims: [ 10 ] }
ensemble_scheduling {
  step [
    { model_name: "preprocess" model_version: -1
      input_map { key: "IMAGE" value: "JPEG" } output_map { key: "OUT" value: "pixels" } },
    { model_name: "classifier" model_version: -1
      input_map { key: "input" value: "pixels" } output_map { key: "scores" value: "SCORES" } }
  ]
}
"#;
    let folder = Folder::new("check ensembles");
    folder.write("preprocess/config.pbtxt", b"backend: \"gesso\"\noutput { name: \"OUT\" }\n");
    folder.write("preprocess/1/model.dali", &Recording::open("pipelines").case("classify").pipeline);
    folder.write(
        "classifier/config.pbtxt",
        br#"backend: "onnxruntime" max_batch_size: 8
        input { name: "input" data_type: TYPE_FP32 dims: [ 3, -1, 64 ] } output { name: "scores" data_type: TYPE_FP32 dims: [ 10 ] }"#,
    );
    folder.write("classify/config.pbtxt", GOOD.as_bytes());
    let path = folder.path("").display().to_string();
    // A small picture, as many checks follow.
    let sample = format!(
        "IMAGE={}",
        folder.write("a.jpg", &Recording::open("pipelines").case("classify").inputs["IMAGE"][0].bytes)
    );
    let check = || gesso(&["check", &path, "--sample", &sample]);
    let text = out(&check());
    assert!(text.contains("ok       classify: ensemble of preprocess, classifier\n"), "{text}");
    assert!(text.ends_with("2 ok, 0 failed, 1 of other backends\n"), "{text}");
    let reports = json(&gesso(&["check", "--json", &path]));
    let ensemble = reports.as_array().unwrap().iter().find(|report| report["model"] == "classify").unwrap();
    assert_eq!(ensemble["steps"], serde_json::json!(["preprocess", "classifier"]));

    for (right, wrong, expected) in [
        (
            "\"classifier\" model_version: -1",
            "\"clasifier\" model_version: -1",
            "line 5: step 2 of `ensemble_scheduling`, model `clasifier`: there is no such model",
        ),
        (
            "\"preprocess\" model_version: -1",
            "\"preprocess\" model_version: 7",
            "model `preprocess`: its version 7 is not loaded",
        ),
        (
            "key: \"IMAGE\"",
            "key: \"IMAGES\"",
            "`input_map` names `IMAGES`, but the model's inputs are `IMAGE`",
        ),
        ("key: \"OUT\"", "key: \"PIXELS\"", "`output_map` names `PIXELS`, but the model's outputs are `OUT`"),
        (
            "key: \"input\" value: \"pixels\"",
            "key: \"input\" value: \"pixel\"",
            "input `input` takes `pixel`, which is no input of the ensemble and no output",
        ),
        (
            "input_map { key: \"input\" value: \"pixels\" }",
            "",
            "it has no `input_map`, expected one for each input",
        ),
        (
            "TYPE_UINT8 dims: [ -1 ]",
            "TYPE_FP32 dims: [ -1 ]",
            "input `IMAGE` takes TYPE_UINT8, but the ensemble's input is TYPE_FP32",
        ),
        (
            "dims: [ 10 ]",
            "dims: [ 1000 ]",
            "output `SCORES` of the ensemble takes dims [1000], but output `scores` of model `classifier` has dims [10]",
        ),
        ("value: \"SCORES\"", "value: \"OTHER\"", "output `SCORES` of the ensemble is made by no step"),
        (
            "value: \"SCORES\"",
            "value: \"pixels\"",
            "`pixels` is output `scores` of model `classifier` and output `OUT` of model `preprocess`, expected one",
        ),
        (
            "output {",
            "input { name: \"MASK\" data_type: TYPE_UINT8 dims: [ -1 ] }\noutput {",
            "line 4: input `MASK` of the ensemble goes to no step",
        ),
        (
            "{ key: \"OUT\" value: \"pixels\" }",
            "{ key: \"OUT\" value: \"pixels\" } }, { model_name: \"preprocess\" input_map { key: \"IMAGE\" value: \"JPEG\" } output_map { key: \"OUT\" value: \"extra\" }",
            "`extra` of `output_map` goes to no step and is no output of the ensemble",
        ),
        (
            "platform",
            "name: \"other\" platform",
            "`name` is \"other\", expected the name of the directory, `classify`",
        ),
        ("key: \"input\" value: \"pixels\"", "key: \"input\" value: \"none\"", "line 5: step 2 of"),
        (
            "max_batch_size: 3",
            "max_batch_size: 64",
            "model `preprocess`: takes batches of up to 3, but `max_batch_size` of the ensemble is 64",
        ),
        ("model_name: \"preprocess\"", "model_name: \"broken\"", "model `broken`: it does not load"),
    ] {
        assert!(GOOD.contains(right), "{right}");
        folder.write("broken/config.pbtxt", b"backend: \"gesso\"\n");
        folder.write("classify/config.pbtxt", GOOD.replacen(right, wrong, 1).as_bytes());
        let output = check();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        let failed = text.lines().find(|line| line.starts_with("failed   classify")).unwrap_or_default();
        assert!(failed.contains(expected), "{expected}\n{text}");
    }
    folder.write("classify/config.pbtxt", b"platform: \"ensemble\"\n");
    let text = String::from_utf8(check().stdout).unwrap();
    assert!(text.contains("classify: `ensemble_scheduling` has no `step`"), "{text}");
    let tagged = b"platform: \"ensemble\"\nmetric_tags { key: \"a.b\" value: \"c\" }\n";
    folder.write("classify/config.pbtxt", tagged);
    let text = String::from_utf8(check().stdout).unwrap();
    assert!(text.contains("classify: config.pbtxt, line 2: `metric_tags` has the key `a.b`"), "{text}");
}

/// A server loads the model all the same, without what the author meant.
#[test]
fn a_misspelt_parameter_fails() {
    let folder = Folder::new("check parameters");
    let write = |parameter: &str| {
        let text = format!(
            "backend: \"gesso\"\nparameters {{ key: \"{parameter}\" value {{ string_value: \"2\" }} }}\n"
        );
        folder.write("preprocess/config.pbtxt", text.as_bytes());
    };
    folder.write("preprocess/1/model.dali", &Recording::open("pipelines").case("classify").pipeline);
    let path = folder.path("").display().to_string();
    write("num_thread");
    let output = gesso(&["check", &path]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    let expected = "config.pbtxt, line 2: parameter `num_thread` is not known and has no effect in a server; did you mean `num_threads`?";
    assert!(text.contains(expected), "{text}");
    // For a program of the author's, perhaps.
    write("owner");
    assert!(
        out(&gesso(&["check", &path]))
            .contains("note: unknown parameters in the model configuration, without effect: `owner`")
    );
}

#[test]
fn what_the_server_would_say_is_noted() {
    let folder = Folder::new("check notes");
    let pipeline = Recording::open("pipelines").case("classify").pipeline;
    let config = |name: &str, text: &str| {
        folder.write(&format!("{name}/config.pbtxt"), format!("backend: \"dali\"\n{text}").as_bytes());
        folder.write(&format!("{name}/1/model.dali"), &pipeline);
    };
    config("dims", "output {\n  name: \"OUT\"\n  dims: [ 24, 24, 3 ]\n}\n");
    config("dtype", "output { name: \"OUT\" data_type: TYPE_INT32 }\n");
    config("decoupled", "model_transaction_policy { decoupled: true }\n");
    let video = pipeline.windows(15).position(|bytes| bytes == b"decoders__Image").unwrap();
    let mut without = pipeline.clone();
    without[video..video + 15].copy_from_slice(b"inputs__MyVideo");
    config("video", "model_transaction_policy { decoupled: true }\n");
    folder.write("video/1/model.dali", &without);

    let path = folder.path("").display().to_string();
    let text = String::from_utf8(gesso(&["check", &path]).stdout).unwrap();
    for expected in [
        "note: output `OUT` has dims [24, 24, 3] in the configuration, the pipeline has [3, 64, 64], which is what requests get",
        "note: output `OUT` has data_type `TYPE_INT32` in the configuration, the pipeline has `TYPE_FP32`, which is what",
        "note: the model is decoupled, but every request gets one response",
        "operator `inputs__MyVideo` (`__Image_0`): this operator is not known to this version of Gesso",
        "3 ok, 1 failed",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    if gesso::pipeline::devices().is_err() {
        config("on_gpu", "instance_group { kind: KIND_GPU }\n");
        let text = String::from_utf8(gesso(&["check", &path]).stdout).unwrap();
        assert!(text.contains("a server on this host refuses the model before Gesso sees it"), "{text}");
    }
}

/// What is wrong with a window larger than every picture is seen in a sample alone.
#[test]
fn a_sample_is_run_through() {
    let folder = Folder::new("check sample");
    let recording = Recording::open("pipelines");
    folder.write("good/config.pbtxt", b"backend: \"gesso\"\n");
    folder.write("good/1/model.dali", &recording.case("classify").pipeline);
    folder.write("region/config.pbtxt", b"backend: \"gesso\"\n");
    folder.write("region/1/model.dali", &recording.case("region").pipeline);
    let path = folder.path("").display().to_string();
    let text = out(&gesso(&["check", &path]));
    let good = text.split("region").next().unwrap();
    assert!(good.contains("ok       good") && !good.contains("no sample was run"), "{text}");
    assert!(text.contains("note: no sample was run, as nothing is known of what `"), "{text}");

    let broken = folder.write("broken.jpg", &recording.case("classify").inputs["IMAGE"][0].bytes[..100]);
    let output = gesso(&["check", &path, "--sample", &format!("IMAGE={broken}")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("failed   good"), "{text}");
    assert!(text.contains("loads, but the sample fails"), "{text}");
    let said = |sample: &str| errors(&gesso(&["check", &path, "--sample", sample]));
    assert!(said("PICTURE=a.jpg").contains("no model that loads has an input `PICTURE`"));
    assert!(said("IMAGE=").contains("expected `NAME=FILE`"));
    let nothing = Folder::new("check nothing");
    let output = gesso(&["check", &nothing.path("").display().to_string()]);
    assert!(
        output.status.code() == Some(1) && errors(&output).contains("there is no model of Gesso or DALI in")
    );
}

/// To open one would wait for somebody to write.
#[test]
fn pipes_are_no_files_of_a_model() {
    let folder = Folder::new("check pipes");
    let pipeline = Recording::open("pipelines").case("classify").pipeline;
    folder.write("config/1/model.dali", &pipeline);
    folder.write("file/config.pbtxt", b"backend: \"gesso\"\n");
    std::fs::create_dir_all(folder.path("file/1")).unwrap();
    for path in ["config/config.pbtxt", "file/1/model.dali"] {
        assert!(std::process::Command::new("mkfifo").arg(folder.path(path)).status().unwrap().success());
    }
    let output = gesso(&["check", &folder.path("").display().to_string()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((output.status.code(), text.matches("is not a regular file").count()), (Some(1), 2), "{text}");
}
