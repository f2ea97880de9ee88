//! Work that an operator does not finish itself: what it leaves to the one operator that reads its output, and what it
//! looks at again when the device has run the batch. It must not know which operators do so.

use super::{GpuCx, GpuIo};
use crate::error::Result;

/// An operator that takes part in work that is put off.
pub trait Deferred {
    /// Sides (height, width) that images which it reads need not exceed: it makes them as small itself.
    fn sufficient_size(&self) -> Option<[usize; 2]> {
        None
    }

    /// Says, before [`super::Operator::prepare_gpu`], that it may be given planes of images
    /// ([`super::Source::Planes`]), of which it makes pixels itself.
    fn may_read_planes(&mut self) {}

    /// Lets it make smaller images for the only reader of its output, none of their sides below `enough`.
    fn may_reduce_to(&mut self, _enough: Option<[usize; 2]>) {}

    /// Says, before [`super::Operator::prepare_gpu`], that images which it decodes must have the pixels of
    /// libjpeg-turbo on a device as well.
    fn must_be_exact(&mut self) {}

    /// Whether [`Deferred::settle`] has something to look at after the batch that was recorded last.
    fn is_unsettled(&self) -> bool {
        false
    }

    /// Looks at what the device found out while it ran the batch. What came out wrong is made once more on the host and
    /// put in its place with `GpuCx::mend`, or fails its sample. Returns whether the batch must run on from
    /// there again.
    /// `io` has the regular inputs of the batch, and the outputs.
    ///
    /// # Errors
    /// What fails the whole batch.
    fn settle(&mut self, _cx: &mut GpuCx<'_>, _io: &GpuIo<'_>) -> Result<bool> {
        Ok(false)
    }
}
