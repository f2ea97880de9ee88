//! One batch at a time, from a caller who has its inputs.

use std::sync::Arc;

use super::Feeding;
use super::feeding::engines;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::executor::{Executor, Outcome, OutputSink, Tally};
use crate::gpu::Counters;
use crate::gpu::video::Engines;
use crate::graph::Feed;
use crate::memory::HostPool;
use crate::operator::{Decoded, Failures, Preferences};
use crate::tensor::{Batch, Sample, ValueType};
use crate::threads::Foreground;

/// One instance: runs one batch at a time.
pub struct Instance {
    executor: Executor,
    /// How many samples there are before the next batch.
    samples: u64,
    /// For videos that are fed.
    engines: Option<Arc<Engines>>,
}

impl Instance {
    pub(super) fn new(executor: Executor) -> Self {
        let engines = engines(&executor.plan().graph, executor.gpu());
        Self { executor, samples: 0, engines }
    }

    /// Another instance, for batches that are worked on at the same time as those of this one: it has the same threads,
    /// and the same memory for what is kept from batch to batch.
    ///
    /// # Errors
    /// What preparing the operators on a device fails with.
    pub fn beside(&self, preferences: &Preferences) -> Result<Self> {
        Ok(Self { executor: self.executor.beside(preferences)?, samples: 0, engines: self.engines.clone() })
    }

    /// Leaves a core to `others` while they are there: see [`crate::threads::Threads::yield_core_to`].
    pub fn yield_core_to(&self, others: &Arc<Foreground>) {
        self.executor.yield_core_to(others);
    }

    /// Runs the batch that comes after the last one: see [`Executor::run`].
    ///
    /// # Errors
    /// What fails the whole batch.
    pub fn run<'r>(
        &mut self,
        batch_size: usize,
        inputs: Vec<Batch<'r>>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Outcome<'r>> {
        self.run_at(self.samples, batch_size, inputs, sink)
    }

    /// Runs the batch before which there were `first` samples, wherever they were run: random numbers are those that
    /// one instance would draw that runs all of them, one batch after the other; but see
    /// [`super::Pipeline::needs_order`].
    ///
    /// # Errors
    /// What fails the whole batch.
    pub fn run_at<'r>(
        &mut self,
        first: u64,
        batch_size: usize,
        inputs: Vec<Batch<'r>>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Outcome<'r>> {
        self.run_among(first, Failures::none(batch_size), inputs, sink)
    }

