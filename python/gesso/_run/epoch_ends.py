"""Where an epoch of readers ends: how much of each shard was read. Knows no pipelines."""

import math

import numpy as np


def _same(metas, key, what):
    values = [meta[key] for meta in metas]
    assert all(value == values[0] for value in values), (
        f"Reader Operator should have the same {what} in all the pipelines."
    )
    return values[0]


class Shards:
    """What a reader says, and how much of each shard was read."""

    def __init__(self, metas):
        self.total = _same(metas, "epoch_size", "size value")
        self.count = _same(metas, "number_of_shards", "`num_shards` argument set")
        self.pads = bool(_same(metas, "pad_last_batch", "`pad_last_batch` argument set"))
        self.sticks = bool(_same(metas, "stick_to_shard", "`stick_to_shard` argument set"))
        self.padded = metas[0]["epoch_size_padded"] // self.count
        self.ids = self._first_ids = np.array([meta["shard_id"] for meta in metas], np.int64)
        edges = [self.total * i // self.count for i in range(self.count + 1)]
        self.whole = np.diff(edges).astype(np.int64)
        # Of this epoch: samples of each shard in the order of the iterators, and by the shards' numbers.
        self.sizes = self.first_sizes = self.whole
        self.read = np.zeros(self.count, np.int64)
        # What is left of epochs that other shards began: samples of each shard. Behind them comes the epoch of this
        # number.
        self.left, self.epoch = [], 0

    def begin_left(self, left):
        """Begins with what is left of epochs."""
        self.left, self.epoch = [np.array(sizes, np.int64) for sizes in left["sizes"]], left["epoch"]
        self.next_sizes(is_first=True)

    def next_sizes(self, is_first=False):
        """What the shards have in the next epoch."""
        if self.left:
            self.sizes = self.first_sizes = self.left.pop(0)
            return
        if self.first_sizes is self.whole and not is_first:
            if not self.sticks:
                self.ids = (self.ids + 1) % self.count
                self.sizes = np.roll(self.sizes, 1)
            return
        self.sizes = self.first_sizes = self.whole
        if not self.sticks:
            self.ids = (self.ids + self.epoch) % self.count
            self.sizes = np.roll(self.sizes, self.epoch)

    def state(self):
        """What `restore` takes."""
        names = ["read", "sizes"] + ([] if self.first_sizes is self.whole else ["first_sizes"])
        left = {"left": [sizes.tolist() for sizes in self.left], "epoch": self.epoch}
        # By how many shards each pipeline has gone on: the same number for all processes.
        turns = int(self.ids[0] - self._first_ids[0]) % self.count
        return {"turns": turns, **{name: getattr(self, name).tolist() for name in names}, **left}

    def restore(self, state):
        """Goes to a state."""
        self.ids = (self._first_ids + state["turns"]) % self.count
        for name in ("read", "sizes", "first_sizes"):
            if name in state:
                setattr(self, name, np.array(state[name], np.int64))
        self.left, self.epoch = [np.array(sizes, np.int64) for sizes in state.get("left", [])], state.get("epoch", 0)

    def size(self, batch_size, drops=False):
        """Samples of an epoch, for each pipeline; `drops`: without a last batch that is not full."""
        total = int(self.first_sizes.sum())
        if drops:
            return total // self.count
        if self.pads:
            return self.padded if self.first_sizes is self.whole else math.ceil(total / self.count)
        return math.ceil(math.ceil(total / self.count) / batch_size) * batch_size

    def next_epoch(self, counter, batch_size):
        """(counter, size) of the next epoch where batches are filled from it: shards that are ahead read less."""
        counter -= min(self.read)
        self.read = self.read + counter - self.sizes
        counter = min(self.read)
        self.next_sizes()
        size = math.ceil(max(self.sizes - self.read) / batch_size) * batch_size
        if size <= 0:
            self.read, counter = np.zeros(self.count, np.int64), 0
            self.sizes = np.roll(self.sizes, 1)
            size = math.ceil(max(self.sizes) / batch_size) * batch_size
        return counter, size


def ends(metas, lefts, batch_size):
    """Behind how many batches each epoch ends, one after the other, where batches are filled from the next epoch.
    `lefts`: for each reader what is left of epochs that other shards began, or None. Of readers of several sizes the
    largest says so."""
    largest = max(range(len(metas)), key=lambda i: metas[i]["epoch_size"] // metas[i]["number_of_shards"])
    shards = Shards([metas[largest]])
    if lefts[largest] is not None:
        shards.begin_left(lefts[largest])
    batches, counter, size = 0, 0, shards.size(batch_size)
    while True:
        count = max(-(-(size - counter) // batch_size), 1)
        batches += count
        yield batches
        if shards.pads:
            counter = 0
            shards.next_sizes()
            size = shards.size(batch_size)
        else:
            counter, size = shards.next_epoch(counter + count * batch_size, batch_size)
