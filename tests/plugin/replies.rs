//! Requests with several replies, through the plugin's own types; and one request's failure while it is answered.

use gesso::error::Error;
use gesso::tensor::DType;
use triton_gesso::triton::api::DataType;
use triton_gesso::triton::exchange::{self, Claim, Round};

use crate::host::{Answer, Host, book, code};
use crate::library::Plugin;
use crate::wrappers::{host_memory, run};
use crate::{failure, ready};

const FINAL: u32 = 1;

/// Fills the open reply with one byte.
fn fill(claim: &Claim, byte: u8) {
    let output = claim.reply().unwrap().output("pixels", DataType::Dense(DType::U8), &[1]).unwrap();
    host_memory(output, 1).fill(byte);
}

/// The bytes of the outputs that went to a request, and whether each was said to be the last.
fn sent_to(request: &str) -> Vec<(Vec<u8>, u32)> {
    let of_request = |answer: &&Answer| answer.request == request;
    let bytes = |answer: &Answer| answer.outputs.iter().flat_map(|output| output.bytes.clone()).collect();
    book().answers.iter().filter(of_request).map(|answer| (bytes(answer), answer.flags)).collect()
}

#[test]
fn a_request_gets_several_replies_and_the_last_one_says_so() {
    let host = Host::start();
    let requests = ["a", "b", "c"].map(|id| host.request(id, vec![]));
    run(&host, &requests, |claims| {
        for round in 1..=3 {
            for claim in claims.iter() {
                let is_first = claim.request().id().unwrap() == "a";
                fill(claim, if is_first { round } else { 20 * round });
            }
            let mut errors = vec![None; claims.len()];
            if round == 2 {
                errors[1] = Some(Error::invalid("frame 2 is damaged"));
            }
            exchange::reply(claims, Round { errors, compute: (10 + u64::from(round), 20), last: round == 3 });
        }
        assert!(claims.is_empty());
    })
    .unwrap();
    assert_eq!(sent_to("a"), [(vec![1], 0), (vec![2], 0), (vec![3], FINAL)]);
    assert_eq!(sent_to("c"), [(vec![20], 0), (vec![40], 0), (vec![60], FINAL)]);
    let book = book();
    let to_b: Vec<_> = book.answers.iter().filter(|answer| answer.request == "b").collect();
    assert_eq!((to_b.len(), to_b[0].flags, to_b[1].flags), (2, 0, FINAL));
    assert_eq!(to_b[1].failure, Some(failure(code::INVALID_ARG, "frame 2 is damaged")));
    // Each is counted once, from its first computation to the last, and released once.
    let successes: Vec<_> = book.reports.iter().filter(|report| report.success).collect();
    assert_eq!((book.reports.len(), successes.len()), (3, 2));
    assert_eq!(successes[0].times[1..3], [11, 20]);
    assert_eq!(book.released, ["b", "a", "c"]);
    assert_eq!(book.deleted_responses, 0);
    drop(book);
    host.assert_clean();
}

#[test]
fn a_claim_that_is_dropped_between_replies_ends_with_an_error_once() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], |claims| {
        let mut claim = claims.pop().unwrap();
        fill(&claim, 1);
        claim.send((1, 2)).unwrap();
    })
    .unwrap();
    let answers = book().answers.clone();
    assert_eq!(answers.iter().map(|answer| answer.flags).collect::<Vec<_>>(), [0, FINAL]);
    let text = "the request was dropped without an answer";
    assert_eq!((&answers[0].failure, &answers[1].failure), (&None, &Some(failure(code::INTERNAL, text))));
    let book = book();
    assert_eq!((book.released.len(), book.reports.len()), (1, 1));
    drop(book);
    host.assert_clean();
}

#[test]
fn a_panic_between_replies_ends_with_an_error_once() {
    let host = Host::start();
    run(&host, &[host.request("a", vec![])], |claims| {
        fill(&claims[0], 1);
        claims[0].send((1, 2)).unwrap();
        panic!("the decoder broke");
    })
    .unwrap();
    let answers = book().answers.clone();
    assert_eq!(answers.iter().map(|answer| answer.flags).collect::<Vec<_>>(), [0, FINAL]);
    assert_eq!(
        answers[1].failure,
        Some(failure(code::INTERNAL, "failed by a fault of the program, of which its log says more"))
    );
    host.assert_clean();
}

#[test]
fn a_client_hears_of_it_when_the_next_reply_cannot_be_made() {
    let host = Host::start();
    host.fail("TRITONBACKEND_ResponseNew", 2);
    run(&host, &[host.request("a", vec![])], |claims| {
        fill(&claims[0], 1);
        exchange::reply(claims, Round { errors: vec![None], compute: (1, 2), last: false });
        assert!(claims.is_empty());
    })
    .unwrap();
    let answers = book().answers.clone();
    assert_eq!((answers.len(), answers[0].flags), (1, FINAL));
    assert_eq!(answers[0].failure.as_ref().unwrap().code, code::UNAVAILABLE);
    host.assert_clean();
}

#[test]
fn a_request_that_does_not_say_what_it_wants_fails_alone() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let (_, instance) = ready(&host, &plugin);
    let mut requests = [host.image("a", &[1, 2]), host.image("b", &[3, 4]), host.image("c", &[5, 6])];
    host.fail("TRITONBACKEND_RequestOutputName", 2);
    plugin.execute(instance, &mut requests).unwrap();
    let book = book();
    assert_eq!(book.answers[0].outputs[0].bytes, [2, 1]);
    assert_eq!(book.answers[1].failure.as_ref().unwrap().code, code::UNAVAILABLE);
    assert_eq!(book.answers[2].outputs[0].bytes, [6, 5]);
    // It has no samples in the batch.
    assert_eq!(book.batches, [2]);
    drop(book);
    host.assert_clean();
}

#[test]
fn an_error_whose_object_cannot_be_made_is_an_error_still() {
    let (host, plugin) = (Host::start(), Plugin::load());
    let model = host.model_of("prepare", r#"{"max_batch_size":-3}"#);
    host.fail_next("TRITONSERVER_ErrorNew");
    let failed = plugin.model_initialize(model).unwrap_err();
    assert_eq!(failed, failure(code::INVALID_ARG, "an error whose text does not fit into memory"));
    host.assert_clean();
}
