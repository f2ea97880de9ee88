"""Where epochs of readers begin, and which one comes behind one that was left in the middle. The library is told of one
end in the middle alone: this says of which, after several."""

import bisect
import itertools


class Starts:
    """The epochs of one shard, in samples that are read batch by batch: with padding, if there is any."""

    def __init__(self, meta, batch_size):
        """`meta`: what `Pipeline.reader_meta` says."""
        size, shards, own = meta["epoch_size"], meta["number_of_shards"], meta["shard_id"]
        if meta["pad_last_batch"]:
            lengths = [-(-size // shards // batch_size) * batch_size]
        else:
            edges = [size * shard // shards for shard in range(shards + 1)]
            lengths = [edges[shard + 1] - edges[shard] for shard in (*range(own, shards), *range(own))]
            lengths = lengths[:1] if meta["stick_to_shard"] else lengths
        # Epochs come back after so many, and their starts.
        self._round, self._starts = len(lengths), [0, *itertools.accumulate(lengths)]

    def of(self, epoch):
        """How many samples come before an epoch."""
        rounds, rest = divmod(epoch, self._round)
        return rounds * self._starts[-1] + self._starts[rest]

    def behind(self, epoch, samples):
        """The epoch that comes if so many samples from the start of `epoch` on were read and the one that they have got
        to is left; at the end of one it is the next."""
        rounds, rest = divmod(self.of(epoch) + samples, self._starts[-1])
        return rounds * self._round + bisect.bisect_left(self._starts, rest)


def one_left(metas, batch_size, left):
    """How many samples every one of several readers can read so that it comes to the same epoch by leaving one as by
    leaving one behind each of `left`, numbers of batches. None if there is no such number."""
    least, most = -1, None
    for meta in metas:
        starts, epoch = Starts(meta, batch_size), 0
        for batches in left:
            epoch = starts.behind(epoch, batches * batch_size)
        least = max(least, starts.of(epoch - 1) if epoch else -1)
        most = starts.of(epoch) if most is None else min(most, starts.of(epoch))
    if most is None or most <= least:
        return None
    whole = most // batch_size * batch_size
    # Where an epoch is shorter than a batch, a part of one.
    return whole if whole > least else most
