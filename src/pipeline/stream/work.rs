//! What a lane of a stream does with a batch. It must not know where the batch comes from.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use super::Delivered;
use crate::error::{Error, ErrorKind, Result, caught};
use crate::executor::{Executor, Keep, OutputSink};
use crate::operator::Failures;
use crate::pipeline::pull::Ready;
use crate::tensor::{Batch, BatchDesc};

/// A batch that is read, or soon will be.
pub(super) struct Coming {
    /// Samples before it.
    pub(super) first: u64,
    /// Gives the inputs when they are read.
    pub(super) ready: Receiver<Result<Ready>>,
}

/// A batch to run.
pub(super) struct Job {
    pub(super) coming: Coming,
    /// Takes what became of it.
    pub(super) reply: Sender<Result<Delivered<'static>>>,
}

/// What a thread does with the batches that it is given.
pub(super) fn worker(mut executor: Executor, to_host: bool, is_closed: Arc<AtomicBool>) -> impl FnMut(Job) {
    move |job| {
        let Job { coming, reply } = job;
        if is_closed.load(Ordering::Relaxed) {
            return;
        }
        let delivered = run(&mut executor, coming, Vec::new(), to_host, &mut WhileOpen(&is_closed));
        // Nobody may be waiting any more.
        let _ = reply.send(delivered);
    }
}

/// Runs a batch, with the inputs that a caller `given`.
pub(super) fn run<'r>(
    executor: &mut Executor,
    coming: Coming,
    given: Vec<Batch<'r>>,
    to_host: bool,
    sink: &mut dyn OutputSink<'r>,
) -> Result<Delivered<'r>> {
    caught(|| {
        let Coming { first, ready } = coming;
        let ready = ready.recv().unwrap_or_else(|_| Err(Error::internal("a batch was lost")))?;
        let (failures, inputs) = ready.with(given)?;
        let mut outcome = executor.run(first, failures, inputs, sink)?;
        if to_host {
            let outputs = outcome.outputs.iter().map(|output| executor.to_host(output));
            outcome.outputs = outputs.collect::<Result<_>>()?;
        }
        Ok(Delivered { first, outcome, tally: executor.tally().clone() })
    })
}

/// [`Keep`] for outputs that somebody may want.
struct WhileOpen<'a>(&'a AtomicBool);

impl<'r> OutputSink<'r> for WhileOpen<'_> {
    fn allocate(
        &mut self,
        output: usize,
        desc: &BatchDesc,
        failures: &Failures,
    ) -> Result<Vec<Option<&'r mut [u8]>>> {
        Keep.allocate(output, desc, failures)
    }

    fn poll_cancelled(&mut self, failures: &Failures) {
        if self.0.load(Ordering::Relaxed) {
            let error = Error::new(ErrorKind::Cancelled, "the stream is being dropped");
            (0..failures.len()).for_each(|i| failures.fail(i, error.clone()));
        }
    }
}
