//! How a lane answers the requests of one execution: gather their tensors without copying, run the batch, answer each
//! request with its outputs or with its own error.
//!
//! ```text
//! requests  [ r0: 2 samples ] [ r1: 1 sample ] [ r2: no samples -> its error ]
//! fetch     what lies on a device and is needed on the host: one wait for all of it
//! batch     [ 0 ][ 1 ]        [ 2 ]              pointers into the requests' memory, on host or device
//! outputs   straight into the response buffers of r0 and r1
//! ```

mod fetch;
mod gather;
mod respond;

use std::ops::Range;

use super::api::{Times, now};
use super::exchange::Exchange;
use super::instance::Lane;
use fetch::Arrived;
use gather::{Merged, Tensors, merge};
use gesso::error::{Error, Result};
use gesso::pipeline::Failures;
use respond::Responses;

/// Answers every exchange.
pub(super) fn execute(lane: &mut Lane, exchanges: &mut Vec<Exchange>) {
    let start = exchanges.first().map_or_else(now, Exchange::start);
    let done = run(lane, exchanges);
    for (exchange, error) in exchanges.drain(..).zip(done.errors) {
        match error {
            None => exchange.finish(done.compute),
            Some(error) => {
                lane.model.metrics.failed(&error);
                exchange.fail(&error);
            }
        }
    }
    if done.samples == 0 {
        return;
    }
    let (compute_start, compute_end) = done.compute;
    let times = Times { start, compute_start, compute_end, end: now() };
    if let Err(error) = lane.instance.report_batch(done.samples as u64, &times) {
        tracing::warn!("cannot report the statistics of a batch: {error}");
    }
}

/// What became of an execution.
struct Done {
    /// For each exchange: why it has no outputs.
    errors: Vec<Option<Error>>,
    /// Start and end of the computation.
    compute: (u64, u64),
    /// Samples that were computed.
    samples: usize,
}

/// Runs the exchanges that can be joined as one batch.
fn run(lane: &mut Lane, exchanges: &[Exchange]) -> Done {
    let Lane { model, pipeline, runner, seconds, device, .. } = lane;
    let (link, landing) = device.as_mut().map(|device| (&device.link, &mut device.landing)).unzip();
    let inputs = pipeline.inputs();
    let mut arrived: Vec<Result<Vec<Option<Arrived<'_>>>>> =
        exchanges.iter().map(|exchange| fetch::arrive(model, inputs, exchange.request(), link)).collect();
    let tensors = arrived.iter().flatten().flatten().flatten();
    model.metrics.arrived(tensors.fold(0, |sum, tensor| sum.saturating_add(tensor.input.bytes)));
    if let (Some(link), Some(landing)) = (link, landing) {
        fetch::to_host(&mut arrived, link, landing);
    }
    let configured = &model.tensors.inputs;
    let tensors = arrived
        .into_iter()
        .map(|arrived| Tensors::gather(inputs, configured, &arrived?, runner.memory()))
        .collect();
    let merged = merge(inputs, tensors);
    let compute_start = now();
    let (errors, samples) = match merged {
        Err(error) => (vec![Some(error); exchanges.len()], 0),
        Ok(Merged { errors, samples: 0, .. }) => (errors, 0),
        Ok(Merged { inputs, ranges, mut errors, samples }) => {
            let outcome = Responses::new(model, link, exchanges, &ranges).and_then(|mut responses| {
                let outcome = runner.run(samples, inputs, &mut responses);
                model.metrics.ran(seconds, runner.tally());
                let outcome = outcome?;
                responses.copy_late(&outcome)?;
                Ok(outcome.failures)
            });
            for (error, range) in errors.iter_mut().zip(ranges) {
                let Some(range) = range else { continue };
                *error = failure(&outcome, range);
            }
            (errors, samples)
        }
    };
    Done { errors, compute: (compute_start, now()), samples }
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
