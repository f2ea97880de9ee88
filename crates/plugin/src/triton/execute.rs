//! How a lane answers the requests of one execution, in rounds of one reply to each: gather their tensors without
//! copying, run the batch, reply to each request with its outputs or with its own error. Models have one round, but
//! those that take videos: they answer each request by itself (`feed`).
//!
//! ```text
//! requests  [ r0: 2 samples ] [ r1: 1 sample ] [ r2: no samples -> its error ]
//! fetch     what lies on a device and is needed on the host: one wait for all of it
//! batch     [ 0 ][ 1 ]        [ 2 ]              pointers into the requests' memory, on host or device
//! outputs   straight into the response buffers of r0 and r1
//! ```

mod feed;
mod fetch;
mod gather;
mod patience;
mod respond;
mod room;
mod spans;

use std::ops::Range;
use std::time::Duration;

use super::api::{Times, now};
use super::exchange::{self, Claim, Round};
use super::lane::{BatchSlot, Job, Lane};
use fetch::Arrived;
use gather::{Merged, Reading, Tensors, merge, read_files};
use gesso::error::{Error, ErrorKind, Result};
use gesso::lanes::Ticket;
use gesso::limits;
use gesso::pipeline::Failures;
pub(super) use patience::Until;
use patience::deferred_error;
use respond::{RequestedOutputs, Responses};
use spans::Span;

/// Which samples come before those of a batch.
pub(super) enum BatchOrder {
    /// Those that the lane has run.
    Next,
    /// Those of the tickets before.
    Ticket(Ticket),
    /// It is a part of another batch.
    Among(BatchSlot),
}

/// What became of a batch.
struct Ran {
    round: Round,
    /// Samples that were computed, or have failed.
    samples: usize,
    /// For each claim that is to be answered apart from the others: what it is expected to take, and its place in the
    /// batch.
    deferred: Vec<Option<(Duration, BatchSlot)>>,
    /// What it spent its time with, if a claim is traced.
    spans: Vec<Span>,
}

/// Answers every claim, or hands it over to the slow lane.
pub(super) fn execute(lane: &mut Lane, claims: &mut Vec<Claim>, mut turn: BatchOrder) {
    if lane.pipeline.takes_videos() {
        return std::mem::take(claims).into_iter().for_each(|claim| feed::answer(lane, claim));
    }
    let mut start = claims.first().map_or_else(now, Claim::start);
    while !claims.is_empty() {
        let Ran { mut round, samples, deferred, spans } =
            run(lane, claims, std::mem::replace(&mut turn, BatchOrder::Next));
        if let Some(slow) = lane.slow.as_ref().filter(|_| deferred.iter().any(Option::is_none)) {
            slow.others.touch();
        }
        defer_slow(lane, claims, &mut round, deferred);
        round.errors.iter().flatten().for_each(|error| lane.model.metrics.failed(error));
        claims.iter().for_each(|claim| spans::report(claim, &spans));
        if let Some(recorder) = &lane.model.recorder {
            for (claim, error) in claims.iter_mut().zip(&round.errors) {
                let taken = claim.with_reply();
                taken.into_iter().for_each(|(request, reply)| recorder.take(request, reply, error.as_ref()));
            }
        }
        let (compute_start, compute_end) = round.compute;
        exchange::reply(claims, round);
        if samples == 0 {
            continue;
        }
        let times = Times { start, compute_start, compute_end, end: now() };
        if let Err(error) = lane.instance.report_batch(samples as u64, &times) {
            tracing::warn!("cannot report the statistics of a batch: {error}");
        }
        start = times.end;
    }
}

/// Gives the claims that were set aside to the slow lane. Those that it has no room for are refused: waiting for it
/// would hold up the others, which is what it is there against.
fn defer_slow(
    lane: &Lane,
    claims: &mut Vec<Claim>,
    round: &mut Round,
    deferred: Vec<Option<(Duration, BatchSlot)>>,
) {
    let Some(slow) = lane.slow.as_ref().filter(|_| deferred.iter().any(Option::is_some)) else { return };
    let errors = std::mem::take(&mut round.errors);
    for ((claim, error), deferred) in std::mem::take(claims).into_iter().zip(errors).zip(deferred) {
        let Some((expected, place)) = deferred else {
            claims.push(claim);
            round.errors.push(error);
            continue;
        };
        let place = lane.pipeline.is_seeded().then_some(place);
        match slow.background.push(expected, Job { claim, place }) {
            Ok(()) => lane.model.metrics.is_slow(),
            Err(Job { claim, .. }) => {
                claims.push(claim);
                round.errors.push(Some(Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "{} requests that are expected to take long wait already",
                        limits::MAX_SLOW_REQUESTS
                    ),
                )));
            }
        }
    }
    // Copies of their files.
    lane.runner.memory().release();
}

