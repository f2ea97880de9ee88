//! What an image decoder on a device gives to an operator that reads its images as they are decoded, a group of them at
//! a time. It must not know how they are.

use crate::error::Result;
use crate::operator::{GpuCx, Source};

/// Records what reads the images that are there, of all samples of a batch.
pub(in crate::ops) type Read<'r> = &'r mut dyn FnMut(&mut GpuCx<'_>, &[Source]) -> Result<()>;

/// Images of a batch that are decoded and not read yet.
pub(super) struct Unread<'r> {
    read: Read<'r>,
    sources: Vec<Source>,
}

impl<'r> Unread<'r> {
    /// None of `samples` samples.
    pub(super) fn new(read: Read<'r>, samples: usize) -> Self {
        Self { read, sources: vec![Source::Absent; samples] }
    }

    /// Sample `index` is at `source`.
    pub(super) fn add(&mut self, index: usize, source: Source) {
        if let Some(place) = self.sources.get_mut(index) {
            *place = source;
        }
    }

    /// Records what reads them.
    ///
    /// # Errors
    /// Those of the reader.
    pub(super) fn read(&mut self, cx: &mut GpuCx<'_>) -> Result<()> {
        if self.sources.iter().any(|&source| source != Source::Absent) {
            (self.read)(cx, &self.sources)?;
            self.sources.fill(Source::Absent);
        }
        Ok(())
    }
}
