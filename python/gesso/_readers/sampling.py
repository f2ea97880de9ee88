"""Orders that users decide: a list of numbers, a function of the epoch, or weights. The interface is that of `order.Order`."""

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
        self._left = iter(())
        self._last = None
        if not callable(sampler) and sampler is not None:
            self._sampler = list(map(int, sampler))
            self._check(self._sampler)
            self.size = len(self._sampler)

    def _check(self, indices):
        wrong = [index for index in indices if not 0 <= index < self._samples]
        if not len(indices) or wrong:
            raise IndexError(f"A sampler must give numbers from 0 to {self._samples - 1}; got {wrong[:5] if wrong else 'none'}.")

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
            index = next(self._left, None)
            if index is None:
                if found and self.pads:
                    index = self._last
                else:
                    self.next_epoch()
                    continue
            self._last = index
            found.append(index)
        return found

    def next_epoch(self):
        """Goes on with the first sample of the next epoch."""
        self._epoch += 1
        indices = self._indices()
        length = -(-len(indices) // self.shards)
        own = indices[self.shard :: self.shards]
        if self.pads and own:
            own = own + own[-1:] * (length - len(own))
        if not own:
            raise RuntimeError(f"A sampler gave {len(indices)} numbers, too few for {self.shards} shards.")
        self._left = iter(own)
