//! What a batch spent its time with, for those of its requests that the server traces.

use std::time::Duration;

use crate::triton::exchange::Claim;
use gesso::pipeline::{Pipeline, Tally};

/// What lasted for some time: its name, start and end.
pub(super) type Span = (String, u64, u64);

/// Whether the server traces one of `claims`.
pub(super) fn are_wanted(claims: &[Claim]) -> bool {
    claims.iter().any(|claim| claim.request().trace().is_some())
}

/// What `pipeline` did for a batch from `start` to `end`: its operators, which run one after another, and its wait for
/// a device.
pub(super) fn of_batch(pipeline: &Pipeline, tally: &Tally, (start, end): (u64, u64)) -> Vec<Span> {
    let nanoseconds = |took: Duration| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let mut spans = Vec::new();
    let mut begun = start;
    for (name, &took) in pipeline.operators().into_iter().zip(&tally.operators) {
        if !took.is_zero() {
            let ended = begun.saturating_add(nanoseconds(took)).min(end);
            spans.push((name, begun, ended));
            begun = ended;
        }
    }
    if !tally.device.is_zero() {
        spans.push(("device".to_owned(), end.saturating_sub(nanoseconds(tally.device)).max(start), end));
    }
    spans
}

/// Adds `spans` to the trace of a request that the server traces.
pub(super) fn report(claim: &Claim, spans: &[Span]) {
    let Some(trace) = claim.request().trace().filter(|_| !spans.is_empty()) else { return };
    for (name, start, end) in spans {
        if let Err(error) = trace.span(name, *start, *end) {
            return tracing::debug!("cannot trace `{name}`: {error}");
        }
    }
}
