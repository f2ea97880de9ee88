"""An epoch that some processes began and others, more or fewer, end: what none of the first has read is dealt out anew.

A run is told as parts: [number of shards, batch size, batches that each shard gave], and 1 behind these where the epoch
was then left in the middle.
"""

import itertools
from collections import deque


class Continued:
    """What is left of epochs for one shard, then whole epochs. The interface is that of `order.Order`."""

    def __init__(self, rests, epoch, order):
        """`rests`: what is left of the epochs before `epoch`, for all shards. `order`: whole epochs."""
        self._order = order
        self.size, self.shard, self.shards = order.size, order.shard, order.shards
        self.pads, self.sticks = order.pads, order.sticks
        self._rests = deque(rests)
        self._behind = epoch
        self._at = 0
        while order.epoch < epoch:
            order.rest()
        self.left = self._whole_left()

    def _whole_left(self):
        """How many samples are left for each shard in the epochs that were begun, if none of these is taken yet."""
        sizes = [[len(rest[i :: self.shards]) for i in range(self.shards)] for rest in self._rests]
        return {"epoch": self._behind if self._rests else self._order.epoch, "sizes": sizes}

    def _own(self):
        return self._rests[0][self.shard :: self.shards]

    def _is_over(self):
        return self._at >= len(self._own())

    def _begin_epoch(self):
        self._rests.popleft()
        self._at = 0

    @property
    def epoch(self):
        """The epoch of the next sample that is no padding, from 0."""
        return self._behind - len(self._rests) + self._is_over() if self._rests else self._order.epoch

    @property
    def is_at_start(self):
        """Whether that sample is the first one of its epoch. What is left of an epoch has no start."""
        return self._is_over() and len(self._rests) == 1 if self._rests else self._order.is_at_start

    def rest(self):
        """The samples that are still to come in this epoch; goes to the next one."""
        if self._rests and self._is_over():
            self._begin_epoch()
        if not self._rests:
            return self._order.rest()
        found = self._own()[self._at :]
        self._begin_epoch()
        return found

    def next_epoch(self):
        """Goes on with the first sample of the next epoch."""
        if self._rests:
            self._begin_epoch()
        else:
            self._order.next_epoch()
        self.left = self._whole_left()

    def batch(self, count):
        """The next `count` indices."""
        found = []
        while self._rests and len(found) < count:
            own, length = self._own(), -(-len(self._rests[0]) // self.shards)
            if self._at < len(own):
                found.append(own[self._at])
                self._at += 1
            elif self.pads and (found or self._at < length):
                # Padding is cut off by who counts samples; where there is no own sample, it is another shard's.
                found.append((own or self._rests[0])[-1])
                self._at += 1
            else:
                self._begin_epoch()
        return found + self._order.batch(count - len(found)) if len(found) < count else found


def _split(orders, make, shards, wanted):
    rests, epoch = [], min(order.epoch for order in orders)
    while not all(order.epoch == epoch and order.is_at_start for order in orders):
        rests.append([index for order in orders if order.epoch == epoch for index in order.rest()])
        epoch += 1
    return [Continued(rests, epoch, make(shard, shards)) for shard in wanted]


def go_on(make, parts, shard):
    """The order of one shard of the last part, behind all parts. `make(shard, shards)` makes an order from the
    beginning."""
    # Parts of the same processes, which leave epochs together.
    groups = [list(group) for _, group in itertools.groupby(parts, lambda part: part[:2])]
    orders = None
    for number, group in enumerate(groups):
        shards = group[0][0]
        wanted = range(shards) if number + 1 < len(groups) else [shard]
        orders = [make(i, shards) for i in wanted] if orders is None else _split(orders, make, shards, wanted)
        for order in orders:
            _draw(order, group)
    return orders[0]


def _draw(order, parts):
    for _, batch_size, batches, *is_left in parts:
        for _ in range(batches):
            order.batch(batch_size)
        if is_left:
            order.next_epoch()


def left(parts):
    """These parts if the epoch is now left in the middle."""
    *before, last = parts
    return [*before, [*last, 1], [*last[:2], 0]]