    /// [`Instance::run_at`] for some samples of a batch: the others have failed before, and have no bytes.
    ///
    /// # Errors
    /// What fails the whole batch.
    pub fn run_among<'r>(
        &mut self,
        first: u64,
        failures: Failures,
        inputs: Vec<Batch<'r>>,
        sink: &mut dyn OutputSink<'r>,
    ) -> Result<Outcome<'r>> {
        if self.executor.plan().graph.takes_videos() {
            return Err(Error::invalid("its batches are made of a video: the pipeline is fed, by a stream"));
        }
        self.samples = first.wrapping_add(failures.len() as u64);
        self.executor.run(first, failures, inputs, sink)
    }

    /// Goes on where there are so many samples before the next batch: see [`Instance::run_at`].
    pub fn go_on(&mut self, samples: u64) {
        self.samples = samples;
    }

    /// As [`Instance::go_on`] for numbers that are drawn in branches of conditionals:
    /// [`Outcome::branch_samples`] of the batch before.
    ///
    /// # Errors
    /// Invalid when that is another number of branches.
    pub fn go_on_in_branches(&mut self, branch_samples: &[u64]) -> Result<()> {
        self.executor.go_on_in_branches(branch_samples)
    }

    /// How many samples there are before the next batch.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Whether what becomes of a sample depends on the others of its batch.
    pub fn mixes_samples(&self) -> bool {
        self.executor.mixes_samples()
    }

    /// Takes what a caller brings once for many batches, of a pipeline that [takes
    /// videos](super::Pipeline::takes_videos): its inputs in their order. All of it is copied.
    ///
    /// # Errors
    /// What is wrong with an input.
    pub fn feed(&self, inputs: &[Batch<'_>]) -> Result<Feeding> {
        let mut feeding = self.feeding()?;
        feeding.feed(inputs)?;
        Ok(feeding)
    }

    /// Nothing yet, for a video that comes in pieces: [`Feeding::grow`].
    ///
    /// # Errors
    /// What making sources fails with.
    pub fn feeding(&self) -> Result<Feeding> {
        Feeding::new(&self.executor.plan().graph, self.engines.as_ref(), self.executor.formats())
    }

    /// Runs the next batch of what was fed, of as many samples as the file was made for, or fewer: all samples of an
    /// input have one shape. `sink` is asked to make itself ready for so many samples. `None` when there are no more.
    /// `waiting` is asked now and then.
    ///
    /// # Errors
    /// What fails the whole batch; none follows an error of the video itself.
    pub fn run_fed<'r, S: OutputSink<'r>>(
        &mut self,
        feeding: &mut Feeding,
        deadline: &dyn Deadline,
        sink: impl FnOnce(usize) -> S,
    ) -> Result<Option<(S, Outcome<'r>)>> {
        let most = self.executor.plan().graph.max_batch_size;
        let Some((failures, inputs)) = feeding.next(most, self.executor.memory(), deadline)? else {
            return Ok(None);
        };
        let first = self.samples;
        self.samples = first.wrapping_add(failures.len() as u64);
        let decoded = self.decoded(&inputs);
        let mut sink = sink(failures.len());
        let outcome = self.executor.run(first, failures, inputs, &mut sink);
        self.executor.add_decoded(decoded);
        let outcome = outcome?;
        Ok(Some((sink, outcome)))
    }

    /// Frames of the sequences that a batch was made of, by where they were decoded: what engines decode is on the
    /// device.
    fn decoded(&self, inputs: &[Batch<'_>]) -> Decoded {
        let graph = &self.executor.plan().graph;
        let is_video =
            |feed: &Feed| matches!(feed, Feed::Source { source, .. } if Some(*source) == graph.videos());
        let videos = graph.inputs.iter().zip(inputs).filter(|(input, _)| is_video(&input.feed));
        let mut decoded = Decoded::default();
        for (_, batch) in videos {
            for (i, shape) in batch.desc().shapes.iter().enumerate() {
                let frames = shape.first().copied().unwrap_or_default();
                match batch.sample(i) {
                    Some(Sample::Device(_)) => decoded.engine_frames += frames,
                    _ => decoded.frames += frames,
                }
            }
        }
        decoded
    }

    /// Tells what is expected of the outputs beyond what the pipeline says: see [`Executor::expect`].
    pub fn expect(&mut self, outputs: &[ValueType]) {
        self.executor.expect(outputs);
    }

    /// What the last batch cost on the device: copies, launches, waits.
    pub fn counters(&self) -> Counters {
        self.executor.counters()
    }

    /// What the last batch took, operator by operator.
    pub fn tally(&self) -> &Tally {
        self.executor.tally()
    }

    /// Free and total bytes of the instance's device, if it has one.
    ///
    /// # Errors
    /// What the device says.
    pub fn device_memory(&self) -> Result<Option<(usize, usize)>> {
        self.executor.device_memory()
    }

    /// A batch in host memory, for callers that kept an output on the device.
    ///
    /// # Errors
    /// What the device says.
    pub fn to_host<'r>(&mut self, batch: &Batch<'r>) -> Result<Batch<'r>> {
        self.executor.to_host(batch)
    }

    /// Memory for callers that must copy an input before it can be read in place.
    pub fn memory(&self) -> &Arc<HostPool> {
        self.executor.memory()
    }
}
