//! The types of `triton::api` and `triton::exchange`, linked into this test, under the stand-in server: they find its
//! functions as the plugin does.

use gesso::error::{Error, ErrorKind, Result};
use gesso::tensor::DType;
use triton_gesso::triton::api::{self, Chunk, DataType, Memory, MemoryKind, Output, OutputMemory, Server};
use triton_gesso::triton::exchange::{self, Claim};

use crate::failure;
use crate::host::request::{Request, add_parameter, cancel};
use crate::host::{Host, book, code};

const FP32: u32 = 11;
const UINT8: u32 = 2;

/// Runs `body` on the requests as the plugin's Execute does.
pub(crate) fn run(host: &Host, requests: &[*mut Request], body: impl FnOnce(&mut Vec<Claim>)) -> Result<()> {
    let server = Server::get().unwrap();
    let instance = host.instance(host.model());
    let requests: Vec<_> = requests.iter().map(|request| request.cast()).collect();
    // SAFETY: the stand-in server's objects are never deallocated.
    let instance = unsafe { api::Instance::from_raw(server, instance.cast()) }?;
    // SAFETY: the requests are alive, distinct and nobody else's.
    unsafe { exchange::run(&instance, &requests, body) }
}

/// The memory for an output, which this server has on the host.
pub(crate) fn host_memory(output: Output<'_>, bytes: usize) -> &mut [u8] {
    match output.memory(bytes, Memory::HOST).unwrap() {
        OutputMemory::Host(memory) => memory,
        OutputMemory::Device { memory, .. } => panic!("expected host memory, found `{memory}`"),
    }
}

/// A request with one input `bytes`.
fn request_of(host: &Host, chunks: &[(u32, &[u8])]) -> *mut Request {
    let size = chunks.iter().map(|(_, bytes)| bytes.len() as i64).sum();
    host.request("r", vec![host.input("bytes", UINT8, &[1, size], chunks)])
}

#[test]
fn a_panic_answers_what_is_left_without_its_text() {
    let host = Host::start();
    let requests = ["a", "b", "c"].map(|id| host.request(id, vec![]));
    run(&host, &requests, |claims| {
        claims.remove(1).finish((1, 2));
        panic!("operator `resize` broke");
    })
    .unwrap();
    let answers = book().answers.clone();
    assert_eq!(answers.iter().map(|answer| answer.request.as_str()).collect::<Vec<_>>(), ["b", "a", "c"]);
    assert_eq!(answers[0].failure, None);
    for answer in &answers[1..] {
        assert_eq!(
            answer.failure,
            Some(failure(code::INTERNAL, "failed by a fault of the program, of which its log says more"))
        );
    }
    host.assert_clean();
}

#[test]
fn a_claim_that_is_dropped_answers_an_error() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], Vec::clear).unwrap();
    let answer = book().answers[0].clone();
    assert_eq!(answer.failure, Some(failure(code::INTERNAL, "the request was dropped without an answer")));
    assert!(!book().reports[0].success);
    host.assert_clean();
}

