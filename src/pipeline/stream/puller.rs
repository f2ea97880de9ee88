//! The thread that asks a stream's sources, and hands what they gave to the lanes. It must not know who takes the batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

use parking_lot::Mutex;

use super::Delivered;
use super::work::Job;
use crate::error::{Error, Result};
use crate::lanes::Lanes;
use crate::memory::HostPool;
use crate::pipeline::pull::Wires;
use crate::source::Source;

/// The sources of a stream. The puller holds the lock while it asks them.
pub(super) type Sources = Arc<Mutex<Vec<Box<dyn Source>>>>;

/// What was asked of the sources.
pub(super) enum Asked {
    /// A batch, which comes when it has run.
    Batch(Receiver<Result<Delivered>>),
    /// There was no more.
    End,
}

/// What the thread needs.
pub(super) struct Puller {
    pub(super) sources: Sources,
    pub(super) wires: Wires,
    /// Memory that sources may use.
    pub(super) memory: Arc<HostPool>,
    pub(super) batch_size: Arc<AtomicUsize>,
    /// Samples before the next batch.
    pub(super) first: u64,
    pub(super) is_closed: Arc<AtomicBool>,
    pub(super) lanes: Lanes<Job>,
    pub(super) asked: Sender<Asked>,
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
                let pulled = catch_unwind(AssertUnwindSafe(|| {
                    let most = self.batch_size.load(Ordering::Relaxed);
                    let is_wanted = || !self.is_closed.load(Ordering::Relaxed);
                    self.wires.pull(&mut self.sources.lock(), most, &self.memory, &is_wanted)
                }));
                let has_panicked = pulled.is_err();
                let pulled =
                    pulled.unwrap_or_else(|panic| Err(Error::from_panic(panic.as_ref()).context("a source")));
                let (reply, answer) = channel();
                let asked = match pulled {
                    Ok(None) => Asked::End,
                    Ok(Some((failures, inputs))) => {
                        let first = self.first;
                        self.first = first.wrapping_add(failures.len() as u64);
                        self.lanes.push(Job { first, failures, inputs, reply });
                        Asked::Batch(answer)
                    }
                    Err(error) => {
                        let _ = reply.send(Err(error));
                        Asked::Batch(answer)
                    }
                };
                let is_end = matches!(asked, Asked::End);
                if self.asked.send(asked).is_err() || has_panicked {
                    return;
                }
                if is_end {
                    break;
                }
            }
        }
    }
}
