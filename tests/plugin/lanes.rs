//! Batches of one instance that overlap.

use std::time::Duration;

use triton_gesso::triton::exchange;

use crate::host::objects::{Instance, Model};
use crate::host::request::UINT8;
use crate::host::{Host, book, code, request};
use crate::library::Plugin;
use crate::recorded::{Folder, Recording};
use crate::{failure, wrappers};

/// Called while a batch is gathered.
const GATHER: &str = "TRITONBACKEND_InputBuffer";

/// A model whose instance works on `batches` batches at a time.
fn overlapping(host: &Host, plugin: &Plugin, batches: &str) -> (*mut Model, *mut Instance) {
    overlapping_of("prepare", host, plugin, batches)
}

fn overlapping_of(name: &str, host: &Host, plugin: &Plugin, batches: &str) -> (*mut Model, *mut Instance) {
    let config = format!(r#"{{"parameters":{{"max_batches_in_flight":{{"string_value":"{batches}"}}}}}}"#);
    let model = host.model_of(name, &config);
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    (model, instance)
}

/// The requests that were answered, in order.
fn answered() -> Vec<String> {
    book().answers.iter().map(|answer| answer.request.clone()).collect()
}

#[test]
fn a_batch_overtakes_one_that_is_held() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = overlapping(&host, &plugin, "2");
    host.hold_next(GATHER);
    plugin.execute(instance, &mut [host.image("a", &[1, 2]), host.image("b", &[3, 4])]).unwrap();
    host.wait_until("the first batch is gathered", |book| book.calls_of(GATHER) == 1);
    assert_eq!(answered(), Vec::<String>::new());
    // With both lanes busy, this returns when one is free again.
    plugin.execute(instance, &mut [host.image("c", &[5, 6])]).unwrap();
    assert_eq!(answered(), ["c"]);
    assert_eq!(book().released, ["c"]);
    host.let_go(GATHER);
    host.wait_until("the held batch is reported", |book| book.batches.len() == 2);
    assert_eq!(answered(), ["c", "a", "b"]);
    {
        let book = book();
        assert_eq!(book.answers[1].outputs[0].bytes, [2, 1]);
        assert_eq!(book.batches, [1, 2]);
        assert!(book.reports.iter().all(|report| report.success && report.times.is_sorted()));
    }
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

/// Two batches of several requests that came together: who sends waits for others.
#[test]
fn batches_on_the_host_overlap_once_they_wait_for_one_another() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model_of("prepare", "{}");
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    plugin.execute(instance, &mut [host.image("a", &[1, 2]), host.image("b", &[3, 4])]).unwrap();
    assert_eq!(answered(), ["a", "b"], "the first batch is worked on by who brings it");
    let gathered = book().calls_of(GATHER);
    host.hold_next(GATHER);
    plugin.execute(instance, &mut [host.image("c", &[1, 2]), host.image("d", &[3, 4])]).unwrap();
    host.wait_until("the second batch is gathered", |book| book.calls_of(GATHER) == gathered + 1);
    plugin.execute(instance, &mut [host.image("e", &[5, 6])]).unwrap();
    assert_eq!(answered(), ["a", "b", "e"]);
    host.let_go(GATHER);
    plugin.instance_finalize(instance).unwrap();
    assert_eq!(answered(), ["a", "b", "e", "c", "d"]);
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

/// The server's thread cannot be had back before a batch is done: it works on what is known to be brief.
#[test]
fn a_small_jpeg_is_decoded_by_who_brings_it() {
    const SENT: &str = "TRITONBACKEND_ResponseSend";
    let case = Recording::open("decoders_image").case("under_its_old_name");
    let picture = case.inputs["IMAGE"][0].bytes.clone();
    let folder = Folder::new("a small JPEG");
    folder.write("1/model.dali", &case.pipeline);
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model_in(&folder.path("").display().to_string(), "decode", "{}");
    plugin.model_initialize(model).unwrap();
    let instance = host.instance(model);
    plugin.instance_initialize(instance).unwrap();
    let request = |id: &str, file: &[u8]| {
        let input = host.input("IMAGE", UINT8, &[1, file.len() as i64], &[(0, file)]);
        host.request(id, vec![input])
    };
    plugin.execute(instance, &mut [request("a", &picture)]).unwrap();
    assert_eq!(answered(), ["a"]);
    // A comment in front of its header, which is behind what is looked at then.
    let comment = [&[0xFF, 0xFE, 0xFF, 0xFF][..], &[0; 0xFFFF - 2]].concat();
    let hidden = [&picture[..2], &comment, &picture[2..]].concat();
    host.hold_next(SENT);
    plugin.execute(instance, &mut [request("b", &hidden)]).unwrap();
    assert_eq!(answered(), ["a"]);
    host.let_go(SENT);
    plugin.instance_finalize(instance).unwrap();
    assert_eq!(answered(), ["a", "b"]);
    assert!(book().answers.iter().all(|answer| answer.failure.is_none()));
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

#[test]
fn a_request_that_is_cancelled_while_it_runs_stops_before_the_next_operator_and_alone() {
    const ASKED: &str = "TRITONBACKEND_RequestIsCancelled";
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = overlapping(&host, &plugin, "2");
    let (leaving, staying) = (host.image("a", &[1, 2]), host.image("b", &[3, 4]));
    // Once for each when the batch is gathered; then before the only operator.
    host.hold(ASKED, 3);
    plugin.execute(instance, &mut [leaving, staying]).unwrap();
    host.wait_until("the operator is next", |book| book.calls_of(ASKED) == 3);
    request::cancel(leaving);
    host.let_go(ASKED);
    host.wait_until("the batch is reported", |book| book.batches.len() == 1);
    plugin.instance_finalize(instance).unwrap();
    plugin.model_finalize(model).unwrap();
    {
        let book = book();
        let of = |id: &str| book.answers.iter().find(|answer| answer.request == id).unwrap();
        assert_eq!(of("a").failure, Some(failure(code::CANCELLED, "the client no longer waits")));
        assert!(of("a").outputs.is_empty(), "no memory was asked for");
        assert_eq!(of("b").outputs[0].bytes, [4, 3]);
        let cancelled = "gesso_failures_total{model=\"prepare\",version=\"1\",kind=\"cancelled\"}";
        assert_eq!(book.metrics.get(cancelled), Some(&1.0));
    }
    host.assert_clean();
}

#[test]
fn no_more_batches_are_taken_than_there_are_lanes() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = overlapping(&host, &plugin, "2");
    host.hold_next(GATHER);
    plugin.execute(instance, &mut [host.image("a", &[1])]).unwrap();
    host.wait_until("the first batch is gathered", |book| book.calls_of(GATHER) == 1);
    host.hold_next("TRITONBACKEND_ResponseSend");
    std::thread::scope(|scope| {
        let (instance, request) = (instance.expose_provenance(), host.image("b", &[2]).expose_provenance());
        let submitter = scope.spawn(move || {
            let instance = std::ptr::with_exposed_provenance_mut(instance);
            let request = std::ptr::with_exposed_provenance_mut(request);
            Plugin::load().execute(instance, &mut [request]).unwrap();
        });
        host.wait_until("the second batch is sent", |book| book.calls_of("TRITONBACKEND_ResponseSend") == 1);
        std::thread::sleep(Duration::from_millis(50));
        assert!(!submitter.is_finished(), "two batches are in flight");
        host.let_go("TRITONBACKEND_ResponseSend");
        submitter.join().unwrap();
    });
    assert_eq!(answered(), ["b"]);
    host.let_go(GATHER);
    plugin.instance_finalize(instance).unwrap();
    assert_eq!(answered(), ["b", "a"]);
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

#[test]
fn finalizing_waits_for_batches_in_flight() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = overlapping(&host, &plugin, "3");
    host.hold_next(GATHER);
    for id in ["a", "b"] {
        plugin.execute(instance, &mut [host.image(id, &[1, 2])]).unwrap();
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            host.let_go(GATHER);
        });
        plugin.instance_finalize(instance).unwrap();
    });
    let mut answered = answered();
    answered.sort_unstable();
    assert_eq!(answered, ["a", "b"]);
    assert_eq!(book().batches.len(), 2);
    assert_eq!(host.live("request"), 0);
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

