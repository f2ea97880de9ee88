//! The pieces of a slab, of staging or scratch memory: how large they are, and what goes where. It must not know what
//! memory is.

use super::memory::ALIGNMENT;
use super::retention::Retention;
use crate::error::{Error, Result};

/// The smallest piece: tables of a batch, and small inputs.
const MIN_BYTES: usize = 256 << 10;

/// From so many on a power of two would be too much of a device.
const LARGE_BYTES: usize = 1 << 30;

/// A piece of memory, filled from its beginning.
pub(super) struct Piece<M> {
    pub(super) memory: M,
    bytes: usize,
    /// How much of it the batch uses.
    pub(super) used: usize,
    /// How much of that is on the device.
    pub(super) uploaded: usize,
}

/// Memory of one batch at a time, in one piece as soon as it is known how much a batch takes.
pub(super) struct Slab<M> {
    pub(super) pieces: Vec<Piece<M>>,
    /// What one piece must have to be enough for the batch. More than it uses when room was made for the worst case.
    asked: usize,
    retention: Retention,
}

impl<M> Slab<M> {
    /// One that keeps at most so many bytes for the next batch.
    pub(super) fn new(most: usize) -> Self {
        Self { pieces: Vec::new(), asked: 0, retention: Retention::new(most) }
    }

    /// Makes sure that the next places of `bytes` bytes together are in one piece. `new` makes memory.
    ///
    /// # Errors
    /// Those of `new`.
    pub(super) fn make_room(&mut self, bytes: usize, new: impl FnOnce(usize) -> Result<M>) -> Result<()> {
        let used: usize = self.pieces.iter().map(|piece| piece.used).sum();
        self.asked = self.asked.max(used + bytes);
        if self.pieces.last().is_none_or(|piece| piece.bytes - piece.used < bytes) {
            let held: usize = self.pieces.iter().map(|piece| piece.bytes).sum();
            self.add((bytes + bytes / 8).max(held), new)?;
        }
        Ok(())
    }

    /// A place of `bytes` bytes: which piece, and where it begins there.
    ///
    /// # Errors
    /// Those of `new`.
    pub(super) fn place(
        &mut self,
        bytes: usize,
        new: impl FnOnce(usize) -> Result<M>,
    ) -> Result<(usize, usize)> {
        self.make_room(bytes, new)?;
        let number = self.pieces.len() - 1;
        let piece = self.pieces.last_mut().ok_or_else(|| Error::internal("a slab without memory"))?;
        let offset = piece.used;
        piece.used = (offset + bytes).next_multiple_of(ALIGNMENT).min(piece.bytes);
        Ok((number, offset))
    }

    /// Forgets the batch. What stays is one piece that would have been enough for it: the largest, or else a new one.
    ///
    /// # Errors
    /// Those of `new`; nothing is left then, and nothing is lost but time.
    pub(super) fn clear(&mut self, new: impl FnOnce(usize) -> Result<M>) -> Result<()> {
        let (asked, most) = (std::mem::take(&mut self.asked), self.retention.most());
        let largest = self.pieces.drain(..).max_by_key(|piece| piece.bytes);
        match largest.filter(|piece| asked <= piece.bytes && self.retention.keeps(piece.bytes, asked)) {
            Some(enough) => self.pieces.push(Piece { used: 0, uploaded: 0, ..enough }),
            None if (1..=most).contains(&asked) => self.add(rounded(asked).min(most), new)?,
            None => {}
        }
        Ok(())
    }

    fn add(&mut self, bytes: usize, new: impl FnOnce(usize) -> Result<M>) -> Result<()> {
        let bytes = bytes.max(MIN_BYTES).next_multiple_of(ALIGNMENT);
        self.pieces.push(Piece { memory: new(bytes)?, bytes, used: 0, uploaded: 0 });
        Ok(())
    }
}

/// Bytes of a piece for batches like one of `bytes`, which may be somewhat larger.
fn rounded(bytes: usize) -> usize {
    if bytes < LARGE_BYTES { bytes.next_power_of_two() } else { bytes.next_multiple_of(LARGE_BYTES / 4) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits;

    const MOST: usize = limits::MAX_LARGE_STAGING_BYTES;

    /// Room that is made for what follows, and what of it is used, in places.
    type Batch = [(usize, Vec<usize>)];

    /// How many pieces of memory a batch makes.
    fn run(slab: &mut Slab<()>, batch: &Batch) -> usize {
        let mut made = 0;
        let mut new = |_: usize| {
            made += 1;
            Ok(())
        };
        for (room, places) in batch {
            slab.make_room(*room, &mut new).unwrap();
            for &bytes in places {
                let (piece, offset) = slab.place(bytes, &mut new).unwrap();
                let piece = &slab.pieces[piece];
                assert!(offset.is_multiple_of(ALIGNMENT) && offset + bytes <= piece.bytes);
                assert!(offset + bytes <= piece.used);
            }
        }
        slab.clear(&mut new).unwrap();
        assert!(slab.pieces.len() <= 1 && slab.pieces.iter().all(|piece| piece.used == 0));
        made
    }

    #[test]
    fn small_files_in_large_batches_need_no_new_memory_each_time() {
        // As the SMs take files of 5 kB: room is made for four tables of each, and all of them share theirs.
        let mut slab = Slab::new(MOST);
        for count in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
            let places = [vec![5_046; count], vec![16 << 10, 160 * count, 640 * count]].concat();
            let batch = [(count * (5_120 + 16_000), places)];
            run(&mut slab, &batch);
            assert_eq!(run(&mut slab, &batch), 0, "{count} files");
        }
    }

    #[test]
    fn one_huge_batch_does_not_keep_its_memory() {
        let (most, mut slab) = (MOST, Slab::new(MOST));
        run(&mut slab, &[(most + 1, vec![most + 1])]);
        assert!(slab.pieces.is_empty());
        for _ in 0..3 {
            run(&mut slab, &[(most - 1, vec![1_000; 1_000])]);
            assert_eq!(slab.pieces.iter().map(|piece| piece.bytes).collect::<Vec<_>>(), [most]);
        }
        assert_eq!(run(&mut slab, &[(most - 1, vec![1_000; 1_000])]), 0);
    }

    #[test]
    fn large_memory_stays_while_it_is_needed() {
        let large = 2 * limits::MAX_RETAINED_STAGING_BYTES;
        let (many, few) = ([(large, vec![large])], [(1_000, vec![1_000])]);
        let mut slab = Slab::new(MOST);
        run(&mut slab, &many);
        for _ in 0..3 {
            assert_eq!((1..Retention::BATCHES).map(|_| run(&mut slab, &few)).sum::<usize>(), 0);
            assert_eq!(run(&mut slab, &many), 0);
        }
        // Exchanged for little memory once.
        assert_eq!((0..100).map(|_| run(&mut slab, &few)).sum::<usize>(), 1);
        assert_eq!(run(&mut slab, &many), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_batch_like_the_last_needs_no_new_memory(
            batches in prop::collection::vec(
                prop::collection::vec((0..2_000_000_usize, prop::collection::vec(0..200_000_usize, 0..8)), 1..5),
                1..6,
            ),
        ) {
            let mut slab = Slab::new(MOST);
            for batch in batches {
                run(&mut slab, &batch);
                prop_assert_eq!(run(&mut slab, &batch), 0);
                prop_assert!(slab.pieces.len() == 1);
            }
        }
    }
}
