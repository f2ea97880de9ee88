//! The plugin under a stand-in server: what a real one cannot be made to do. This file drives the built library through
//! its entry points, `plugin/wrappers.rs` the types that it is made of.
#![expect(unsafe_code, reason = "calls the plugin as C does")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests panic as tests do")]

#[path = "common/recorded.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod recorded;

#[path = "plugin/device.rs"]
mod device;
#[path = "plugin/dropin.rs"]
mod dropin;
#[path = "plugin/host/mod.rs"]
mod host;
#[path = "plugin/lanes.rs"]
mod lanes;
#[path = "plugin/library.rs"]
mod library;
#[path = "plugin/newer.rs"]
mod newer;
#[path = "plugin/placement.rs"]
mod placement;
#[path = "plugin/replies.rs"]
mod replies;
#[path = "plugin/shared_memory.rs"]
mod shared_memory;
#[path = "common/skips.rs"]
mod skips;
#[path = "plugin/types.rs"]
mod types;
#[path = "plugin/wrappers.rs"]
mod wrappers;

use std::process::Command;

use host::objects::{self, Instance};
use host::request::UINT8;
use host::{Failure, Host, book, code};
use library::Plugin;
use skips::{Needs, skip};

/// Triton's number of `TYPE_FP32`.
const FP32: u32 = 11;

fn failure(code: u32, text: &str) -> Failure {
    Failure { code, text: text.to_owned() }
}

/// A model and an instance of it, both initialized.
fn ready(host: &Host, plugin: &Plugin) -> (*mut objects::Model, *mut Instance) {
    ready_of(host, plugin, "prepare")
}

/// Likewise, of a model of `plugin/models`.
fn ready_of(host: &Host, plugin: &Plugin, name: &str) -> (*mut objects::Model, *mut Instance) {
    let model = host.model_of(name, "{}");
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    (model, instance)
}

#[test]
fn exports_the_entry_points_and_nothing_else() {
    let Ok(nm) = Command::new("nm").args(["-D", "--defined-only"]).arg(library::path()).output() else {
        skip(Needs::Tool, "no nm here");
        return;
    };
    let listing = String::from_utf8(nm.stdout).unwrap();
    let mut names: Vec<_> = listing.lines().filter_map(|line| line.split_whitespace().last()).collect();
    names.sort_unstable();
    // Those of the C API are those of its header.
    let header =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include/gesso.h")).unwrap();
    let mut declared: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with("//") && !line.starts_with("typedef") && !line.starts_with(' '))
        .filter_map(|line| line.split_once('(')?.0.split([' ', '*']).next_back())
        .filter(|name| name.starts_with("gesso_"))
        .collect();
    declared.sort_unstable();
    let exported: Vec<&str> = names.extract_if(.., |name| name.starts_with("gesso_")).collect();
    assert_eq!(exported, declared);
    assert!(declared.len() > 15);
    // Others, such as those of the AV1 decoder, are hidden by `hidden.s`.
    let entry_points = [
        "TRITONBACKEND_Finalize",
        "TRITONBACKEND_GetBackendAttribute",
        "TRITONBACKEND_Initialize",
        "TRITONBACKEND_ModelFinalize",
        "TRITONBACKEND_ModelInitialize",
        "TRITONBACKEND_ModelInstanceExecute",
        "TRITONBACKEND_ModelInstanceFinalize",
        "TRITONBACKEND_ModelInstanceInitialize",
    ];
    assert_eq!(names, entry_points);
}

#[test]
fn programs_find_it_by_its_name() {
    let Ok(readelf) = Command::new("readelf").arg("-d").arg(library::path()).output() else {
        skip(Needs::Tool, "no readelf here");
        return;
    };
    let dynamic = String::from_utf8(readelf.stdout).unwrap();
    assert!(dynamic.contains("[libtriton_gesso.so]"), "no SONAME in\n{dynamic}");
}

#[test]
fn lives_a_whole_life_and_leaves_nothing() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    plugin.initialize(backend).unwrap();
    let (model, instance) = ready(&host, &plugin);
    let mut requests = [host.image("a", &[1, 2, 3]), host.image("b", &[4, 5])];
    plugin.execute(instance, &mut requests).unwrap();
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    plugin.finalize(backend).unwrap();
    objects::drop_backend(backend);

    let book = book();
    assert_eq!(book.released, ["a", "b"]);
    for (answer, mirrored) in book.answers.iter().zip([vec![3, 2, 1], vec![5, 4]]) {
        assert_eq!(answer.flags, 1, "the last response of its request");
        assert_eq!(answer.failure, None);
        let [output] = answer.outputs.as_slice() else { panic!("one output, found {:?}", answer.outputs) };
        assert_eq!((output.name.as_str(), output.dtype), ("pixels", UINT8));
        assert_eq!(output.shape, [1, 1, mirrored.len() as i64, 1]);
        assert_eq!(output.bytes, mirrored);
    }
    assert_eq!((book.reports.len(), &book.batches[..]), (2, &[2][..]));
    for report in &book.reports {
        assert!(report.success && report.times.is_sorted(), "{report:?}");
    }
    assert_eq!(book.log[0].0, 0);
    assert!(book.log[0].1.starts_with("Gesso is loaded backend=gesso version="), "{:?}", book.log);
    drop(book);
    host.assert_clean();
    host.bury();
    assert_eq!(host.live("output"), 0);
}