/// The numbers of a batch follow from the seed and from the samples of the batches that came before, also when those
/// are still gathered.
#[test]
fn lanes_draw_the_numbers_that_one_would() {
    let drawn = |batches: &str| {
        let (host, plugin) = (Host::start(), Plugin::load());
        let (model, instance) = overlapping_of("noisy", &host, &plugin, batches);
        let overlaps = batches != "1";
        if overlaps {
            host.hold_next(GATHER);
        }
        plugin.execute(instance, &mut [host.image("a", &[100; 9]), host.image("b", &[100; 9])]).unwrap();
        std::thread::scope(|scope| {
            let (instance, next) =
                (instance.expose_provenance(), host.image("c", &[100; 9]).expose_provenance());
            let submitter = scope.spawn(move || {
                let instance = std::ptr::with_exposed_provenance_mut(instance);
                Plugin::load().execute(instance, &mut [std::ptr::with_exposed_provenance_mut(next)]).unwrap();
            });
            if overlaps {
                host.wait_until("the second batch is gathered", |book| book.calls_of(GATHER) >= 2);
                host.let_go(GATHER);
            }
            submitter.join().unwrap();
        });
        plugin.execute(instance, &mut [host.image("d", &[100; 9])]).unwrap();
        plugin.instance_finalize(instance).unwrap();
        plugin.model_finalize(model).unwrap();
        let mut answers: Vec<_> = book()
            .answers
            .iter()
            .map(|answer| (answer.request.clone(), answer.outputs[0].bytes.clone()))
            .collect();
        answers.sort();
        host.assert_clean();
        answers
    };
    let one = drawn("1");
    assert_eq!(one.len(), 4);
    assert!((1..4).all(|i| one[i - 1].1 != one[i].1), "all the same numbers: {one:?}");
    assert_eq!(drawn("2"), one);
    assert_eq!(drawn("3"), one);
}

