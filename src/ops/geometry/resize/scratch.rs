//! Memory of resizes on the host, kept between batches.

use parking_lot::Mutex;

use crate::cpu::{exact, resample};
use crate::limits;

/// Memory that a [`super::Job`] needs while it runs.
#[derive(Default)]
pub(in crate::ops) struct Scratch {
    pub(super) dali: resample::Scratch,
    pub(super) exact: exact::Scratch,
}

/// Scratch memory for as many threads as resize at once; kept for the next batch.
#[derive(Default)]
pub(in crate::ops) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    /// Runs `f` with a scratch of its own, and keeps it unless it became large.
    pub(in crate::ops) fn with<T>(&self, f: impl FnOnce(&mut Scratch) -> T) -> T {
        let mut scratch = self.0.lock().pop().unwrap_or_default();
        let result = f(&mut scratch);
        if scratch.dali.bytes() + scratch.exact.bytes() <= limits::MAX_RETAINED_SCRATCH_BYTES {
            self.0.lock().push(scratch);
        }
        result
    }
}
