//! Models that DALI's backend loads although their configuration is not what the pipeline is, under the stand-in
//! server.

use crate::host::objects::{self, Instance, Model};
use crate::host::request::{Request, UINT8};
use crate::host::{Host, at, book, code};
use crate::library::Plugin;

/// The first input and output are those of `prepare`; the second ones pass through whatever comes.
const THROUGH: &str = r#"{"max_batch_size":4,
    "input":[{"name":"raw","data_type":"TYPE_UINT8","dims":[-1],"allow_ragged_batch":true}],
    "output":[{"name":"pixels"},{"name":"same","data_type":"TYPE_INT32","dims":[-1]}]}"#;

/// A model and an instance of it, with a log.
fn ready(host: &Host, plugin: &Plugin, name: &str, config: &str) -> (*mut Model, *mut Instance) {
    let backend = host.backend();
    plugin.initialize(backend).unwrap();
    objects::drop_backend(backend);
    let model = host.model_of(name, config);
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    (model, instance)
}

/// Lines of the log of that level (1: warning, 2: error) that hold `text`.
fn lines(level: u32, text: &str) -> Vec<String> {
    let book = book();
    let found = book.log.iter().filter(|(found, line)| *found == level && line.contains(text));
    found.map(|(_, line)| line.clone()).collect()
}

/// An image of two pixels and three bytes that pass through.
fn both(host: &Host, id: &str, outputs: &[&str]) -> *mut Request {
    let image = host.input("image", UINT8, &[1, 1, 2, 1], &[(0, &[1, 2])]);
    let raw = host.input("raw", UINT8, &[1, 3], &[(0, &[7, 8, 9])]);
    host.request_of(id, vec![image, raw], outputs)
}

#[test]
fn an_output_of_another_type_than_configured_is_answered_as_it_is() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin, "through", THROUGH);
    // Nobody asks for it: nobody cares.
    plugin.execute(instance, &mut [both(&host, "a", &["pixels"])]).unwrap();
    assert_eq!(lines(1, "`same`"), Vec::<String>::new());
    for id in ["b", "c"] {
        let wanted: &[&str] = if id == "b" { &["pixels", "same"] } else { &["same"] };
        plugin.execute(instance, &mut [both(&host, id, wanted), both(&host, "d", &["pixels"])]).unwrap();
    }
    let [warning] = lines(1, "`same`").try_into().unwrap();
    for word in ["`TYPE_INT32`", "`TYPE_UINT8`", "model=through"] {
        assert!(warning.contains(word), "{warning}");
    }
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    let book = book();
    assert!(book.answers.iter().all(|answer| answer.failure.is_none()), "{:?}", book.answers);
    let outputs: Vec<usize> = book.answers.iter().map(|answer| answer.outputs.len()).collect();
    assert_eq!(outputs, [1, 2, 1, 1, 1]);
    let same = &book.answers[1].outputs[1];
    assert_eq!((same.name.as_str(), same.dtype, &same.shape[..]), ("same", UINT8, &[1, 3][..]));
    assert_eq!(same.bytes, [7, 8, 9]);
    drop(book);
    host.assert_clean();
}

#[test]
fn inputs_of_other_numbers_of_samples_fail_their_request_alone() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin, "through", THROUGH);
    let image = host.input("image", UINT8, &[1, 1, 2, 1], &[(0, &[1, 2])]);
    let raw = host.input("raw", UINT8, &[2, 3], &[(0, &[7, 8, 9, 7, 8, 9])]);
    let wrong = host.request_of("wrong", vec![image, raw], &["pixels"]);
    plugin.execute(instance, &mut [wrong, both(&host, "right", &["pixels"])]).unwrap();
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    let book = book();
    let failed = book.answers[0].failure.as_ref().unwrap();
    assert_eq!(failed.code, code::INVALID_ARG);
    let text = "input `raw` has 2 samples, expected 1 as the inputs before it";
    assert!(failed.text.contains(text), "{}", failed.text);
    assert_eq!(book.answers[1].outputs[0].bytes, [2, 1]);
    drop(book);
    host.assert_clean();
}

#[test]
fn what_the_pipelines_author_did_not_declare_is_not_enforced() {
    let (host, plugin) = (Host::start(), Plugin::load());
    plugin.initialize(host.backend()).unwrap();
    let output = |more: &str| format!(r#"{{"max_batch_size":4,"output":[{{"name":"pixels",{more}}}]}}"#);
    let wrong = [
        (r#""dims":[2,2]"#, "has 2 dimensions in the configuration"),
        (r#""data_type":"TYPE_FP32""#, "has data_type `TYPE_FP32` in the configuration"),
    ];
    for (wrong, text) in wrong {
        plugin.model_initialize(host.model_of("prepare", &output(wrong))).unwrap();
        assert_eq!(lines(1, text).len(), 1, "{:?}", book().log);
        let failed = plugin.model_initialize(host.model_of("declared", &output(wrong))).unwrap_err();
        assert_eq!(failed.code, code::INVALID_ARG);
        assert!(failed.text.contains(text), "{}", failed.text);
    }
    // The real type is known at load, and said there.
    let instance = host.instance(host.model_of("prepare", &output(wrong[1].0)));
    let model = at("instance", instance).unwrap().model;
    plugin.model_initialize(model).unwrap();
    plugin.instance_initialize(instance).unwrap();
    let warnings = lines(1, "").len();
    plugin.execute(instance, &mut [host.image("a", &[1, 2])]).unwrap();
    assert_eq!(lines(1, "").len(), warnings);
    assert_eq!(book().answers[0].outputs[0].dtype, UINT8);
}

#[test]
fn an_input_that_feeds_an_image_decoder_needs_no_declaration() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, _) = ready(&host, &plugin, "classify", r#"{"backend":"dali"}"#);
    let config = at("model", model).unwrap().config.clone();
    for part in
        [r#""name":"encoded""#, r#""data_type":"TYPE_UINT8""#, r#""dims":[-1]"#, r#""dims":[3,16,16]"#]
    {
        assert!(config.contains(part), "{config}");
    }
}

/// The server prints the error that it gets.
#[test]
fn a_load_that_fails_adds_no_line_of_its_own() {
    let (host, plugin) = (Host::start(), Plugin::load());
    plugin.initialize(host.backend()).unwrap();
    let model = host.model_of("prepare", r#"{"max_batch_size":-3}"#);
    assert!(plugin.model_initialize(model).unwrap_err().text.contains("max_batch_size is -3"));
    let model = host.model();
    plugin.model_initialize(model).unwrap();
    host.fail_next("TRITONBACKEND_ModelInstanceName");
    assert!(plugin.instance_initialize(host.instance(model)).is_err());
    assert_eq!(lines(2, ""), Vec::<String>::new());
    // What becomes of requests is told to clients only.
    host.fail_next("TRITONBACKEND_ResponseNew");
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    assert!(plugin.execute(instance, &mut [host.image("a", &[1])]).is_err());
    assert_eq!(lines(2, "requests are left with the server").len(), 1);
}
