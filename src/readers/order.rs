//! Which sample comes next: shards, epochs, shuffling by a buffer, padding, exactly in DALI's order. It must not know
//! what a sample is.

use std::collections::VecDeque;
use std::ops::Range;

use super::count;
use super::engines::{Mersenne32, Mersenne64, Minimal, shuffle, uniform};
use crate::error::{Error, Result};
use crate::limits;
use crate::operator::{Args, SEED};

/// With what lists are shuffled, whatever the seed.
pub(super) const FIXED_SEED: u32 = 524_287;

/// The arguments that decide the order.
#[derive(Clone)]
pub(super) struct Options {
    is_random: bool,
    initial_fill: usize,
    pub(super) shards: usize,
    pub(super) shard: usize,
    pub(super) stick_to_shard: bool,
    pub(super) pad_last_batch: bool,
    shuffle_after_epoch: Option<u64>,
    seed: i64,
    shuffles_list: bool,
}

impl Options {
    /// What the arguments say.
    pub(super) fn new(args: &Args, shuffles_list: bool) -> Result<Self> {
        let (is_random, shuffle_after_epoch) =
            (args.bool("random_shuffle")?, args.bool("shuffle_after_epoch")?);
        let shards = count(args, "num_shards", 1, limits::MAX_DATASET_SAMPLES)?;
        let shard = count(args, "shard_id", 0, shards - 1)?;
        let stick_to_shard = args.bool("stick_to_shard")?;
        if is_random && shuffle_after_epoch && shuffles_list {
            return Err(Error::invalid("`shuffle_after_epoch` and `random_shuffle` cannot both be true"));
        }
        if stick_to_shard && shuffle_after_epoch {
            return Err(Error::invalid("`shuffle_after_epoch` and `stick_to_shard` cannot both be true"));
        }
        let seed = args.int("shuffle_after_epoch_seed")? as u64;
        Ok(Self {
            is_random,
            initial_fill: if is_random {
                count(args, "initial_fill", 1, limits::MAX_DATASET_SAMPLES)?
            } else {
                1
            },
            shards,
            shard,
            stick_to_shard: stick_to_shard || shuffle_after_epoch,
            pad_last_batch: args.bool("pad_last_batch")?,
            shuffle_after_epoch: shuffle_after_epoch.then_some(seed),
            seed: args.given_int(SEED)?.filter(|&seed| seed != -1).unwrap_or_else(seed_of_now),
            shuffles_list,
        })
    }
}

/// A seed for those who give none.
fn seed_of_now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::from(now.subsec_nanos()) ^ now.as_secs() as i64)
}

/// Numbers of samples, endlessly. Epochs follow each other without a gap: a batch may have samples of two, unless the
/// last sample is repeated.
pub(super) struct Order {
    size: usize,
    options: Options,
    engine: Minimal,
    entries: Vec<usize>,
    /// The samples of each file, where files are shuffled before each epoch.
    groups: Option<Vec<Range<usize>>>,
    /// The shard that is read.
    shard: usize,
    epoch: u64,
    position: usize,
    buffer: Vec<usize>,
    read_in_shard: usize,
    /// For each epoch of which samples are in the buffer: from which to which, counted from the beginning.
    ranges: VecDeque<(usize, usize)>,
    returned: usize,
    /// Samples of the oldest epoch that were returned, without padding.
    taken: usize,
    last: usize,
}

impl Order {
    /// The order of `size` samples; of those in `groups`, `shuffle_after_epoch` keeps each group together.
    pub(super) fn new(size: usize, options: &Options, groups: Option<Vec<Range<usize>>>) -> Result<Self> {
        if size == 0 {
            return Err(Error::invalid("the reader found no samples"));
        }
        if options.shards > size {
            return Err(Error::invalid(format!(
                "`num_shards` is {}, but there are only {size} samples",
                options.shards
            )));
        }
        let mut entries: Vec<usize> = (0..size).collect();
        if options.is_random && options.shuffles_list {
            shuffle(&mut entries, &mut Mersenne32::new(FIXED_SEED));
        }
        let mut order = Self {
            size,
            options: options.clone(),
            engine: Minimal::new(options.seed),
            entries,
            groups,
            shard: options.shard,
            epoch: 0,
            position: 0,
            buffer: Vec::new(),
            read_in_shard: 0,
            ranges: VecDeque::new(),
            returned: 0,
            taken: 0,
            last: 0,
        };
        order.rewind(true);
        Ok(order)
    }

    fn start(&self, shard: usize) -> usize {
        (self.size as u128 * shard as u128 / self.options.shards as u128) as usize
    }

    fn rewind(&mut self, to_shard: bool) {
        self.position = if to_shard { self.start(self.shard) } else { 0 };
        self.epoch += 1;
        if let Some(seed) = self.options.shuffle_after_epoch {
            let mut engine = Mersenne64::new(seed.wrapping_add(self.epoch << 32));
            match self.groups.clone() {
                None => shuffle(&mut self.entries, &mut engine),
                // As in DALI, from the order of the files in every epoch.
                Some(mut groups) => {
                    shuffle(&mut groups, &mut engine);
                    self.entries = groups.into_iter().flatten().collect();
                }
            }
        }
    }

    fn read(&mut self) -> usize {
        let entry = self.entries.get(self.position).copied().unwrap_or_default();
        self.position += 1;
        let (own, options) = (self.options.shard + 1, &self.options);
        let ends = options.stick_to_shard && own < options.shards && self.position >= self.start(own);
        if self.position >= self.size || ends {
            self.rewind(self.options.stick_to_shard);
        }
        entry
    }

