"""Which sample comes next: shards, epochs, shuffling by a buffer, padding. Exactly DALI's order."""

from collections import deque

from .random import Mersenne32, Mersenne64, Minimal, shuffle, uniform

_FIXED_SEED = 524287


class Order:
    """Indices of samples, endlessly; `batch` gives those of a batch.

    Epochs follow each other without a gap: a batch may have samples of two. With `pad_last_batch` it repeats the last
    sample instead."""

    def __init__(self, size, seed, options, shuffles_all=True, restarts=False, groups=None):
        """`options`: the arguments of the reader. `shuffles_all`: `random_shuffle` shuffles the list of samples, too.
        `restarts`: `shuffle_after_epoch` shuffles the list as it was at first, not as it was before. `groups`: the
        samples of each file, if `shuffle_after_epoch` shuffles files."""
        self.size = size
        self.is_random = options.get("random_shuffle", False)
        self.shard = options.get("shard_id", 0)
        self.shards = options.get("num_shards", 1)
        self.pads = options.get("pad_last_batch", False)
        self.again = options.get("shuffle_after_epoch", False)
        self.again_seed = options.get("shuffle_after_epoch_seed", _FIXED_SEED)
        self.sticks = options.get("stick_to_shard", False) or self.again
        self._engine = Minimal(seed)
        self._groups = groups if groups is not None else [[i] for i in range(size)]
        self._original = list(self._groups)
        self._entries = list(range(size))
        if self.is_random and shuffles_all:
            shuffle(self._entries, Mersenne32(_FIXED_SEED))
        # Where files are shuffled, DALI begins from their own order in every epoch.
        self._restarts = restarts or groups is not None
        self._virtual = self.shard
        self._epoch = 0
        self._rewind(True)
        self._capacity = max(options.get("initial_fill", 1024), 1) if self.is_random else 1
        self._buffer = None
        self._read_in_shard = 0
        self._returned = 0
        self._ranges = deque()
        self._last = None
        self._epochs_over = self._taken = 0

    def _start(self, shard):
        return self.size * shard // self.shards

    def _rewind(self, to_shard):
        self._position = self._start(self._virtual) if to_shard else 0
        self._epoch += 1
        if self.again:
            if self._restarts:
                self._groups = list(self._original)
            seed = self.again_seed + (self._epoch << 32)
            shuffle(self._groups, Mersenne64(seed & Mersenne64.highest))
            self._entries = [i for group in self._groups for i in group]

    def _read(self):
        entry = self._entries[self._position]
        self._position += 1
        ends = self.sticks and self.shard + 1 < self.shards and self._position >= self._start(self.shard + 1)
        if self._position >= self.size or ends:
            self._rewind(self.sticks)
        self._count()
        return entry

    def _count(self):
        """Counts a sample that was read; behind a shard's last one a new range begins."""
        self._read_in_shard += 1
        at = self._read_in_shard - 1 + self._start(self._virtual)
        is_last_shard = self._virtual + 1 >= self.shards
        if at >= self.size or not is_last_shard and at >= self._start(self._virtual + 1):
            if not self.sticks:
                self._virtual = (self._virtual + 1) % self.shards
            self._read_in_shard = 1
            self._ranges.append([self._ranges[-1][1]] * 2)

    def _fill(self):
        self._ranges.append([0, 0])
        self._buffer = []
        for _ in range(self._capacity):
            self._buffer.append(self._read())
            self._ranges[-1][1] += 1

    def _next(self, begins_batch):
        if self._buffer is None:
            self._fill()
        if self._ranges[0][0] == self._ranges[0][1]:
            in_shard = -(-self.size // self.shards)
            if self.pads and (self._returned < in_shard or not begins_batch):
                self._returned += 1
                return self._last
            self._ranges.popleft()
            self._returned = self._taken = 0
            self._epochs_over += 1
        oldest, count = self._ranges[0], len(self._buffer)
        drawn = uniform(self._engine, oldest[1] - oldest[0] - 1) if self.is_random else 0
        chosen, first = (oldest[0] + drawn) % count, oldest[0] % count
        self._buffer[chosen], self._buffer[first] = self._buffer[first], self._buffer[chosen]
        fresh = self._read()
        slot = self._ranges[-1][1] % count
        self._last, self._buffer[slot] = self._buffer[slot], fresh
        self._ranges[-1][1] += 1
        oldest[0] += 1
        self._returned += 1
        self._taken += 1
        return self._last

    def _is_over(self):
        return self._buffer is not None and self._ranges[0][0] == self._ranges[0][1]

    @property
    def epoch(self):
        """The epoch of the next sample that is no padding, from 0."""
        return self._epochs_over + self._is_over()

    @property
    def is_at_start(self):
        """Whether that sample is the first one of its epoch."""
        return self._taken == 0 or self._is_over()

    def rest(self):
        """The samples that are still to come in this epoch, at the start of one all of them; goes to the next one."""
        self._returned = -(-self.size // self.shards)
        found = [self._next(True)]
        while not self._is_over():
            found.append(self._next(False))
        self._returned = -(-self.size // self.shards)
        return found

    def next_epoch(self):
        """Goes on with the first sample of the next epoch."""
        if not self.is_at_start:
            self.rest()
        self._returned = -(-self.size // self.shards)

    def batch(self, count):
        """The next `count` indices."""
        return [self._next(i == 0) for i in range(count)]
