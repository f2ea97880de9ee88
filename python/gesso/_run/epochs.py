"""`Epochs`: how far a pipeline is, and what a checkpoint saves of that."""

import json

from . import checkpoint
from .epoch_ends import ends


class Taken:
    """What a batch takes of what a pipeline goes through."""

    __slots__ = ("has_begun", "samples", "branch_samples", "is_counted")

    def __init__(self):
        # Whether readers were asked for it.
        self.has_begun = False
        # Samples for which random numbers were drawn, also if they failed.
        self.samples = 0
        # How many each branch of conditionals has had behind the batch; None: not known.
        self.branch_samples = None
        self.is_counted = False


class Epochs:
    """Counts batches and epochs, of those that were begun and of those that were taken.

    It must not know what a batch is made of, who makes it, or that threads share it: its owner has a lock."""

    def __init__(self):
        # Whether no batch of the epoch was begun yet, and whether it has no more.
        self.is_first, self.is_last = True, False
        # The epoch of the batches that are begun.
        self.epoch_idx = 0
        # The batches of this epoch that were asked for, and the epoch of these.
        self.consumer_iter = self.consumer_epoch_idx = 0
        # All batches that were taken, and their samples: from these random numbers follow.
        self.consumed = self.samples = 0
        # How many samples each branch of conditionals has had, behind each batch that was taken last: the one that was
        # taken and the one before.
        self._branch_samples = [[], []]
        # The seed of the run, which its author gave or which was drawn.
        self.seed = None
        self.iterator_data = None
        self.is_restored = False
        # Behind how many batches epochs of the readers end, counted from `_base`.
        self._ends, self._end, self._base = None, 0, 0

    def begin_next(self):
        """Begins the next epoch, if one has ended; whether it did."""
        if not self.is_last:
            return False
        self.is_first, self.is_last = True, False
        self.epoch_idx += 1
        if self.consumer_iter > 0:
            self.consumer_epoch_idx += 1
            self.consumer_iter = 0
        return True

    def take(self, taken):
        """Counts a batch as taken, if it has begun: one that has failed, too."""
        if taken.has_begun:
            taken.is_counted = True
            self.consumed += 1
            self.samples += taken.samples
            before = self._branch_samples[-1]
            self._branch_samples = [before, before if taken.branch_samples is None else taken.branch_samples]

    def put_back(self, taken):
        """As if that batch, the last, had not been asked for."""
        self.consumer_iter -= 1
        if taken.is_counted:
            taken.is_counted = False
            self.consumed -= 1
            self.samples -= taken.samples
            self._branch_samples = [self._branch_samples[0]] * 2

    def restart(self):
        """Begins the next epoch in the middle of one."""
        self.is_first, self.is_last = True, False
        self.epoch_idx += 1
        self.consumer_epoch_idx += 1
        self.consumer_iter = 0
        self._ends, self._base = None, self.consumed

    def end(self, reader_meta, reader_left, batch_size):
        """Behind how many batches in all the epoch of the readers ends; None without readers. `reader_meta` gives what
        they are, by name, `reader_left` what is left of epochs that other shards began."""
        if self._ends is None:
            metas = reader_meta()
            if not metas:
                return None
            lefts = reader_left()
            self._ends = ends(list(metas.values()), [lefts.get(name) for name in metas], batch_size)
            if any(lefts.values()):
                self._base = self.consumed
            self._end = self._base + next(self._ends)
        while self._end <= self.consumed:
            self._end = self._base + next(self._ends)
        return self._end

    def place(self):
        """Behind which batch the next one comes."""
        return {"batches": self.consumed, "samples": self.samples, "branch_samples": self._branch_samples[-1]}

    # --- checkpoints

    def save(self, readers, iterator_data=""):
        """A checkpoint as bytes: `readers` is how these went through their shards, `iterator_data` what an iterator
        wants to keep."""
        state = {
            "gesso_checkpoint": checkpoint.VERSION,
            **self.place(),
            "seed": self.seed,
            "iter": self.consumer_iter,
            "epoch_idx": self.consumer_epoch_idx,
            "iterator_data": iterator_data,
            "readers": readers,
        }
        return json.dumps(state).encode()

    def restore(self, state):
        """Goes to what `checkpoint.read` found."""
        self.epoch_idx = self.consumer_epoch_idx = state["epoch_idx"]
        self.consumer_iter, self.consumed, self.samples = state["iter"], state["batches"], state["samples"]
        self._branch_samples = [state["branch_samples"]] * 2
        self.iterator_data = state["iterator_data"]
        self._base = checkpoint.behind_restart(state)
        self.is_restored = True
