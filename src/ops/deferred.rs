//! Work that an operator does not finish itself: what it leaves to the one operator that reads its output, and what it looks at
//! again when the device has run the batch. It must not know which operators do so.

use super::{GpuCx, Inputs};
use crate::error::Result;

/// What an operator can read in place of whole pixels of its first input, if nothing else reads that.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Accepts {
    /// Smaller images, none of their sides below these (height, width).
    pub smaller: Option<[usize; 2]>,
    /// Planes of samples on a device (`kernels/planes.cuh`), of which it makes images of bytes with three channels itself.
    pub planes: bool,
}

/// An operator that takes part in work that is put off. Both ends implement it: the reader accepts, the one before it leaves.
///
/// ```text
/// plan     reader.accepts()  >  producer.leave(..)  >  reader.receive(..)      once, before the first batch
/// batch    producer: GpuCx::put_off   reader: GpuCx::left_at                   for each sample
///          settle, after the device has run
/// ```
pub trait Deferred {
    /// What it can read in place of whole pixels of its first input.
    fn accepts(&self) -> Accepts {
        Accepts::default()
    }

    /// Takes that the operator before it may leave it `left`, which it accepts.
    fn receive(&mut self, _left: Accepts) {}

    /// Leaves to the only reader of its output some of what that accepts. Returns what it may leave.
    fn leave(&mut self, _accepted: Accepts) -> Accepts {
        Accepts::default()
    }

    /// Whether [`Deferred::settle`] has something to look at after the batch that was recorded last.
    fn is_unsettled(&self) -> bool {
        false
    }

    /// Looks at what the device found out while it ran the batch. What came out wrong is made once more on the host and put
    /// in its place with [`crate::gpu::Recorder::mend`], or fails its sample. Returns whether the batch must run on from
    /// there again.
    /// `inputs` are the regular ones of the batch.
    ///
    /// # Errors
    /// What fails the whole batch.
    fn settle(&mut self, _cx: &mut GpuCx<'_>, _inputs: Inputs<'_>) -> Result<bool> {
        Ok(false)
    }
}
