//! Streams beside that of a batch, for work that need not wait for the rest of it. It must not know what runs in them.

use std::sync::Arc;

use super::device::{Event, Gpu, Stream};
use crate::error::Result;

/// A stream beside that of a batch.
pub(super) struct Side {
    pub(super) stream: Arc<Stream>,
    /// Of this stream or of the batch's, whichever the other is to wait for.
    event: Event,
}

impl Side {
    /// Goes on behind all that `batch` has so far.
    pub(super) fn follow(&self, batch: &Stream) -> Result<()> {
        self.event.record(batch)?;
        self.stream.wait(&self.event)
    }

    /// Lets `batch` go on behind all that is here so far.
    pub(super) fn lead(&self, batch: &Stream) -> Result<()> {
        self.event.record(&self.stream)?;
        batch.wait(&self.event)
    }
}

/// Those of one batch at a time.
#[derive(Default)]
pub(super) struct Sides {
    /// As many as a batch ever used.
    all: Vec<Arc<Side>>,
    /// How many this one uses.
    used: usize,
    /// Where work goes.
    current: Option<Arc<Side>>,
}

impl Sides {
    /// Where work goes; `None`: into the batch's own stream.
    pub(super) fn current(&self) -> Option<Arc<Side>> {
        self.current.clone()
    }

    /// Lets work go to the one with this number.
    ///
    /// # Errors
    /// What the driver says.
    pub(super) fn fork(&mut self, number: usize, gpu: &Arc<Gpu>) -> Result<Arc<Side>> {
        while self.all.len() <= number {
            self.all.push(Arc::new(Side { stream: gpu.stream()?, event: Event::new(gpu)? }));
        }
        self.used = self.used.max(number + 1);
        let side = Arc::clone(&self.all[number]);
        self.current = Some(Arc::clone(&side));
        Ok(side)
    }

    /// Lets work go into the batch's own stream again. Returns those that it used.
    pub(super) fn join(&mut self) -> &[Arc<Side>] {
        self.current = None;
        &self.all[..std::mem::take(&mut self.used)]
    }
}
