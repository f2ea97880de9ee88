//! How a lane answers the requests of one execution, in rounds of one reply to each: gather their tensors without copying, run
//! the batch, reply to each request with its outputs or with its own error. Models have one round, but those that take videos: they
//! answer each request by itself (`feed`).
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
mod respond;
mod room;

use std::ops::Range;

use super::api::{Times, now};
use super::exchange::{self, Claim, Round};
use super::lane::Lane;
use fetch::Arrived;
use gather::{Merged, Tensors, merge};
use gesso::error::{Error, Result};
use gesso::lanes::Ticket;
use gesso::pipeline::Failures;
use respond::{Asked, Responses};

/// Answers every claim. `ticket` says which samples come before; without one, those that the lane has run.
pub(super) fn execute(lane: &mut Lane, claims: &mut Vec<Claim>, mut ticket: Option<Ticket>) {
    if lane.pipeline.takes_videos() {
        return std::mem::take(claims).into_iter().for_each(|claim| feed::answer(lane, claim));
    }
    let mut start = claims.first().map_or_else(now, Claim::start);
    while !claims.is_empty() {
        let (round, samples) = run(lane, claims, ticket.take());
        round.errors.iter().flatten().for_each(|error| lane.model.metrics.failed(error));
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

/// Runs the claims that can be joined as one batch, whose number of samples it returns.
fn run(lane: &mut Lane, claims: &[Claim], ticket: Option<Ticket>) -> (Round, usize) {
    let Lane { model, pipeline, runner, seconds, device, .. } = lane;
    let (link, landing) = device.as_mut().map(|device| (&device.link, &mut device.landing)).unzip();
    let inputs = pipeline.inputs();
    let mut arrived: Vec<Result<Vec<Option<Arrived<'_>>>>> =
        claims.iter().map(|claim| fetch::arrive(model, inputs, claim.request(), link)).collect();
    let tensors = arrived.iter().flatten().flatten().flatten();
    model.metrics.arrived(tensors.fold(0, |sum, tensor| sum.saturating_add(tensor.input.bytes)));
    if let (Some(link), Some(landing)) = (link, landing) {
        fetch::to_host(&mut arrived, link, landing);
    }
    let configured = &model.tensors.inputs;
    let asked: Vec<Result<Asked<'_>>> = claims.iter().map(|claim| Asked::of(model, claim)).collect();
    let gathered = |(arrived, asked): (Result<Vec<_>>, &Result<_>)| {
        let arrived = arrived?;
        asked.as_ref().map_err(Error::clone)?;
        Tensors::gather(inputs, configured, &arrived, runner.memory())
    };
    let tensors = arrived.into_iter().zip(&asked).map(gathered).collect();
    let merged = merge(inputs, tensors);
    let compute_start = now();
    let (errors, samples) = match merged {
        Err(error) => (vec![Some(error); claims.len()], 0),
        Ok(Merged { errors, samples: 0, .. }) => (errors, 0),
        Ok(Merged { inputs, ranges, mut errors, samples }) => {
            let mut responses = Responses::new(model, link, asked, &ranges);
            let outcome = match ticket {
                Some(ticket) => runner.run_at(ticket.take(samples), samples, inputs, &mut responses),
                None => runner.run(samples, inputs, &mut responses),
            };
            model.metrics.ran(seconds, runner.tally());
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
    (Round { errors, compute: (compute_start, now()), last: true }, samples)
}

/// Why the request with these samples failed: the first of its samples that did, or what failed the whole batch.
fn failure(outcome: &Result<Failures>, range: Range<usize>) -> Option<Error> {
    let failures = match outcome {
        Ok(failures) => failures,
        Err(error) => return Some(error.clone()),
    };
    let many = range.len() > 1;
    range.enumerate().find_map(|(i, sample)| {
        let error = failures.get(sample)?.clone();
        Some(if many { error.context(format!("sample {i}")) } else { error })
    })
}
