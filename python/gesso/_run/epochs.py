"""`Epochs`: how far a pipeline is, and what a checkpoint saves of that."""

import json

from .epoch_ends import ends

# Of what `save` writes.
_VERSION = 2
# What a pipeline may have been through. Batches and epochs: at 1,000 batches a second, three weeks.
_MOST = {"batches": (1 << 31) - 1, "samples": (1 << 63) - 1, "iter": (1 << 31) - 1, "epoch_idx": (1 << 31) - 1}


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

    def take(self, samples):
        """Counts a batch of so many samples as taken."""
        self.consumed += 1
        self.samples += samples

    def put_back(self, samples):
        """As if that batch had not been asked for; `None` if it was not taken."""
        self.consumer_iter -= 1
        if samples is not None:
            self.consumed -= 1
            self.samples -= samples

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

    # --- checkpoints

    def save(self, readers, iterator_data=""):
        """A checkpoint as bytes: `readers` is how these went through their shards, `iterator_data` what an iterator
        wants to keep."""
        state = {
            "gesso_checkpoint": _VERSION,
            "batches": self.consumed,
            "samples": self.samples,
            "seed": self.seed,
            "iter": self.consumer_iter,
            "epoch_idx": self.consumer_epoch_idx,
            "iterator_data": iterator_data,
            "readers": readers,
        }
        return json.dumps(state).encode()

    def restore(self, state):
        """Goes to what `read` found."""
        self.epoch_idx = self.consumer_epoch_idx = state["epoch_idx"]
        self.consumer_iter, self.consumed, self.samples = state["iter"], state["batches"], state["samples"]
        self.iterator_data = state["iterator_data"]
        self.is_restored = True


def read(saved):
    """What a checkpoint says, checked."""
    state = _object(saved)
    for name, most in _MOST.items():
        value = state[name]
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(
                f"the checkpoint is damaged: `{name}` is {value!r}, expected a whole number from 0 to {most}"
            )
    seed = state["seed"]
    if seed is not None and type(seed) is not int:
        raise ValueError(f"the checkpoint is damaged: `seed` is {seed!r}, expected a whole number")
    if not isinstance(state.get("readers", {}), dict):
        raise ValueError("the checkpoint is damaged: `readers` is no object")
    return state


def _object(saved):
    """The fields of a checkpoint of this version."""
    try:
        state = json.loads(saved)
        version = state["gesso_checkpoint"]
        if version == _VERSION:
            _ = [state[name] for name in (*_MOST, "seed", "iterator_data")]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            "the checkpoint is not one of this package: expected JSON, as `Pipeline.checkpoint` of Gesso gives it for "
            "the same pipeline"
        ) from None
    if version != _VERSION:
        raise ValueError(f"the checkpoint has version {version!r}, expected {_VERSION}: another Gesso wrote it")
    return state
