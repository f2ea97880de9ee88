//! A lane: what works on one batch of an instance at a time, and the device that it uses. And where it sends requests
//! that would hold up the others. It must not know who drives it, or how requests are answered.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::api::Instance;
use super::exchange::Claim;
use super::metrics::OperatorSeconds;
use super::model::ModelState;
use gesso::error::Result;
use gesso::lanes::Background;
use gesso::pipeline::{self, CudaStream, Fetch, Pipeline};
use gesso::threads::Foreground;

/// What works on one batch at a time.
pub(super) struct Lane {
    /// Triton's handle, to report to. It is valid until the instance is finalized, which waits for its lanes.
    pub(super) instance: Instance,
    /// What it shares with the other instances.
    pub(super) model: Arc<ModelState>,
    /// What it runs.
    pub(super) pipeline: Arc<Pipeline>,
    /// Runs the batches.
    pub(super) runner: pipeline::Instance,
    /// Where it counts the time of its operators.
    pub(super) seconds: OperatorSeconds,
    /// The device of an instance that has one, even if its pipeline needs none: tensors may come from there.
    pub(super) device: Option<LaneDevice>,
    /// Where it sends requests that would hold up the others, if it does not answer all of them.
    pub(super) slow: Option<Slow>,
}

/// Where a lane sends requests that would hold up the others.
#[derive(Clone)]
pub(super) struct Slow {
    /// The thread that answers them.
    pub(super) background: Arc<Background<Job>>,
    /// What one operator may be expected to take at most for a request that stays.
    pub(super) from: Duration,
    /// Samples of a request that are worked on at the same time.
    pub(super) threads: u32,
    /// Those who answer the other requests.
    pub(super) others: Arc<Foreground>,
}

/// A request to answer apart from the others that it came with.
pub(super) struct Job {
    pub(super) claim: Claim,
    /// Where random numbers depend on it.
    pub(super) place: Option<BatchSlot>,
}

/// The place of a request's samples among those that they came with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchSlot {
    /// Samples of earlier batches.
    pub(super) first: u64,
    /// Samples of the batch before them.
    pub(super) before: usize,
    /// Samples of the batch.
    pub(super) total: usize,
}

/// How a lane gets at memory of its device outside of a batch.
pub(super) struct LaneDevice {
    /// The device.
    pub(super) link: Link,
    /// Where tensors land that are needed on the host.
    pub(super) landing: Option<Fetch>,
}

impl LaneDevice {
    /// The device of this number.
    pub(super) fn new(model: &Arc<ModelState>, ordinal: usize) -> Self {
        Self { link: Link { model: Arc::clone(model), ordinal, stream: OnceLock::new() }, landing: None }
    }
}

/// A device, opened when something needs it.
pub(super) struct Link {
    model: Arc<ModelState>,
    /// Its number.
    pub(super) ordinal: usize,
    stream: OnceLock<Arc<CudaStream>>,
}

impl Link {
    /// A stream for copies.
    ///
    /// # Errors
    /// What opening the device fails with.
    pub(super) fn stream(&self) -> Result<&Arc<CudaStream>> {
        if let Some(stream) = self.stream.get() {
            return Ok(stream);
        }
        let stream = self.model.gpu(self.ordinal)?.stream()?;
        Ok(self.stream.get_or_init(|| stream))
    }
}
