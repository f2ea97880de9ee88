//! How long the requests of a batch may take: until when each is waited for, and which are expected to hold up the
//! others. It must not know tensors or responses.

use std::ops::Range;
use std::time::Duration;

use super::fetch::cancelled;
use crate::triton::api::{Client, now};
use crate::triton::lane::Slow;
use gesso::error::{Error, ErrorKind, Result};
use gesso::pipeline::{Deadline, Failures};

/// Until when a request may take: the time by [`now`], and the model's limit that it comes from.
#[derive(Debug, Clone, Copy)]
pub(in crate::triton) struct Until {
    time: u64,
    limit: Duration,
}

impl Until {
    /// For requests that arrived at `start`.
    pub(in crate::triton) fn new(start: u64, limit: Duration) -> Self {
        Self { time: start.saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX)), limit }
    }

    /// Whether a request may take longer yet.
    fn check(self) -> Result<()> {
        if now() <= self.time {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "the request takes longer than the model's limit of {} ms (`max_request_ms`)",
                self.limit.as_millis()
            ),
        ))
    }

    /// Whether `client` still waits, and may.
    ///
    /// # Errors
    /// Why not.
    pub(in crate::triton) fn ask(self, client: Client<'_>) -> Result<()> {
        self.check()?;
        if client.has_left().unwrap_or(false) { Err(cancelled()) } else { Ok(()) }
    }

    fn left(self) -> Duration {
        Duration::from_nanos(self.time.saturating_sub(now()))
    }
}

/// One request, whatever the sample.
pub(super) struct One<'r> {
    pub(super) client: Client<'r>,
    pub(super) until: Until,
}

impl Deadline for One<'_> {
    fn check(&self, _sample: Option<usize>) -> Result<()> {
        self.until.ask(self.client)
    }

    fn left(&self) -> Option<Duration> {
        Some(self.until.left())
    }
}

/// The requests of a batch.
pub(super) struct Patience<'r> {
    until: Until,
    /// Where requests go that would hold up the others, and what would.
    slow: Option<&'r Slow>,
    /// In the order of their samples.
    requests: Vec<Waits<'r>>,
}

/// A request that waits.
struct Waits<'r> {
    client: Client<'r>,
    range: Range<usize>,
    /// What it is expected to take, if it is not worked on here for that.
    deferred: Option<Duration>,
}

impl<'r> Patience<'r> {
    /// For the requests of these clients, each with its samples of the batch, in their order.
    pub(super) fn new(
        until: Until,
        slow: Option<&'r Slow>,
        requests: impl Iterator<Item = (Client<'r>, Range<usize>)>,
    ) -> Self {
        let requests = requests.map(|(client, range)| Waits { client, range, deferred: None }).collect();
        Self { until, slow, requests }
    }

    /// Fails the samples of requests that nobody waits for, or of which a sample has failed: then there is no answer.
    pub(super) fn look(&self, failures: &Failures) {
        for Waits { range, .. } in &self.requests {
            let live = || range.clone().filter(|&i| failures.get(i).is_none());
            let count = live().count();
            if count == 0 {
                continue;
            }
            if let Err(error) = self.check(Some(range.start)) {
                live().for_each(|i| failures.fail(i, error.clone()));
            } else if count < range.len() {
                live().for_each(|i| failures.fail(i, needless()));
            }
        }
    }

    /// Whether requests are weighed at all.
    pub(super) fn wants_estimates(&self) -> bool {
        self.slow.is_some()
    }

    /// Sets requests aside for which an operator is expected to take too long, which are samples and the time of one
    /// core for each. One that `has_outputs` stays: its response cannot be begun anew.
    pub(super) fn admit(
        &mut self,
        expected: &[(usize, Duration)],
        failures: &Failures,
        has_outputs: impl Fn(usize) -> bool,
    ) {
        let Some(slow) = self.slow else { return };
        let mut times = vec![(Duration::ZERO, Duration::ZERO); self.requests.len()];
        for &(sample, time) in expected {
            if let Some((longest, sum)) = self.request_of(sample).and_then(|i| times.get_mut(i)) {
                (*longest, *sum) = (time.max(*longest), sum.saturating_add(time));
            }
        }
        for (i, (request, (longest, sum))) in self.requests.iter_mut().zip(times).enumerate() {
            // A sample is the work of one thread.
            let time = longest.max(sum / slow.threads);
            if time > slow.from && request.deferred.is_none() && !has_outputs(i) {
                request.deferred = Some(time);
                request.range.clone().for_each(|sample| failures.fail(sample, deferred_error()));
            }
        }
    }

    /// Sets the request with samples `range` aside, which is expected to take `time`.
    pub(super) fn put_aside(&mut self, range: &Range<usize>, time: Duration, failures: &Failures) {
        if let Some(request) = self.requests.iter_mut().find(|request| request.range == *range) {
            request.deferred = Some(time);
            range.clone().for_each(|sample| failures.fail(sample, deferred_error()));
        }
    }

    /// The requests that were set aside: their samples of the batch, and what they are expected to take.
    pub(super) fn deferred(&self) -> Vec<(Range<usize>, Duration)> {
        let deferred = |request: &Waits<'_>| Some((request.range.clone(), request.deferred?));
        self.requests.iter().filter_map(deferred).collect()
    }

    fn request_of(&self, sample: usize) -> Option<usize> {
        let i = self.requests.partition_point(|request| request.range.end <= sample);
        self.requests.get(i).filter(|request| request.range.contains(&sample)).map(|_| i)
    }
}

impl Deadline for Patience<'_> {
    fn check(&self, sample: Option<usize>) -> Result<()> {
        let request = sample.and_then(|sample| self.request_of(sample)).and_then(|i| self.requests.get(i));
        request.map_or_else(|| self.until.check(), |request| self.until.ask(request.client))
    }

    fn left(&self) -> Option<Duration> {
        Some(self.until.left())
    }
}

/// Of samples that are computed in another batch.
pub(super) fn deferred_error() -> Error {
    Error::new(ErrorKind::Cancelled, "the sample is computed in another batch")
}

/// Of samples that have not failed, of a request that has.
fn needless() -> Error {
    Error::new(ErrorKind::Cancelled, "another sample of the request failed")
}