#[test]
fn refuses_a_server_of_another_major_version() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    book().version = (2, 0);
    let refused = plugin.initialize(backend);
    let text = "the server offers backend API 2.0, expected a version 1.x";
    assert_eq!(refused, Err(failure(code::UNSUPPORTED, text)));
    book().version = (1, 0);
    plugin.initialize(backend).unwrap();
    objects::drop_backend(backend);
    host.assert_clean();
}

#[test]
fn null_handles_are_errors() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let null = std::ptr::null_mut::<u8>();
    for (entry, what) in [
        ("TRITONBACKEND_Initialize", "a backend"),
        ("TRITONBACKEND_Finalize", "a backend"),
        ("TRITONBACKEND_ModelInitialize", "a model"),
        ("TRITONBACKEND_ModelFinalize", "a model"),
        ("TRITONBACKEND_ModelInstanceInitialize", "a model instance"),
        ("TRITONBACKEND_ModelInstanceFinalize", "a model instance"),
    ] {
        let text = format!("expected {what}, found a null pointer");
        assert_eq!(plugin.call(entry, null), Err(failure(code::INTERNAL, &text)));
    }
    let (_, instance) = ready(&host, &plugin);
    let mut requests = [host.request("a", vec![]), std::ptr::null_mut()];
    let failed = plugin.execute(instance, &mut requests).unwrap_err();
    assert_eq!(failed.text, "expected a request, found a null pointer");
    assert_eq!((host.live("request"), host.live("response")), (1, 0));
}

#[test]
fn what_was_not_initialized_has_no_state() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model();
    let instance = host.instance(model);
    let failed = plugin.instance_initialize(instance).unwrap_err();
    assert_eq!(failed, failure(code::INTERNAL, "the model has no state: it was not initialized"));
    let mut requests = [host.request("a", vec![])];
    let failed = plugin.execute(instance, &mut requests).unwrap_err();
    assert_eq!(failed, failure(code::INTERNAL, "the model instance has no state: it was not initialized"));
    assert_eq!(host.live("request"), 1, "an error leaves the requests with the server");
    // The server finalizes what it could not initialize.
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
}

#[test]
fn a_model_that_cannot_be_read_does_not_load() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model();
    for function in [
        "TRITONBACKEND_ModelConfig",
        "TRITONSERVER_MessageSerializeToJson",
        "TRITONBACKEND_ModelRepository",
        "TRITONBACKEND_ModelSetConfig",
        "TRITONBACKEND_ModelSetState",
    ] {
        host.fail_next(function);
        let failed = plugin.model_initialize(model).unwrap_err();
        assert_eq!(failed.code, code::UNAVAILABLE, "{function}");
        assert!(objects::state_of(model).is_null());
    }
    host.assert_clean();
}

#[test]
fn finalizing_twice_frees_once() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin);
    for _ in 0..2 {
        plugin.instance_finalize(instance).unwrap();
        plugin.model_finalize(model).unwrap();
    }
    host.assert_clean();
}

#[test]
fn the_model_outlives_its_finalization_while_an_instance_uses_it() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin);
    plugin.model_finalize(model).unwrap();
    plugin.execute(instance, &mut [host.image("a", &[1, 2])]).unwrap();
    assert_eq!(book().answers[0].outputs[0].bytes, [2, 1]);
    plugin.instance_finalize(instance).unwrap();
    host.assert_clean();
}

#[test]
fn a_response_that_cannot_be_made_leaves_all_requests_with_the_server() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (_, instance) = ready(&host, &plugin);
    let mut requests = ["a", "b", "c"].map(|id| host.request(id, vec![]));
    host.fail("TRITONBACKEND_ResponseNew", 3);
    let failed = plugin.execute(instance, &mut requests).unwrap_err();
    assert_eq!(failed.code, code::UNAVAILABLE);
    assert_eq!(host.live("request"), 3);
    assert_eq!((host.live("response"), book().deleted_responses), (0, 2));
    assert!(book().answers.is_empty() && book().reports.is_empty());
    // The server may send them again.
    plugin.execute(instance, &mut requests).unwrap();
    assert_eq!(book().released, ["a", "b", "c"]);
    host.assert_clean();
}

#[test]
fn a_failed_send_or_report_still_releases_each_request() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (_, instance) = ready(&host, &plugin);
    host.fail("TRITONBACKEND_ResponseSend", 1);
    host.fail("TRITONBACKEND_ModelInstanceReportStatistics", 2);
    let mut requests = [host.request("a", vec![]), host.request("b", vec![])];
    plugin.execute(instance, &mut requests).unwrap();
    assert_eq!(book().released, ["a", "b"]);
    host.assert_clean();
}

