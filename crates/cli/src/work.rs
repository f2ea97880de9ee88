//! What gives the batches of `gesso run`: files that the command line names, the pipeline's own readers, a video after the other. It must not
//! know what becomes of them.

use gesso::error::{Error, Result};
use gesso::pipeline::{Feeding, Forever, Instance, Keep, Outcome, Stream, Tally};
use gesso::tensor::Batch;

use crate::inputs::Samples;

/// Where batches come from.
pub(crate) enum Work {
    /// Files that the command line names.
    Fed(Box<Instance>),
    /// The pipeline's own readers.
    Read(Box<Stream>),
    /// Videos that the command line names, each of which becomes many batches.
    Videos(Box<Instance>, Option<Feeding>),
}

/// A batch that has run.
pub(crate) struct Made<'s> {
    /// Which of the files that were named each sample comes of.
    pub(crate) files: Vec<usize>,
    /// Fails when nothing more comes of those files.
    pub(crate) outcome: Result<Outcome<'s>>,
    pub(crate) tally: Tally,
}

impl Work {
    /// How many batches of `most` samples there will be, where that is known before.
    pub(crate) fn batches(&self, samples: &Samples, most: usize) -> Option<usize> {
        (!matches!(self, Self::Videos(..))).then(|| samples.len().div_ceil(most))
    }

    /// The batch behind sample `first`, of at most `most`; of a video as many as the file was made for. With `next`, the file that comes next.
    ///
    /// # Errors
    /// What fails a whole batch, but for a video.
    pub(crate) fn batch<'s>(
        &mut self,
        samples: &'s Samples,
        first: usize,
        most: usize,
        next: &mut usize,
    ) -> Result<Option<Made<'s>>> {
        let count = most.min(samples.len().saturating_sub(first));
        let files = (first..first + count).collect();
        match self {
            Self::Videos(instance, feeding) => videos(instance, feeding, samples, next),
            _ if count == 0 => Ok(None),
            Self::Fed(instance) => {
                let outcome = Ok(instance.run(count, samples.batches(first, count)?, &mut Keep)?);
                Ok(Some(Made { files, outcome, tally: instance.tally().clone() }))
            }
            Self::Read(stream) => {
                let delivered = stream.next().ok_or_else(|| Error::internal("a reader has ended"))??;
                Ok(Some(Made { files, outcome: Ok(delivered.outcome), tally: delivered.tally }))
            }
        }
    }

    /// A batch that was made, in host memory.
    pub(crate) fn downloaded<'s>(&mut self, batch: &Batch<'s>) -> Result<Batch<'s>> {
        match self {
            Self::Fed(instance) | Self::Videos(instance, _) => instance.to_host(batch),
            Self::Read(_) => Ok(batch.clone()),
        }
    }
}

/// The next batch of the video at hand, or of the one behind it.
fn videos<'s>(
    instance: &mut Instance,
    feeding: &mut Option<Feeding>,
    samples: &'s Samples,
    next: &mut usize,
) -> Result<Option<Made<'s>>> {
    loop {
        let at_hand = match feeding {
            Some(at_hand) if !at_hand.is_over() => at_hand,
            _ if *next == samples.len() => return Ok(None),
            _ => {
                *next += 1;
                // A video that cannot be opened fails like one that is damaged behind.
                match instance.feed(&samples.batches(*next - 1, 1)?) {
                    Ok(fed) => feeding.insert(fed),
                    Err(error) => {
                        *feeding = None;
                        return Ok(Some(Made {
                            files: vec![*next - 1],
                            outcome: Err(error),
                            tally: Tally::default(),
                        }));
                    }
                }
            }
        };
        let outcome = match instance.run_fed(at_hand, &Forever, |_| Keep) {
            Ok(None) => continue,
            Ok(Some((_, outcome))) => Ok(outcome),
            Err(error) => Err(error),
        };
        let count = outcome.as_ref().map_or(1, |outcome| outcome.failures.len());
        return Ok(Some(Made { files: vec![*next - 1; count], outcome, tally: instance.tally().clone() }));
    }
}

/// Samples of an epoch: those of the first reader's part.
pub(crate) fn epoch(stream: &Stream) -> usize {
    stream.readers().first().map_or(1, |(_, facts)| facts.size.div_ceil(facts.shards))
}