#[test]
fn a_batch_that_fails_in_its_lane_leaves_the_lane_working() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (model, instance) = overlapping(&host, &plugin, "2");
    host.fail_next("TRITONBACKEND_RequestOutputCount");
    for id in ["a", "b", "c", "d"] {
        plugin.execute(instance, &mut [host.image(id, &[1, 2])]).unwrap();
    }
    plugin.instance_finalize(instance).unwrap();
    let book = book();
    let failed = book.answers.iter().filter(|answer| answer.failure.is_some()).count();
    assert_eq!((book.answers.len(), failed, book.released.len()), (4, 1, 4));
    drop(book);
    plugin.model_finalize(model).unwrap();
    host.assert_clean();
}

#[test]
fn a_response_that_cannot_be_made_leaves_all_requests_with_the_server() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (_, instance) = overlapping(&host, &plugin, "2");
    let mut requests = [host.image("a", &[1]), host.image("b", &[2])];
    host.fail("TRITONBACKEND_ResponseNew", 2);
    assert_eq!(plugin.execute(instance, &mut requests).unwrap_err().code, code::UNAVAILABLE);
    assert_eq!((host.live("request"), host.live("response")), (2, 0));
    plugin.execute(instance, &mut requests).unwrap();
    plugin.instance_finalize(instance).unwrap();
    assert_eq!(book().released, ["a", "b"]);
    host.assert_clean();
}

#[test]
fn a_number_of_batches_that_makes_no_sense_fails_the_load() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let config = r#"{"parameters":{"max_batches_in_flight":{"string_value":"0"}}}"#;
    let failed = plugin.model_initialize(host.model_of("prepare", config)).unwrap_err();
    let text = "model `prepare`: parameter `max_batches_in_flight` is `0`, expected 1 to 16";
    assert_eq!(failed, failure(code::INVALID_ARG, text));
    host.assert_clean();
}

#[test]
fn a_panic_in_another_thread_answers_the_requests_that_were_handed_over() {
    let host = Host::start();
    let requests = ["a", "b"].map(|id| host.request(id, vec![]));
    let mut lane = None;
    wrappers::run(&host, &requests, |claims| {
        let taken = std::mem::take(claims);
        lane = Some(std::thread::spawn(move || {
            exchange::answer(taken, |claims| {
                claims.remove(0).finish((1, 2));
                panic!("the lane broke");
            });
        }));
    })
    .unwrap();
    lane.unwrap().join().unwrap();
    let answers = book().answers.clone();
    assert_eq!(answers[0].failure, None);
    assert_eq!(
        answers[1].failure,
        Some(failure(code::INTERNAL, "failed by a fault of the program, of which its log says more"))
    );
    host.assert_clean();
}
