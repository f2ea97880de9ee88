//! What gives the batches of `gesso run`: files that the command line names, the pipeline's own readers, a video after
//! the other. It must not know what becomes of them.

use gesso::error::{Error, Result};
use gesso::pipeline::{Feeding, Instance, Keep, NoDeadline, Outcome, Stream, Tally};
use gesso::tensor::Batch;

use crate::inputs::Loaded;

/// Where batches come from.
pub(crate) enum Work {
    /// Files that the command line names.
    Fed(Box<Instance>),
    /// The pipeline's own readers.
    Read(Box<Stream>),
    /// Videos that the command line names, each of which becomes many batches; and that at hand, with its number.
    Videos(Box<Instance>, Option<(usize, Feeding)>),
}

/// A batch that has run.
pub(crate) struct Made<'l> {
    /// Which of the samples that were named each one comes of.
    pub(crate) of: Vec<usize>,
    /// Fails when nothing more comes of those.
    pub(crate) outcome: Result<Outcome<'l>>,
    pub(crate) tally: Tally,
}

impl Work {
    /// How many samples are to be loaded for the next batch of `most`; of a video as many come as the file was made
    /// for.
    pub(crate) fn wants(&self, most: usize) -> usize {
        match self {
            Self::Fed(_) | Self::Read(_) => most,
            Self::Videos(_, at_hand) => usize::from(at_hand.is_none()),
        }
    }

    /// Whether more comes without more samples.
    pub(crate) fn has_more(&self) -> bool {
        matches!(self, Self::Videos(_, Some(_)))
    }

    /// The next batch; `None` when a video has ended.
    ///
    /// # Errors
    /// What fails a whole batch, but for a video.
    pub(crate) fn batch<'l>(&mut self, loaded: &'l Loaded) -> Result<Option<Made<'l>>> {
        match self {
            Self::Fed(instance) => {
                let first = loaded.numbers.first().copied().unwrap_or_default() as u64;
                // What fails a batch fails its samples: others may be well.
                let outcome = loaded
                    .batches()
                    .and_then(|batches| instance.run_at(first, loaded.numbers.len(), batches, &mut Keep));
                let tally = instance.tally().clone();
                Ok(Some(Made { of: loaded.numbers.clone(), outcome, tally }))
            }
            Self::Read(stream) => {
                let delivered = stream.next().ok_or_else(|| Error::internal("a reader has ended"))??;
                let (outcome, tally) = (Ok(delivered.outcome), delivered.tally);
                Ok(Some(Made { of: loaded.numbers.clone(), outcome, tally }))
            }
            Self::Videos(instance, at_hand) => videos(instance, at_hand, loaded),
        }
    }

    /// A batch that was made, in host memory.
    pub(crate) fn downloaded<'l>(&mut self, batch: &Batch<'l>) -> Result<Batch<'l>> {
        match self {
            Self::Fed(instance) | Self::Videos(instance, _) => instance.to_host(batch),
            Self::Read(_) => Ok(batch.clone()),
        }
    }
}

/// The next batch of the video at hand, which is the one that was loaded where there is none.
fn videos<'l>(
    instance: &mut Instance,
    at_hand: &mut Option<(usize, Feeding)>,
    loaded: &'l Loaded,
) -> Result<Option<Made<'l>>> {
    // A video that cannot be opened fails like one that is damaged behind.
    let failed =
        |number, error| Ok(Some(Made { of: vec![number], outcome: Err(error), tally: Tally::default() }));
    if let (None, Some(&number)) = (&at_hand, loaded.numbers.first()) {
        match loaded.batches().and_then(|batches| instance.feed(&batches)) {
            Ok(fed) => *at_hand = Some((number, fed)),
            Err(error) => return failed(number, error),
        }
    }
    let Some((number, feeding)) = at_hand.as_mut() else { return Ok(None) };
    let number = *number;
    match instance.run_fed(feeding, &NoDeadline, |_| Keep) {
        Ok(Some((_, outcome))) => {
            if feeding.is_over() {
                *at_hand = None;
            }
            let of = vec![number; outcome.failures.len()];
            Ok(Some(Made { of, outcome: Ok(outcome), tally: instance.tally().clone() }))
        }
        Ok(None) => {
            *at_hand = None;
            Ok(None)
        }
        Err(error) => {
            if feeding.is_over() {
                *at_hand = None;
            }
            failed(number, error)
        }
    }
}

/// Samples of an epoch: those of the first reader's part.
pub(crate) fn epoch(stream: &Stream) -> usize {
    stream.readers().first().map_or(1, |(_, facts)| facts.size.div_ceil(facts.shards))
}