/// Runs the claims that can be joined as one batch.
fn run(lane: &mut Lane, claims: &[Claim], turn: BatchOrder) -> Ran {
    let start = now();
    let Lane { model, pipeline, runner, seconds, device, slow, .. } = lane;
    let until =
        Until::new(claims.iter().map(Claim::start).min().unwrap_or(0), model.settings.quota.max_request());
    let (link, landing) = device.as_mut().map(|device| (&device.link, &mut device.landing)).unzip();
    let inputs = pipeline.inputs();
    let mut arrived: Vec<Result<Vec<Option<Arrived<'_>>>>> =
        claims.iter().map(|claim| fetch::arrive(model, inputs, claim, link)).collect();
    let tensors = arrived.iter().flatten().flatten().flatten();
    model.metrics.arrived(tensors.fold(0, |sum, tensor| sum.saturating_add(tensor.input.bytes)));
    if let (Some(link), Some(landing)) = (link, landing) {
        fetch::to_host(&mut arrived, link, landing);
    }
    let configured = &model.tensors.inputs;
    let asked: Vec<Result<RequestedOutputs<'_>>> =
        claims.iter().map(|claim| RequestedOutputs::of(model, claim)).collect();
    let gathered = |(arrived, asked): (Result<Vec<_>>, &Result<_>)| {
        let arrived = arrived?;
        asked.as_ref().map_err(Error::clone)?;
        Tensors::gather(inputs, configured, &arrived, runner.memory())
    };
    let mut tensors: Vec<_> = arrived.into_iter().zip(&asked).map(gathered).collect();
    let clients: Vec<_> = claims.iter().map(|claim| claim.request().client()).collect();
    let wanted = |i: usize| clients.get(i).map_or(Ok(()), |client| until.ask(*client));
    let reading = Reading { wanted: &wanted, from: slow.as_ref().map(|slow| slow.from) };
    let unread = read_files(inputs, &mut tensors, runner.memory(), &reading);
    let merged = merge(inputs, tensors).and_then(|merged| match turn {
        BatchOrder::Among(place) if merged.samples > 0 => merged.padded_to(place),
        _ => Ok(merged),
    });
    let compute_start = now();
    let mut deferred = vec![None; claims.len()];
    let (errors, samples) = match merged {
        Err(error) => (vec![Some(error); claims.len()], 0),
        Ok(Merged { errors, samples: 0, .. }) => (errors, 0),
        Ok(Merged { inputs, ranges, mut errors, samples: total }) => {
            let mut responses = Responses::new(model, link, asked, &ranges, until, slow.as_ref());
            let failures = Failures::none(total);
            for (range, time) in ranges.iter().zip(unread) {
                if let (Some(range), Some(time)) = (range, time) {
                    responses.put_aside(range, time, &failures);
                }
            }
            let first = match turn {
                BatchOrder::Next => runner.samples(),
                BatchOrder::Ticket(ticket) => ticket.take(total),
                BatchOrder::Among(place) => {
                    let ours = |i: &usize| ranges.iter().flatten().any(|range| range.contains(i));
                    (0..total).filter(|i| !ours(i)).for_each(|i| failures.fail(i, deferred_error()));
                    place.first
                }
            };
            let outcome = runner.run_among(first, failures, inputs, &mut responses);
            model.metrics.ran(seconds, runner.tally());
            let mut samples = ranges.iter().flatten().map(ExactSizeIterator::len).sum();
            for (range, expected) in responses.deferred() {
                samples -= range.len();
                let place = BatchSlot { first, before: range.start, total };
                if let Some(claim) = ranges.iter().position(|other| other.as_ref() == Some(&range)) {
                    deferred[claim] = Some((expected, place));
                }
            }
            let failures = outcome.map(|outcome| {
                responses.copy_late(&outcome);
                outcome.failures
            });
            for (error, range) in errors.iter_mut().zip(ranges) {
                let Some(range) = range else { continue };
                *error = failure(&failures, range);
            }
            (errors, samples)
        }
    };
    let compute = (compute_start, now());
    let mut spans = Vec::new();
    if samples > 0 && spans::are_wanted(claims) {
        spans = spans::of_batch(&lane.pipeline, lane.runner.tally(), compute);
        spans.insert(0, ("gather".to_owned(), start, compute_start));
    }
    Ran { round: Round { errors, compute, last: true }, samples, deferred, spans }
}

/// Why the request with these samples failed: the first of its samples that did by itself, or what failed the whole
/// batch.
fn failure(outcome: &Result<Failures>, range: Range<usize>) -> Option<Error> {
    let failures = match outcome {
        Ok(failures) => failures,
        Err(error) => return Some(error.clone()),
    };
    let many = range.len() > 1;
    let failed = || range.clone().enumerate().filter_map(|(i, sample)| Some((i, failures.get(sample)?)));
    // Samples are cancelled when another one of their request has failed.
    let first = failed().find(|(_, error)| error.kind() != ErrorKind::Cancelled).or_else(|| failed().next());
    first.map(|(i, error)| if many { error.clone().context(format!("sample {i}")) } else { error.clone() })
}
