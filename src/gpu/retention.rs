//! How long pinned memory, and scratch memory of the device, stays for the next batch. It must not know what it is used
//! for.

use crate::error::Result;
use crate::limits;

/// How long large memory stays: as long as batches need it. Pinning it again takes longer than most batches do.
pub(super) struct Retention {
    /// Bytes that stay at most.
    most: usize,
    /// Batches since it was needed.
    unused: u32,
}

impl Retention {
    /// Batches that large memory stays for.
    pub(super) const BATCHES: u32 = 32;

    /// At most so many bytes stay.
    pub(super) fn new(most: usize) -> Self {
        Self { most, unused: 0 }
    }

    /// Bytes that stay at most.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Whether `held` bytes stay after a batch that asked for `asked`.
    pub(super) fn keeps(&mut self, held: usize, asked: usize) -> bool {
        let needed = held <= limits::MAX_RETAINED_STAGING_BYTES || asked > held / 4;
        self.unused = if needed { 0 } else { self.unused + 1 };
        held <= self.most && self.unused < Self::BATCHES
    }
}

/// Memory in one piece for one batch at a time: replaced by larger memory when a batch needs more, given up when
/// batches no longer do.
pub(super) struct Reused<M> {
    memory: Option<M>,
    bytes: usize,
    /// The most that the batch asked for.
    asked: usize,
    retention: Retention,
}

impl<M> Default for Reused<M> {
    fn default() -> Self {
        let retention = Retention::new(limits::MAX_LARGE_STAGING_BYTES);
        Self { memory: None, bytes: 0, asked: 0, retention }
    }
}

impl<M> Reused<M> {
    /// Bytes of the smallest piece.
    const MIN_BYTES: usize = 4_096;

    /// Memory of at least `bytes` bytes. `new` makes it, of the size and from the smaller memory before it that it is
    /// given.
    ///
    /// # Errors
    /// Those of `new`; there is no memory then.
    pub(super) fn fit(
        &mut self,
        bytes: usize,
        new: impl FnOnce(usize, Option<M>) -> Result<M>,
    ) -> Result<&mut M> {
        self.asked = self.asked.max(bytes);
        let old = self.memory.take();
        let memory = match old {
            Some(memory) if bytes <= self.bytes => memory,
            smaller => {
                let size = bytes.max(Self::MIN_BYTES).checked_next_power_of_two().unwrap_or(bytes);
                let memory = new(size, smaller)?;
                self.bytes = size;
                memory
            }
        };
        Ok(self.memory.insert(memory))
    }

    /// The memory, when there is some.
    pub(super) fn get(&self) -> Option<&M> {
        self.memory.as_ref()
    }

    /// Ends a batch, whose work was waited for.
    pub(super) fn end_batch(&mut self) {
        let asked = std::mem::take(&mut self.asked);
        if self.memory.is_some() && !self.retention.keeps(self.bytes, asked) {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a batch that needs `bytes`, and says whether memory was made for it and how much stays behind it.
    fn batch(reused: &mut Reused<usize>, bytes: usize) -> (bool, usize) {
        let mut made = false;
        if bytes > 0 {
            let memory = reused.fit(bytes, |size, _| {
                made = true;
                Ok(size)
            });
            assert!(*memory.unwrap() >= bytes);
        }
        reused.end_batch();
        (made, reused.get().copied().unwrap_or_default())
    }

    const LARGE: usize = 2 * limits::MAX_RETAINED_STAGING_BYTES;

    #[test]
    fn memory_of_a_common_size_stays() {
        let mut reused = Reused::default();
        assert_eq!(batch(&mut reused, 100), (true, 4_096));
        assert!(batch(&mut reused, limits::MAX_RETAINED_STAGING_BYTES).0);
        for _ in 0..10 * Retention::BATCHES {
            assert_eq!(batch(&mut reused, 0), (false, limits::MAX_RETAINED_STAGING_BYTES));
        }
    }

    #[test]
    fn large_memory_goes_when_batches_no_longer_need_it() {
        let mut reused = Reused::default();
        for small in [0, 1_000] {
            assert_eq!(batch(&mut reused, LARGE), (true, LARGE));
            for _ in 1..Retention::BATCHES {
                assert_eq!(batch(&mut reused, small), (false, LARGE));
            }
            // One that needs it starts the count again.
            assert_eq!(batch(&mut reused, LARGE), (false, LARGE));
            for _ in 1..Retention::BATCHES {
                assert_eq!(batch(&mut reused, small), (false, LARGE));
            }
            assert_eq!(batch(&mut reused, small), (false, 0));
        }
    }

    #[test]
    fn one_huge_batch_leaves_nothing() {
        let mut reused = Reused::default();
        assert_eq!(batch(&mut reused, limits::MAX_LARGE_STAGING_BYTES + 1), (true, 0));
    }

    #[test]
    fn larger_memory_is_made_from_the_smaller() {
        let mut reused = Reused::default();
        reused.fit(10, |size, old| Ok((size, old.is_some()))).unwrap();
        assert_eq!(*reused.fit(5_000, |size, old| Ok((size, old.is_some()))).unwrap(), (8_192, true));
    }
}
