//! The thread that asks a stream's sources, and hands what they gave to the lanes. It must not know who takes the batches.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};

use parking_lot::Mutex;

use super::Delivered;
use super::work::Job;
use crate::error::{Context, Error, Result};
use crate::graph::{Feed, Graph, GraphInput};
use crate::lanes::Lanes;
use crate::memory::HostPool;
use crate::ops::Failures;
use crate::source::{Pulled, Source};
use crate::tensor::{Batch, Sample, ValueType};

/// The sources of a stream. The puller holds the lock while it asks them.
pub(super) type Sources = Arc<Mutex<Vec<Box<dyn Source>>>>;

/// What was asked of the sources.
pub(super) enum Asked {
    /// A batch, which comes when it has run.
    Batch(Receiver<Result<Delivered>>),
    /// There was no more.
    End,
}

/// What an input of the pipeline comes from.
pub(super) struct Wire {
    name: String,
    feed: Feed,
    /// What the source says of it.
    ty: ValueType,
}

/// What the thread needs.
pub(super) struct Puller {
    pub(super) sources: Sources,
    /// In the order of the pipeline's inputs.
    pub(super) wires: Vec<Wire>,
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
                let pulled = catch_unwind(AssertUnwindSafe(|| self.pull()));
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

    /// The next batch of every source: which samples failed already, and the inputs. The first source says how many samples there are.
    fn pull(&self) -> Result<Option<(Failures, Vec<Batch<'static>>)>> {
        let most = self.batch_size.load(Ordering::Relaxed);
        let mut size = most;
        let mut all = Vec::new();
        for (number, source) in self.sources.lock().iter_mut().enumerate() {
            // When one source fails, the others skip a batch: they keep step.
            let Some(pulled) = source.next(size, &self.memory).transpose() else { return Ok(None) };
            if let (0, Ok(pulled)) = (number, &pulled) {
                size = pulled.batches.first().map_or(0, Batch::len);
            }
            all.push(pulled);
        }
        let failures = Failures::none(size);
        let mut batches = Vec::with_capacity(all.len());
        for (number, pulled) in all.into_iter().enumerate() {
            let checked = pulled.and_then(|pulled| match size {
                0 => {
                    Err(Error::invalid("gives a batch without samples, expected none when there are no more"))
                }
                _ if size > most => {
                    Err(Error::invalid(format!("gives {size} samples, expected at most {most}")))
                }
                _ => self.checked(number, pulled, &failures),
            });
            batches.push(checked.context(|| format!("source {number}"))?);
        }
        let input = |wire: &Wire| {
            let found = match wire.feed {
                Feed::Source { source, output } => {
                    batches.get(source).and_then(|outputs| outputs.get(output))
                }
                Feed::Caller => None,
            };
            found.cloned().ok_or_else(|| Error::internal(format!("input `{}` has no batch", wire.name)))
        };
        let inputs = self.wires.iter().map(input).collect::<Result<_>>()?;
        Ok(Some((failures, inputs)))
    }

    /// What source `number` gave, held to what it said; notes the samples that it could not have.
    fn checked(&self, number: usize, pulled: Pulled, failures: &Failures) -> Result<Vec<Batch<'static>>> {
        let outputs = self.wires.iter().filter_map(|wire| match wire.feed {
            Feed::Source { source, output } if source == number => Some((output, wire)),
            _ => None,
        });
        for (sample, error) in pulled.failures {
            failures.fail(sample, error);
        }
        let (mut expected, found) = (0, pulled.batches.len());
        for (output, wire) in outputs {
            expected += 1;
            let batch = pulled.batches.get(output);
            let batch =
                batch.ok_or_else(|| Error::invalid(format!("has no batch for input `{}`", wire.name)))?;
            wire.check(batch, failures).context(|| format!("input `{}`", wire.name))?;
        }
        if found != expected {
            return Err(Error::invalid(format!("gives {found} batches, expected {expected}")));
        }
        Ok(pulled.batches)
    }
}

impl Wire {
    /// Of an input of `graph`.
    pub(super) fn new(graph: &Graph, input: &GraphInput) -> Self {
        Self { name: input.name.clone(), feed: input.feed, ty: graph.value(input.value).ty.clone() }
    }

    /// Whether a batch is what the source said of all; a sample without bytes that is not known to have failed does so now.
    fn check(&self, batch: &Batch<'_>, failures: &Failures) -> Result<()> {
        let (desc, expected) = (batch.desc(), failures.len());
        if batch.len() != expected {
            return Err(Error::invalid(format!("{} samples, expected {expected}", batch.len())));
        }
        if let Some(dtype) = self.ty.dtype.filter(|&dtype| dtype != desc.dtype) {
            return Err(Error::invalid(format!("elements of type {}, expected {dtype}", desc.dtype)));
        }
        if let Some(layout) = self.ty.layout.filter(|&layout| layout != desc.layout) {
            return Err(Error::invalid(format!("layout `{}`, expected `{layout}`", desc.layout)));
        }
        for (i, shape) in desc.shapes.iter().enumerate() {
            if matches!(batch.sample(i), Some(Sample::Missing)) {
                failures
                    .fail(i, Error::internal(format!("the source of `{}` left it without bytes", self.name)));
            }
            let Some(dims) = &self.ty.dims else { continue };
            let fits = |(known, &found): (&Option<usize>, &usize)| known.is_none_or(|known| known == found);
            let fits = failures.get(i).is_some() || dims.iter().zip(shape.iter()).all(fits);
            if shape.len() != dims.len() || !fits {
                return Err(Error::invalid(format!("a sample of shape {shape}, expected {dims:?}")));
            }
        }
        Ok(())
    }
}
