//! One image of a batch on its way to a device, and what each of the decoders there makes of its header. It must not know which of them takes it.

use super::super::Job;
use super::super::files::File;
use super::super::finish::{Extent, Stored};
use crate::gpu::jpeg::cores::Planned;
use crate::gpu::jpeg::{Picture, Size};
use crate::memory::DeviceBytes;

/// One image of a batch.
pub(super) struct Image<'a> {
    pub(super) index: usize,
    pub(super) job: Job,
    pub(super) file: File<'a>,
    pub(super) target: DeviceBytes<'a>,
    /// Set when the engines take it.
    pub(super) picture: Option<Picture<'a>>,
    /// Set when the cores take it.
    pub(super) planned: Option<Planned<'a>>,
    /// Whether nvJPEG2000 may take it.
    pub(super) is_wavelets: bool,
}

impl Image<'_> {
    pub(super) fn size(&self) -> Size {
        let (width, height) = self.job.info.stored_size();
        Size { bytes: self.file.all.len(), pixels: width * height }
    }

    pub(super) fn stored<'s>(&'s self, extent: Extent, pixels: &'s DeviceBytes<'s>) -> Stored<'s> {
        Stored { job: &self.job, extent, pixels, target: &self.target }
    }
}