    /// Counts a sample that was read; behind a shard's last one a new range begins.
    fn count(&mut self) {
        let at = self.read_in_shard + self.start(self.shard);
        self.read_in_shard += 1;
        let next = self.shard + 1;
        if at + 1 > self.size || next < self.options.shards && at >= self.start(next) {
            if !self.options.stick_to_shard {
                self.shard = next % self.options.shards;
            }
            self.read_in_shard = 1;
            let end = self.ranges.back().map_or(0, |range| range.1);
            self.ranges.push_back((end, end));
        }
    }

    fn next(&mut self, begins_batch: bool) -> usize {
        if self.ranges.is_empty() {
            self.ranges.push_back((0, 0));
            for _ in 0..self.options.initial_fill {
                let entry = self.read();
                self.buffer.push(entry);
                self.count();
                self.grow();
            }
        }
        if self.is_over() {
            if self.options.pad_last_batch && (self.returned < self.in_shard() || !begins_batch) {
                self.returned += 1;
                return self.last;
            }
            self.ranges.pop_front();
            (self.returned, self.taken) = (0, 0);
        }
        let (first, end) = self.ranges.front().copied().unwrap_or_default();
        let drawn = match self.options.is_random {
            true => uniform(&mut self.engine, (end - first).saturating_sub(1) as u64) as usize,
            false => 0,
        };
        let capacity = self.buffer.len();
        self.buffer.swap((first + drawn) % capacity, first % capacity);
        let fresh = self.read();
        self.count();
        let slot = self.ranges.back().map_or(0, |range| range.1) % capacity;
        self.last = std::mem::replace(&mut self.buffer[slot], fresh);
        self.grow();
        if let Some(oldest) = self.ranges.front_mut() {
            oldest.0 += 1;
        }
        self.returned += 1;
        self.taken += 1;
        self.last
    }

    /// Samples of the longest shard.
    fn in_shard(&self) -> usize {
        self.size.div_ceil(self.options.shards)
    }

    /// Whether all samples of the oldest epoch were returned.
    fn is_over(&self) -> bool {
        self.ranges.front().is_some_and(|range| range.0 == range.1)
    }

    /// Goes on with the first sample of the next epoch; at the start of one it stays there.
    pub(super) fn next_epoch(&mut self) {
        while self.taken > 0 && !self.is_over() {
            self.next(false);
        }
        // Nor is there padding left.
        self.returned = self.in_shard();
    }

    fn grow(&mut self) {
        if let Some(newest) = self.ranges.back_mut() {
            newest.1 += 1;
        }
    }

    /// The next `count` numbers: those of a batch.
    pub(super) fn batch(&mut self, count: usize) -> Vec<usize> {
        (0..count).map(|i| self.next(i == 0)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::operator::args::Value;

    fn order(size: usize, given: &[(&str, i64)]) -> Order {
        let values: BTreeMap<_, _> =
            given.iter().map(|&(name, value)| (name.to_owned(), Value::Ints(vec![value]))).collect();
        let flags = ["random_shuffle", "stick_to_shard", "pad_last_batch", "shuffle_after_epoch"];
        let values = values.into_iter().map(|(name, value)| match value {
            Value::Ints(v) if flags.contains(&name.as_str()) => (name, Value::Bools(vec![v[0] != 0])),
            value => (name, value),
        });
        let options = Options::new(&crate::readers::file::DEF.arguments(values.collect()), true).unwrap();
        Order::new(size, &options, None).unwrap()
    }

    #[test]
    fn without_shuffling_samples_follow_each_other_and_wrap() {
        assert_eq!(order(5, &[]).batch(7), [0, 1, 2, 3, 4, 0, 1]);
    }

    #[test]
    fn shards_take_turns_or_stay() {
        let shards = [("num_shards", 2), ("shard_id", 1)];
        assert_eq!(order(6, &shards).batch(6), [3, 4, 5, 0, 1, 2]);
        assert_eq!(order(6, &[shards[0], shards[1], ("stick_to_shard", 1)]).batch(6), [3, 4, 5, 3, 4, 5]);
    }

    #[test]
    fn a_padded_epoch_repeats_its_last_sample() {
        let mut order = order(3, &[("pad_last_batch", 1)]);
        assert_eq!([order.batch(2), order.batch(2), order.batch(2)], [[0, 1], [2, 2], [0, 1]]);
    }

    #[test]
    fn an_epoch_is_left_in_the_middle_and_at_its_ends() {
        for pad_last_batch in [0, 1] {
            let options =
                [("random_shuffle", 1), ("initial_fill", 4), ("seed", 3), ("pad_last_batch", pad_last_batch)];
            let mut whole = order(6, &options);
            let expected = [whole.batch(6), whole.batch(6)];
            for taken in 0..=6 {
                let mut left = order(6, &options);
                assert_eq!(left.batch(taken), expected[0][..taken]);
                left.next_epoch();
                let next = if taken == 0 { 0 } else { 1 };
                assert_eq!(left.batch(6), expected[next], "{taken} of 6");
            }
        }
    }

    #[test]
    fn every_epoch_of_a_shuffled_reader_has_every_sample() {
        let mut order = order(50, &[("random_shuffle", 1), ("initial_fill", 10), ("seed", 42)]);
        for _ in 0..3 {
            let mut batch = order.batch(50);
            batch.sort_unstable();
            assert!(batch.into_iter().eq(0..50));
        }
    }

    /// As DALI's are, which `tests/orders` holds for hundreds of configurations.
    #[test]
    fn the_first_samples_of_a_shuffled_reader_are_known() {
        let mut order = order(50, &[("random_shuffle", 1), ("initial_fill", 10), ("seed", 42)]);
        assert_eq!(order.batch(12), [12, 11, 37, 23, 46, 20, 17, 19, 41, 44, 1, 7]);
    }
}