#[test]
fn a_request_that_cannot_be_released_is_said_in_the_log() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    plugin.initialize(backend).unwrap();
    let (_, instance) = ready(&host, &plugin);
    host.fail("TRITONBACKEND_RequestRelease", 1);
    plugin.execute(instance, &mut [host.request("a", vec![])]).unwrap();
    assert_eq!(host.live("request"), 1);
    let (level, line) = book().log.last().cloned().unwrap();
    assert_eq!((level, line.starts_with("cannot release a request: ")), (2, true), "{line}");
}

#[test]
fn a_request_that_cannot_be_gathered_fails_alone() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (_, instance) = ready(&host, &plugin);
    let on_gpu = host.input("image", UINT8, &[1, 1, 2, 1], &[(2, &[0, 0])]);
    let short = host.input("image", UINT8, &[1, 1, 2, 1], &[(0, &[7])]);
    let flat = host.input("image", UINT8, &[1, 2], &[(0, &[7, 8])]);
    let none = host.input("image", UINT8, &[0, 1, 2, 1], &[]);
    let float = host.input("image", FP32, &[1, 1, 1, 1], &[(0, &[0; 4])]);
    let in_pieces = host.input("image", UINT8, &[1, 1, 3, 1], &[(0, &[1]), (1, &[2, 3])]);
    let inputs = [vec![on_gpu], vec![short], vec![flat], vec![none], vec![float], vec![], vec![in_pieces]];
    let mut requests: Vec<_> = inputs.into_iter().map(|inputs| host.request("r", inputs)).collect();
    plugin.execute(instance, &mut requests).unwrap();
    let book = book();
    let words = ["host memory", "1 bytes", "dimensions", "no samples", "float32", "missing"];
    for (answer, word) in book.answers.iter().zip(words) {
        let failure = answer.failure.as_ref().unwrap();
        assert!(failure.text.contains(word), "`{word}` is not in `{}`", failure.text);
    }
    assert_eq!(book.answers[6].failure, None);
    assert_eq!(book.answers[6].outputs[0].bytes, [3, 2, 1]);
    assert_eq!(book.reports.iter().filter(|report| report.success).count(), 1);
    assert_eq!(book.batches, [1]);
    drop(book);
    host.assert_clean();
}

#[test]
fn output_memory_that_cannot_be_had_fails_its_request_alone() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (_, instance) = ready(&host, &plugin);
    host.fail("TRITONBACKEND_OutputBuffer", 2);
    let mut requests = [host.image("a", &[1, 2]), host.image("b", &[3, 4]), host.image("c", &[5, 6])];
    plugin.execute(instance, &mut requests).unwrap();
    let book = book();
    assert_eq!(book.answers[0].outputs[0].bytes, [2, 1]);
    assert_eq!(book.answers[1].failure.as_ref().unwrap().code, code::UNAVAILABLE);
    assert_eq!(book.answers[2].outputs[0].bytes, [6, 5]);
    drop(book);
    host.assert_clean();
}

#[test]
fn what_was_counted_goes_with_the_model() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = ready(&host, &plugin);
    assert!(host.live("metric") > 0);
    let mut requests = [host.image("a", &[1, 2, 3]), host.request("b", vec![])];
    plugin.execute(instance, &mut requests).unwrap();
    let metrics = book().metrics.clone();
    let of_model = |name: &str, more: &str| format!("{name}{{model=\"prepare\",version=\"1\"{more}}}");
    assert_eq!(metrics[&of_model("gesso_input_bytes_total", "")], 3.0);
    assert_eq!(metrics[&of_model("gesso_failures_total", ",kind=\"invalid_arg\"")], 1.0);
    assert!(metrics[&of_model("gesso_operator_seconds", ",operator=\"Flip\"")] > 0.0, "{metrics:?}");
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    assert_eq!(host.live("metric"), 0);
    host.assert_clean();
}

#[test]
fn the_command_line_gives_models_their_defaults_and_a_wrong_one_is_refused() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    r#"{"cmdline":{"num_threads":"none"}}"#.clone_into(&mut host::at("backend", backend).unwrap().options);
    let refused = plugin.initialize(backend).unwrap_err();
    assert!(refused.text.contains("`num_threads` is `none`"), "{}", refused.text);
    objects::drop_backend(backend);

    let backend = host.backend();
    let json =
        r#"{"cmdline":{"max_batches_in_flight":"3","release_after_unload":"True","plugin_libs":"/x.so"}}"#;
    json.clone_into(&mut host::at("backend", backend).unwrap().options);
    plugin.initialize(backend).unwrap();
    assert!(book().log.iter().any(|(level, line)| *level == 1 && line.contains("/x.so")));
    let model = host.model();
    host::at("model", model).unwrap().backend = backend;
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    assert!(book().log.iter().any(|(_, line)| line.contains("batches_in_flight=3")), "{:?}", book().log);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    plugin.finalize(backend).unwrap();
    objects::drop_backend(backend);
    host.assert_clean();
}
