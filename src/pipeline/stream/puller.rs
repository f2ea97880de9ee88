//! The thread that asks a stream's sources, and hands what they gave to the lanes. It must not know who takes the
//! batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use parking_lot::Mutex;

use super::Delivered;
use super::work::{Coming, Job};
use crate::error::{Error, ErrorKind, Result, caught};
use crate::lanes::Lanes;
use crate::memory::HostPool;
use crate::pipeline::pull::{Begun, Wires};
use crate::source::Source;
use crate::threads;

/// The sources of a stream. The puller holds the lock while it asks them.
pub(super) type Sources = Arc<Mutex<Vec<Box<dyn Source>>>>;

/// What was asked of the sources.
pub(super) enum Pulled {
    /// A batch, which comes when it has run.
    Batch(Receiver<Result<Delivered<'static>>>),
    /// A batch that whoever takes it runs.
    ToRun(Coming),
    /// There was no more.
    End,
}

/// What the thread needs.
pub(super) struct Puller {
    pub(super) sources: Sources,
    pub(super) wires: Arc<Wires>,
    /// Memory that sources may use.
    pub(super) memory: Arc<HostPool>,
    pub(super) batch_size: usize,
    /// Samples before the next batch.
    pub(super) first: u64,
    pub(super) is_closed: Arc<AtomicBool>,
    /// Who runs the batches; absent: who takes them.
    pub(super) lanes: Option<Lanes<Job>>,
    pub(super) asked: Sender<Pulled>,
    /// Takes a word for each batch that was asked for and is not taken; full when there may be no more.
    pub(super) in_flight: SyncSender<()>,
    pub(super) resumed: Receiver<()>,
}

impl Puller {
    /// Pulls until nobody wants more, or a source panics. Dropping the puller ends its lanes.
    pub(super) fn run(mut self) {
        while self.resumed.recv().is_ok() {
            while self.in_flight.send(()).is_ok() && !self.is_closed.load(Ordering::Relaxed) {
                // Whatever a source does, the batch that was asked for has an answer.
                let begun = catch_unwind(AssertUnwindSafe(|| {
                    let most = self.batch_size;
                    let is_wanted = || !self.is_closed.load(Ordering::Relaxed);
                    self.wires.begin(&mut self.sources.lock(), most, &self.memory, &is_wanted)
                }));
                let has_panicked = begun.is_err();
                let asked = match begun {
                    Ok(None) => Pulled::End,
                    Ok(Some(begun)) => self.read(begun),
                    Err(panic) => failed(Error::from_panic(panic.as_ref()).context("a source")),
                };
                let is_end = matches!(asked, Pulled::End);
                if self.asked.send(asked).is_err() || has_panicked {
                    return;
                }
                if is_end {
                    break;
                }
            }
        }
    }

    /// Gives a batch to the lanes. What is still to be read is read by threads that all streams share, several batches
    /// at a time, and a lane waits for it, or whoever takes the batch.
    fn read(&mut self, begun: Begun) -> Pulled {
        let (done, ready) = sync_channel(1);
        let shared = begun.is_read_later().then(threads::shared);
        let samples = if let Some(Ok(shared)) = shared {
            let samples = begun.samples;
            let (wires, is_closed) = (Arc::clone(&self.wires), Arc::clone(&self.is_closed));
            shared.spawn(move || {
                let read = || match is_closed.load(Ordering::Relaxed) {
                    true => Err(Error::new(ErrorKind::Cancelled, "the stream is being dropped")),
                    false => wires.finish(begun),
                };
                // Nobody may be waiting any more.
                let _ = done.send(caught(read));
            });
            samples
        } else {
            match caught(|| self.wires.finish(begun)) {
                Ok(inputs) => {
                    let samples = inputs.failures.len();
                    let _ = done.send(Ok(inputs));
                    samples
                }
                // As many samples as before it come before the next one.
                Err(error) => return failed(error),
            }
        };
        let coming = Coming { first: self.first, ready };
        self.first = self.first.wrapping_add(samples as u64);
        let Some(lanes) = &self.lanes else { return Pulled::ToRun(coming) };
        let (reply, answer) = channel();
        lanes.push(Job { coming, reply });
        Pulled::Batch(answer)
    }
}

/// A batch that failed before it ran.
fn failed(error: Error) -> Pulled {
    let (reply, answer) = channel();
    // The other end is here.
    let _ = reply.send(Err(error));
    Pulled::Batch(answer)
}
