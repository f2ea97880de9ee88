//! The plugin under a stand-in server: what a real one cannot be made to do. The first half drives the built library
//! through its entry points, the second half drives the wrappers of `triton::api`, whose functions are the stand-in's
//! too.
#![expect(unsafe_code, reason = "calls the plugin as C does")]
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

#[path = "plugin/host/mod.rs"]
mod host;
#[path = "plugin/library.rs"]
mod library;
#[path = "plugin/newer.rs"]
mod newer;

use std::process::Command;

use host::objects::{self, Instance};
use host::request::Request;
use host::{Failure, Host, book, code};
use library::Plugin;
use triton_gesso::error::{Error, ErrorKind, Result};
use triton_gesso::tensor::DType;
use triton_gesso::triton::api::{self, Chunk, DataType, Memory, MemoryKind, Server};
use triton_gesso::triton::exchange::{self, Exchange};

const FP32: u32 = 11;
const UINT8: u32 = 2;

fn failure(code: u32, text: &str) -> Failure {
    Failure { code, text: text.to_owned() }
}

/// A model and an instance of it, both initialized.
fn ready(host: &Host, plugin: &Plugin) -> (*mut objects::Model, *mut Instance) {
    let model = host.model();
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    (model, instance)
}

#[test]
fn exports_the_entry_points_and_nothing_else() {
    let Ok(nm) = Command::new("nm").args(["-D", "--defined-only"]).arg(library::path()).output() else {
        println!("skipped: no nm here");
        return;
    };
    let listing = String::from_utf8(nm.stdout).unwrap();
    let mut names: Vec<_> = listing.lines().filter_map(|line| line.split_whitespace().last()).collect();
    // The C API of this library, where it is built in.
    names.retain(|name| !name.starts_with("gesso_"));
    names.sort_unstable();
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
fn lives_a_whole_life_and_leaves_nothing() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    plugin.initialize(backend).unwrap();
    let (model, instance) = ready(&host, &plugin);
    let mut requests = [host.request("a", vec![]), host.request("b", vec![])];
    plugin.execute(instance, &mut requests).unwrap();
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    plugin.finalize(backend).unwrap();
    objects::drop_backend(backend);

    let book = book();
    assert_eq!(book.released, ["a", "b"]);
    assert_eq!(book.answers.len(), 2);
    for answer in &book.answers {
        assert_eq!(answer.flags, 1, "the last response of its request");
        assert_eq!(answer.failure.as_ref().unwrap().code, code::UNSUPPORTED);
    }
    assert!(book.reports.iter().all(|report| !report.success));
    assert_eq!(book.log[0].0, 0);
    assert!(book.log[0].1.starts_with("Gesso is loaded backend=gesso version="), "{:?}", book.log);
    drop(book);
    host.assert_clean();
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
fn prefers_cpu_instances_that_load_in_parallel() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let backend = host.backend();
    plugin.backend_attribute(backend, host.attributes()).unwrap();
    assert_eq!(book().attributes, ["kind 1 count 0 devices 0", "parallel true"]);
    host.fail("TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup", 2);
    let failed = plugin.backend_attribute(backend, host.attributes()).unwrap_err();
    assert_eq!(failed.code, code::UNAVAILABLE);
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
    for function in
        ["TRITONBACKEND_ModelConfig", "TRITONSERVER_MessageSerializeToJson", "TRITONBACKEND_ModelSetState"]
    {
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
    plugin.execute(instance, &mut [host.request("a", vec![])]).unwrap();
    assert!(book().answers[0].failure.as_ref().unwrap().text.contains("`prepare`"));
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

/// Runs `body` on the requests as the plugin's Execute does.
fn run(host: &Host, requests: &[*mut Request], body: impl FnOnce(&mut Vec<Exchange>)) -> Result<()> {
    let server = Server::get().unwrap();
    let instance = host.instance(host.model());
    let requests: Vec<_> = requests.iter().map(|request| request.cast()).collect();
    // SAFETY: the stand-in server's objects are never deallocated.
    let instance = unsafe { api::Instance::from_raw(server, instance.cast()) }?;
    // SAFETY: the requests are alive, distinct and nobody else's.
    unsafe { exchange::run(&instance, &requests, body) }
}

/// A request with one input `bytes`.
fn request_of(host: &Host, chunks: &[(u32, &[u8])]) -> *mut Request {
    let size = chunks.iter().map(|(_, bytes)| bytes.len() as i64).sum();
    host.request("r", vec![host.input("bytes", UINT8, &[1, size], chunks)])
}

#[test]
fn a_panic_answers_what_is_left_with_its_text() {
    let host = Host::start();
    let requests = ["a", "b", "c"].map(|id| host.request(id, vec![]));
    run(&host, &requests, |exchanges| {
        exchanges.remove(1).finish((1, 2));
        panic!("operator `resize` broke");
    })
    .unwrap();
    let answers = book().answers.clone();
    assert_eq!(answers.iter().map(|answer| answer.request.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(answers[0].failure, None);
    for answer in &answers[1..] {
        assert_eq!(answer.failure, Some(failure(code::INTERNAL, "panicked: operator `resize` broke")));
    }
    host.assert_clean();
}

#[test]
fn an_exchange_that_is_dropped_answers_an_error() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], Vec::clear).unwrap();
    let answer = book().answers[0].clone();
    assert_eq!(answer.failure, Some(failure(code::INTERNAL, "the request was dropped without an answer")));
    assert!(!book().reports[0].success);
    host.assert_clean();
}

#[test]
fn an_input_is_read_in_its_chunks() {
    let host = Host::start();
    let request = request_of(&host, &[(0, b"ab"), (1, b""), (1, b"cde")]);
    run(&host, &[request], |exchanges| {
        let exchange = exchanges.pop().unwrap();
        let inputs = exchange.request().inputs().unwrap();
        let input = &inputs[0];
        assert_eq!((input.name, input.dtype, input.bytes), ("bytes", DataType::Dense(DType::U8), 5));
        assert_eq!(input.shape, [1, 5]);
        assert_eq!(input.host_chunks().unwrap(), [b"ab".as_slice(), b"", b"cde"]);
        assert_eq!(exchange.request().requested_outputs().unwrap(), ["pixels"]);
        assert_eq!(exchange.request().id().unwrap(), "r");
        assert!(!exchange.request().is_cancelled().unwrap());
        exchange.finish((1, 2));
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn an_input_on_a_gpu_is_not_followed() {
    let host = Host::start();
    let request = request_of(&host, &[(0, b"ab"), (2, b"cd")]);
    run(&host, &[request], |exchanges| {
        let inputs = exchanges[0].request().inputs().unwrap();
        let error = inputs[0].host_chunks().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.to_string(), "input `bytes` is in memory `gpu 1`, expected host memory");
        let chunks = inputs[0].chunks().unwrap();
        let gpu = Memory { kind: MemoryKind::Gpu, device: 1 };
        assert!(matches!(chunks[1], Chunk::Device { memory, bytes: 2, .. } if memory == gpu));
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn inputs_that_cannot_be_held_are_named() {
    let host = Host::start();
    let bad = [
        (host.input("x", 14, &[1], &[]), "input `x`: tensors of type `TYPE_BF16` are not supported"),
        (host.input("x", 99, &[1], &[]), "input `x`: tensors of Triton's data type 99 are not supported"),
        (host.input("x", UINT8, &[1, -1], &[]), "input `x` has a shape with a negative extent"),
    ];
    for (input, text) in bad {
        run(&host, &[host.request("r", vec![input])], |exchanges| {
            assert_eq!(exchanges[0].request().inputs().unwrap_err().to_string(), text);
        })
        .unwrap();
    }
    let scalar = host.input("x", 13, &[], &[]);
    run(&host, &[host.request("r", vec![scalar])], |exchanges| {
        let inputs = exchanges[0].request().inputs().unwrap();
        assert_eq!((inputs[0].dtype, inputs[0].shape.len()), (DataType::Bytes, 0));
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn outputs_are_written_in_place() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], |exchanges| {
        let exchange = exchanges.pop().unwrap();
        let response = exchange.response().unwrap();
        let pixels = response.output("pixels", DataType::Dense(DType::F32), &[1, 2]).unwrap();
        let label = response.output("empty", DataType::Dense(DType::U8), &[0]).unwrap();
        let (pixels, empty) = (pixels.host_buffer(8).unwrap(), label.host_buffer(0).unwrap());
        pixels.copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(empty.is_empty());
        response.set_text("path", "cpu").unwrap();
        response.set_integer("images", 1).unwrap();
        response.set_truth("exact", true).unwrap();
        exchange.finish((5, 6));
    })
    .unwrap();
    let book = book();
    let answer = &book.answers[0];
    assert_eq!(answer.failure, None);
    let pixels = &answer.outputs[0];
    assert_eq!(
        (pixels.name.as_str(), pixels.dtype, pixels.shape.as_slice()),
        ("pixels", FP32, [1, 2].as_slice())
    );
    assert_eq!(pixels.bytes, [1, 2, 3, 4, 5, 6, 7, 8]);
    let parameters = [("path", "cpu"), ("images", "1"), ("exact", "true")];
    assert_eq!(answer.parameters, parameters.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let report = &book.reports[0];
    assert_eq!(
        (report.request.as_str(), report.success, &report.times[1..3]),
        ("a", true, [5, 6].as_slice())
    );
    assert!(report.times[0] > 0 && report.times[0] <= report.times[3]);
    drop(book);
    host.assert_clean();
}

#[test]
fn output_memory_that_cannot_be_had_is_an_error_of_the_request() {
    let host = Host::start();
    let requests = ["a", "b", "c"].map(|id| host.request(id, vec![]));
    host.fail("TRITONBACKEND_OutputBuffer", 2);
    run(&host, &requests, |exchanges| {
        for (exchange, output) in exchanges.drain(..).zip(["far", "pixels", "pixels"]) {
            let made = exchange
                .response()
                .and_then(|response| {
                    response.output(output, DataType::Dense(DType::U8), &[4])?.host_buffer(4)
                })
                .map(|bytes| bytes.fill(9));
            match made {
                Ok(()) => exchange.finish((1, 2)),
                Err(error) => exchange.fail(&error),
            }
        }
    })
    .unwrap();
    let failures: Vec<_> = book().answers.iter().map(|answer| answer.failure.clone()).collect();
    let text = "Triton offers memory `gpu 1` for output `far`, expected host memory";
    assert_eq!(failures[0], Some(failure(code::UNSUPPORTED, text)));
    assert_eq!(failures[1].as_ref().unwrap().code, code::UNAVAILABLE);
    assert_eq!(failures[2], None);
    host.assert_clean();
}

#[test]
fn an_output_has_memory_once() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], |exchanges| {
        let response = exchanges[0].response().unwrap();
        let _first = response.output("pixels", DataType::Bytes, &[1]).unwrap();
        let second = response.output("pixels", DataType::Bytes, &[1]).map(|_| ());
        assert_eq!(second.unwrap_err().to_string(), "output `pixels` is in the response already");
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn errors_keep_their_class_and_text() {
    let host = Host::start();
    let kinds =
        [(ErrorKind::InvalidArg, code::INVALID_ARG), (ErrorKind::Cancelled, 7), (ErrorKind::Unknown, 0)];
    for (kind, code) in kinds {
        run(&host, &[host.request("a", vec![])], |exchanges| {
            let error = Error::new(kind, "expected a JPEG, found\0nothing").context("sample 3");
            exchanges.pop().unwrap().fail(&error);
        })
        .unwrap();
        let failed = book().answers.last().unwrap().failure.clone();
        assert_eq!(failed, Some(failure(code, "sample 3: expected a JPEG, found\u{fffd}nothing")));
    }
    host.assert_clean();
}

#[test]
fn a_cancelled_request_says_so() {
    let host = Host::start();
    let request = host.request("a", vec![]);
    host::request::cancel(request);
    run(&host, &[request], |exchanges| assert!(exchanges[0].request().is_cancelled().unwrap())).unwrap();
    host.assert_clean();
}

#[test]
fn a_configuration_goes_both_ways() {
    let host = Host::start();
    let server = Server::get().unwrap();
    let raw = host.model();
    // SAFETY: the stand-in server's objects are never deallocated.
    let model = unsafe { api::Model::from_raw(server, raw.cast()) }.unwrap();
    assert!(model.wants_auto_complete().unwrap());
    model.set_config(r#"{"max_batch_size":8}"#).unwrap();
    assert_eq!(model.config().unwrap(), r#"{"max_batch_size":8}"#);
    assert_eq!(model.directory().unwrap().to_str(), Some("/models/prepare"));
    host.assert_clean();
}

#[test]
fn an_instance_reports_batches_and_memory() {
    let host = Host::start();
    let server = Server::get().unwrap();
    // SAFETY: the stand-in server's objects are never deallocated.
    let instance = unsafe { api::Instance::from_raw(server, host.instance(host.model()).cast()) }.unwrap();
    let times = api::Times { start: 1, compute_start: 2, compute_end: 3, end: 4 };
    instance.report_batch(6, &times).unwrap();
    assert_eq!(book().batches, [6]);
    let gpu = Memory { kind: MemoryKind::Gpu, device: 1 };
    instance.report_memory(&[(Memory { kind: MemoryKind::Cpu, device: 0 }, 64), (gpu, 32)]).unwrap();
    assert_eq!(book().memory, [(0, 0, 64), (2, 1, 32)]);
    host.fail("TRITONSERVER_BufferAttributesSetByteSize", 4);
    assert!(instance.report_memory(&[(gpu, 1), (gpu, 2)]).is_err());
    host.assert_clean();
}