#[test]
fn the_last_text_of_a_name_counts() {
    let host = Host::start();
    let request = host.request("a", vec![]);
    // Texts are 0; the stand-in's other values are none.
    for (name, kind, value) in
        [("Key", 0, "first"), ("key", 0, "last"), ("KEY", 1, "7"), ("key2", 0, "x"), ("empty", 0, "")]
    {
        add_parameter(request, name, kind, value);
    }
    run(&host, &[request], |claims| {
        let claim = claims.pop().unwrap();
        let parameter = |name: &str| claim.request().parameter(name).unwrap().map(<[u8]>::to_vec);
        assert_eq!(parameter("kEY").as_deref(), Some(b"last".as_slice()));
        assert_eq!((parameter("empty"), parameter("ke")), (Some(Vec::new()), None));
        let calls = book().calls_of("TRITONBACKEND_RequestParameter");
        book().faults.insert("TRITONBACKEND_RequestParameter", calls + 1);
        assert_eq!(claim.request().parameter("key").unwrap_err().kind(), ErrorKind::Unavailable);
        claim.finish((1, 2));
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn an_input_is_read_in_its_chunks() {
    let host = Host::start();
    let request = request_of(&host, &[(0, b"ab"), (1, b""), (1, b"cde")]);
    run(&host, &[request], |claims| {
        let claim = claims.pop().unwrap();
        let inputs = claim.request().inputs().unwrap();
        let input = &inputs[0];
        assert_eq!((input.name, input.dtype, input.bytes), ("bytes", DataType::Dense(DType::U8), 5));
        assert_eq!(input.shape, [1, 5]);
        let chunks = input.chunks().unwrap();
        let [Chunk::Host(b"ab"), Chunk::Host(b""), Chunk::Host(b"cde")] = chunks.as_slice() else {
            panic!("expected three chunks on the host");
        };
        assert_eq!(claim.request().requested_outputs().unwrap(), ["pixels"]);
        assert_eq!(claim.request().id().unwrap(), "r");
        assert!(!claim.request().is_cancelled().unwrap());
        claim.finish((1, 2));
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn an_input_on_a_gpu_is_not_followed() {
    let host = Host::start();
    let request = request_of(&host, &[(0, b"ab"), (2, b"cd")]);
    run(&host, &[request], |claims| {
        let inputs = claims[0].request().inputs().unwrap();
        let chunks = inputs[0].chunks().unwrap();
        let gpu = Memory { kind: MemoryKind::Gpu, device: 1 };
        assert!(matches!(&chunks[1], Chunk::Device { memory, bytes } if *memory == gpu && bytes.len() == 2));
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
        run(&host, &[host.request("r", vec![input])], |claims| {
            assert_eq!(claims[0].request().inputs().unwrap_err().to_string(), text);
        })
        .unwrap();
    }
    let scalar = host.input("x", 13, &[], &[]);
    run(&host, &[host.request("r", vec![scalar])], |claims| {
        let inputs = claims[0].request().inputs().unwrap();
        assert_eq!((inputs[0].dtype, inputs[0].shape.len()), (DataType::Bytes, 0));
    })
    .unwrap();
    host.assert_clean();
}

#[test]
fn outputs_are_written_in_place() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], |claims| {
        let claim = claims.pop().unwrap();
        let response = claim.reply().unwrap();
        let pixels = response.output("pixels", DataType::Dense(DType::F32), &[1, 2]).unwrap();
        let label = response.output("empty", DataType::Dense(DType::U8), &[0]).unwrap();
        let (pixels, empty) = (host_memory(pixels, 8), host_memory(label, 0));
        pixels.copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(empty.is_empty());
        claim.finish((5, 6));
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
    let requests = ["a", "b"].map(|id| host.request(id, vec![]));
    host.fail("TRITONBACKEND_OutputBuffer", 1);
    run(&host, &requests, |claims| {
        for claim in claims.drain(..) {
            let made = claim.reply().and_then(|response| {
                response
                    .output("pixels", DataType::Dense(DType::U8), &[4])?
                    .memory(4, Memory::HOST)
                    .map(|_| ())
            });
            match made {
                Ok(()) => claim.finish((1, 2)),
                Err(error) => claim.fail(&error),
            }
        }
    })
    .unwrap();
    let failures: Vec<_> = book().answers.iter().map(|answer| answer.failure.clone()).collect();
    assert_eq!(failures[0].as_ref().unwrap().code, code::UNAVAILABLE);
    assert_eq!(failures[1], None);
    host.assert_clean();
}

#[test]
fn an_output_has_memory_once() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], |claims| {
        let response = claims[0].reply().unwrap();
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
        run(&host, &[host.request("a", vec![])], |claims| {
            let error = Error::new(kind, "expected a JPEG, found\0nothing").context("sample 3");
            claims.pop().unwrap().fail(&error);
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
    cancel(request);
    run(&host, &[request], |claims| assert!(claims[0].request().is_cancelled().unwrap())).unwrap();
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
    assert!(model.directory().unwrap().ends_with("tests/plugin/models/prepare"));
    host.assert_clean();
}

#[test]
fn an_instance_reports_batches() {
    let host = Host::start();
    let server = Server::get().unwrap();
    // SAFETY: the stand-in server's objects are never deallocated.
    let instance = unsafe { api::Instance::from_raw(server, host.instance(host.model()).cast()) }.unwrap();
    let times = api::Times { start: 1, compute_start: 2, compute_end: 3, end: 4 };
    instance.report_batch(6, &times).unwrap();
    assert_eq!(book().batches, [6]);
    host.assert_clean();
}
