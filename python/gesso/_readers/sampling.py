"""Orders that users decide: a list of numbers, a function of the epoch, or weights. The interface is that of
`order.Order`."""

import numpy as np


class Sampled:
    """Indices of samples as a sampler gives them, epoch after epoch. Each shard takes every `num_shards`-th of them."""

    def __init__(self, size, sampler, weights, options):
        self.size = self._samples = size
        self.shard, self.shards = options.get("shard_id", 0), options.get("num_shards", 1)
        self.pads, self.sticks = options.get("pad_last_batch", False), True
        self._sampler = sampler
        self._probabilities = None
        if weights is not None:
            weights = np.asarray(weights, np.float64)
            if weights.shape != (size,) or weights.min() < 0 or weights.sum() <= 0:
                raise ValueError(
                    f"`weights` needs a number of at least 0 for each of {size} samples, not all 0; got the shape {weights.shape}."
                )
            self._probabilities = weights / weights.sum()
        self._seed = options["seed"]
        self._epoch = -1
        self._own, self._count, self._at = [], 0, 0
        if not callable(sampler) and sampler is not None:
            self._sampler = list(map(int, sampler))
            self._check(self._sampler)
            self.size = len(self._sampler)

    def _check(self, indices):
        wrong = [index for index in indices if not 0 <= index < self._samples]
        if not len(indices) or wrong:
            raise IndexError(
                f"A sampler must give numbers from 0 to {self._samples - 1}; got {wrong[:5] if wrong else 'none'}."
            )

    def _indices(self):
        if self._probabilities is not None:
            random = np.random.default_rng([abs(int(self._seed)), self._epoch])
            return random.choice(self._samples, self._samples, p=self._probabilities).tolist()
        if callable(self._sampler):
            indices = list(map(int, self._sampler(self._epoch)))
            self._check(indices)
            return indices
        return self._sampler

    def batch(self, count):
        """The next `count` indices."""
        found = []
        while len(found) < count:
            if self._at >= len(self._own):
                if found and self.pads:
                    found.append(self._own[-1])
                else:
                    self._begin_epoch()
                continue
            found.append(self._own[self._at])
            self._at += 1
        return found

    def _dealt(self, indices):
        """Every `num_shards`-th one; those that are too few for a last round go to the shards that have one more in
        DALI's count."""
        rounds, shards = len(indices) // self.shards, self.shards
        edges = [len(indices) * i // shards for i in range(shards + 1)]
        longer = [i for i in range(shards) if edges[i + 1] - edges[i] > rounds]
        own = indices[self.shard : rounds * shards : shards]
        return own + [indices[rounds * shards + longer.index(self.shard)]] if self.shard in longer else own

    def _begin_epoch(self):
        self._epoch += 1
        indices = self._indices()
        own = self._dealt(indices)
        if not own:
            raise RuntimeError(f"A sampler gave {len(indices)} numbers, too few for {self.shards} shards.")
        self._count, self._at = len(own), 0
        self._own = own + own[-1:] * (-(-len(indices) // self.shards) - len(own) if self.pads else 0)

    @property
    def epoch(self):
        """The epoch of the next sample that is no padding, from 0."""
        return self._epoch + (self._at >= self._count)

    @property
    def is_at_start(self):
        """Whether that sample is the first one of its epoch."""
        return self._at == 0 or self._at >= self._count

    def rest(self):
        """The samples that are still to come in this epoch, at the start of one all of them; goes to the next one."""
        if self._at >= self._count:
            self._begin_epoch()
        found = self._own[self._at : self._count]
        self._at = len(self._own)
        return found

    def next_epoch(self):
        """Goes on with the first sample of the next epoch."""
        if not self.is_at_start:
            self.rest()
        self._at = len(self._own)
