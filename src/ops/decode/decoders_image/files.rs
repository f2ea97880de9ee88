//! The encoded files of a batch where somebody else may write to them meanwhile: what is looked at twice is copied
//! first. Of a JPEG for a device's SMs that is its header, because its data are read once; of any other file all of
//! it. It must not know decoders.

use std::borrow::Cow;

use crate::error::{Error, Result};
use crate::gpu::jpeg::Header;
use crate::limits;
use crate::memory::{copied_once, copy_once};
use crate::operator::SampleInputs;
use crate::tensor::Sample;

/// Bytes that are copied in search of a header's end before all of the file is.
const HEAD_BYTES: [usize; 3] = [1 << 10, 8 << 10, 128 << 10];

/// Copies of files' beginnings.
#[derive(Default)]
pub(super) struct Files {
    /// Whether the caller's memory may change; else nothing is copied.
    pub(super) may_change: bool,
    /// Of each sample of the batch; empty when it is read where it is.
    heads: Vec<Vec<u8>>,
}

/// A file, and as much of its beginning as does not change.
#[derive(Debug, Clone, Copy)]
pub(super) struct File<'a> {
    pub(super) head: &'a [u8],
    pub(super) all: &'a [u8],
}

impl File<'_> {
    /// Whether there is more than its beginning, which may change.
    pub(super) fn may_change(&self) -> bool {
        self.head.len() < self.all.len()
    }
}

impl Files {
    /// Forgets the last batch.
    pub(super) fn begin(&mut self, batch_size: usize) {
        self.heads.truncate(batch_size);
        self.heads.resize_with(batch_size, Vec::new);
        for head in &mut self.heads {
            head.clear();
            head.shrink_to(limits::MAX_RETAINED_HEAD_BYTES);
        }
    }

    /// The file of a sample that has not been looked at: all that tells what is in it.
    ///
    /// # Errors
    /// When it is not on the host.
    pub(super) fn look<'f>(&'f mut self, sample: &SampleInputs<'f>) -> Result<&'f [u8]> {
        let file: &[u8] = sample.input(0)?.as_slice()?;
        if !self.is_foreign(sample)? {
            return Ok(file);
        }
        let head = self.heads.get_mut(sample.index).ok_or_else(missing_sample)?;
        for end in HEAD_BYTES.into_iter().filter(|&end| end < file.len()).chain([file.len()]) {
            // Not from the start again: what was there may have changed.
            let start = head.len();
            head.resize(end, 0);
            copy_once(&file[start..end], &mut head[start..]);
            if Header::ends_within(head) {
                break;
            }
        }
        Ok(head)
    }

    /// The file of a sample that was looked at.
    ///
    /// # Errors
    /// When it is not on the host; internal, when it was not looked at.
    pub(super) fn file<'f>(&'f self, sample: &SampleInputs<'f>) -> Result<File<'f>> {
        let all: &[u8] = sample.input(0)?.as_slice()?;
        if !self.is_foreign(sample)? {
            return Ok(File { head: all, all });
        }
        let head = self.heads.get(sample.index).filter(|head| !head.is_empty()).ok_or_else(missing_sample)?;
        Ok(File { head, all: if head.len() < all.len() { all } else { head } })
    }

    /// The same, all of it in memory that does not change.
    ///
    /// # Errors
    /// As there.
    pub(super) fn own<'f>(&'f self, sample: &SampleInputs<'f>) -> Result<Cow<'f, [u8]>> {
        let file = self.file(sample)?;
        Ok(if file.may_change() { Cow::Owned(copied_once(file.all)) } else { Cow::Borrowed(file.all) })
    }

    /// Whether the caller has the memory, and it may change.
    fn is_foreign(&self, sample: &SampleInputs<'_>) -> Result<bool> {
        Ok(self.may_change && matches!(sample.place(0)?, Sample::Borrowed(_)))
    }
}

/// The error of an image that `setup` did not look at.
pub(super) fn missing_sample() -> Error {
    Error::internal("an image was not looked at")
}
