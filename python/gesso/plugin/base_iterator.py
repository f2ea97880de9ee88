"""What iterators of all frameworks share: batches of one or several pipelines, and where an epoch ends."""

import json
import logging
import math
import warnings
from enum import Enum, unique
from typing import Any

import numpy as np

from .. import _context
from .._run.epoch_ends import Shards
from ..pipeline import Pipeline
from ..types import PipelineAPIType
from . import iterator_state


@unique
class LastBatchPolicy(Enum):
    """What becomes of a last batch that is not full.

    FILL: it is filled with samples of the next epoch (or the last one again, if the reader pads). DROP: it is left out.
    PARTIAL: it is smaller."""

    FILL = 0
    DROP = 1
    PARTIAL = 2


def _distinct(output_map):
    """The names of the outputs as a list; no name may be there twice."""
    assert len(set(output_map)) == len(output_map), "output_map names should be distinct"
    return list(output_map)


class BaseIterator:
    """Base of the iterators. Subclasses say in `_convert` what they make of the outputs, and call `_take_first_batch`
    when they are whole."""

    def __init__(
        self,
        pipelines,
        size=-1,
        reader_name=None,
        auto_reset=False,
        fill_last_batch=None,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
    ):
        assert pipelines is not None, "no pipeline was given, expected one or a list"
        self._pipes = pipelines if isinstance(pipelines, list) else [pipelines]
        assert self._pipes, "the list of pipelines is empty, expected at least one"
        for pipe in self._pipes:
            if not isinstance(pipe, Pipeline):
                raise TypeError(f"expected a `Pipeline`, or a list of them, found a `{type(pipe).__name__}`")
        self._num_gpus = len(self._pipes)
        self.batch_size = self._pipes[0].max_batch_size
        assert all(pipe.max_batch_size == self.batch_size for pipe in self._pipes), (
            "the pipelines differ in their batch size"
        )
        if auto_reset not in (False, None, "no", True, "yes"):
            raise ValueError(f"Unsupported value for `auto_reset` {auto_reset}")
        self._resets = auto_reset in (True, "yes")
        self._prepare_first_batch = prepare_first_batch
        self._policy = _policy(fill_last_batch, last_batch_policy)
        self._size = int(size)
        self._padded = last_batch_padded
        assert self._size != 0, "Size cannot be 0"
        if self._size < 0 and self._num_gpus > 1 and not reader_name:
            raise AssertionError(_context.add_words("without a size and a reader's name there must be one pipeline"))
        assert not reader_name or self._size < 0, "`reader_name` says the size: leave `size` out"
        assert not reader_name or not last_batch_padded, (
            "`reader_name` says whether the data is padded: leave `last_batch_padded` out"
        )
        if self._size < 0 and not reader_name:
            self._policy, self._padded = LastBatchPolicy.FILL, False
        if self._size > 0 and not reader_name:
            warnings.warn(
                "`size` was given by hand: when it is not that of the data, samples are left out or come twice. `reader_name` takes it, and how the "
                "data is split and padded, from the reader.",
                Warning,
                stacklevel=3,
            )
        for pipe in self._pipes:
            with pipe.runner.scope(PipelineAPIType.ITERATOR):
                pipe.build()
        self._reader_name = reader_name
        self._counter = 0
        self._shards = None
        if reader_name:
            self._shards = Shards([pipe.reader_meta(reader_name) for pipe in self._pipes])
            self._padded = self._shards.pads
            self._size = self._epoch_of_shards()
        self._ever_scheduled = self._ever_consumed = False
        self._first_batch = None
        self._begin_checkpoints()

    # --- one batch

    def _convert(self, outputs):
        """A batch as the iterator gives it, of the outputs of all pipelines."""
        raise NotImplementedError

    def _cut(self, batch):
        """The batch without samples that only fill it; called when it is counted."""
        return batch

    def _take_first_batch(self):
        """Makes the first batch at once, if that is wanted; it is what `_next_batch` gives first."""
        if not self._prepare_first_batch:
            return
        try:
            self._first_batch = self._next_batch()
            self._ever_consumed = False
        except StopIteration:
            self._report_no_data_in_pipeline()

    def _next_batch(self):
        self._ever_consumed = True
        if self._first_batch is not None:
            batch, self._first_batch = self._first_batch, None
            return batch
        while True:
            outputs = self._get_outputs()
            # Of a batch nothing may be left: then the next one comes.
            batch = self._convert(outputs) if any(self._there()) or not any(self._left_out) else None
            self._schedule_runs()
            self._advance_and_check_drop_last()
            if not any(self._left_out) or any(self._there(self._counts())):
                return self._cut(batch)

    def _counts(self):
        """How many samples of each pipeline's batch are of this epoch; None: all."""
        if self._policy is not LastBatchPolicy.PARTIAL:
            return None
        if self._reader_name:
            has_padding, counts = self._remove_padded()
            return list(counts) if np.any(has_padding) else None
        if not 0 < self._size < self._counter:
            return None
        left = self._num_gpus * self.batch_size - (self._counter - self._size)
        return [min(max(left - i * self.batch_size, 0), self.batch_size) for i in range(self._num_gpus)]

    def _get_outputs(self):
        """The outputs of all pipelines; ends the epoch if it is over."""
        if not self._ever_scheduled:
            self._schedule_runs()
        if self._size > 0 and self._counter >= self._size:
            self._end_iteration()
        outputs = []
        try:
            for pipe in self._pipes:
                with pipe.runner.scope(PipelineAPIType.ITERATOR):
                    outputs.append(pipe.share_outputs())
        except StopIteration:
            if self._size < 0 and self._resets:
                self.reset()
            raise
        self._left_out = [pipe.runner.left_out for pipe in self._pipes]
        if self._reader_name or self._size != -1:
            for batch, left_out in (
                (batch, left_out) for batches, left_out in zip(outputs, self._left_out) for batch in batches
            ):
                # Samples that `on_error="skip"` left out are counted: they were read.
                found = len(batch) + len(left_out)
                assert found == self.batch_size, (
                    f"a batch has {found} samples, expected {self.batch_size}: an epoch of a known size is counted in whole batches"
                )
        return outputs

    def _there(self, counts=None):
        """How many samples each pipeline's batch has of its first `counts`, without those that were left out."""
        counts = (
            [self.batch_size] * len(self._pipes)
            if counts is None
            else [min(max(int(count), 0), self.batch_size) for count in counts]
        )
        return [count - sum(i < count for i in left_out) for count, left_out in zip(counts, self._left_out)]

    def _schedule_runs(self, *_):
        self._ever_scheduled = True
        for pipe in self._pipes:
            with pipe.runner.scope(PipelineAPIType.ITERATOR):
                pipe.schedule_run()

    def _epoch_of_shards(self):
        return self._shards.size(self.batch_size, drops=self._policy == LastBatchPolicy.DROP)

    def _end_iteration(self):
        if self._resets:
            self.reset()
        raise StopIteration

    def _after_batch(self):
        return self._counter + self.batch_size * (1 if self._shards else self._num_gpus)

    def _drops(self, counter):
        """Whether the batch that ends at `counter` is left out."""
        if self._policy != LastBatchPolicy.DROP:
            return False
        if self._shards:
            return bool(np.any(self._shards.read + counter > self._shards.sizes))
        return counter > self._size

    def _advance_and_check_drop_last(self, dry_run=False, end_iteration=True):
        """Counts a batch; ends the epoch if the batch is to be left out."""
        counter = self._after_batch()
        drops = self._drops(counter)
        if not dry_run:
            self._counter = counter
            if drops and end_iteration:
                self._end_iteration()
        return drops

    def _remove_padded(self):
        """(which pipelines have fewer samples than a batch, how many they have) of a partial last batch."""
        if self._policy != LastBatchPolicy.PARTIAL:
            return False, -1
        left = self.batch_size - (self._counter - self._shards.first_sizes[self._shards.ids])
        return np.less(left, self.batch_size), left

    def _report_no_data_in_pipeline(self):
        if all(not pipe.is_restored_from_checkpoint or pipe.runner.epochs.is_first for pipe in self._pipes):
            raise RuntimeError(
                "the pipeline gave no batch. With `last_batch_policy` PARTIAL a shard with fewer samples than a batch can be the reason."
            )

    # --- epochs

    def reset(self):
        """Begins the next epoch, if one has ended."""
        if self._policy == LastBatchPolicy.DROP:
            ended = self._size > 0 and self._counter >= self._size
            if self._drops(self._after_batch()) and not ended:
                self._get_outputs()
                self._schedule_runs()
                self._advance_and_check_drop_last(end_iteration=False)
        if 0 <= self._counter < self._size:
            logging.warning("`reset` in the middle of an epoch does nothing; `restart` begins the next at once.")
            return
        fills = self._policy == LastBatchPolicy.FILL and not self._padded
        if not fills:
            self._counter = 0
        elif not self._shards:
            self._counter %= self._size
        if self._shards and fills:
            self._counter, self._size = self._shards.next_epoch(self._counter, self.batch_size)
        elif self._shards:
            self._shards.next_sizes()
            self._size = self._epoch_of_shards()
        for pipe in self._pipes:
            pipe.reset()
            if pipe.empty():
                with pipe.runner.scope(PipelineAPIType.ITERATOR):
                    pipe.schedule_run()

    def restart(self):
        """Begins the next epoch at once, in the middle of one; `reset` only does so at its end. Batches that were
        prepared are thrown away."""
        for pipe in self._pipes:
            pipe.restart()
        self._counter = 0
        self._ever_scheduled = self._ever_consumed = False
        self._first_batch = None
        if self._shards:
            self._shards.next_sizes()
            self._shards.read = np.zeros(self._shards.count, np.int64)
            self._size = self._epoch_of_shards()
        if self._enable_checkpointing:
            self._save_initial()

    def __iter__(self):
        if self._counter != 0 and self._ever_consumed:
            self.reset()
        return self

    def __next__(self):
        return self._next_batch()

    def next(self):
        """The next batch."""
        self._ever_consumed = True
        return self.__next__()

    @property
    def size(self):
        """Samples of an epoch; -1 if it is not known."""
        return self._size

    def __len__(self):
        batch = self.batch_size * (1 if self._reader_name else self._num_gpus)
        # Of a size that is not known: 0, as `list` asks before it begins.
        size = max(self.size, 0)
        return size // batch if self._policy == LastBatchPolicy.DROP else math.ceil(size / batch)

    # --- checkpoints

    def _begin_checkpoints(self):
        first = self._pipes[0].runner.settings.enable_checkpointing
        if any(pipe.runner.settings.enable_checkpointing != first for pipe in self._pipes):
            raise ValueError("the pipelines differ in `enable_checkpointing`")
        self._enable_checkpointing = first
        if not first:
            return
        restored = {pipe.runner.epochs.iterator_data for pipe in self._pipes if pipe.is_restored_from_checkpoint}
        if len(restored) > 1 or restored and not all(pipe.is_restored_from_checkpoint for pipe in self._pipes):
            raise ValueError("the pipelines go on from checkpoints of several iterators, or some of them from none")
        if restored:
            self._restore_state(restored.pop())
        self._save_initial()

    def _save_initial(self):
        self._initial_checkpoints = [pipe.runner.checkpoint(self._save_state()) for pipe in self._pipes]

    def _save_state(self):
        state: dict[str, Any] = {"counter": int(self._counter), "size": int(self._size)}
        if self._shards:
            state["shards"] = {**self._shards.state(), "batch_size": self.batch_size}
        return json.dumps(state)

    def _restore_state(self, text):
        if not text:
            logging.warning("the checkpoint is of a pipeline without its iterator: where the epoch stood is not known.")
            return
        state = iterator_state.read(text)
        shards = state.get("shards")
        if (shards is None) != (self._shards is None):
            raise ValueError(
                "the checkpoint might be of another iterator: one of them has a `reader_name`, the other one has none"
            )
        if shards and (len(shards["sizes"]), shards["batch_size"]) != (self._shards.count, self.batch_size):
            left = self._pipes[0].runner.execution.run.reader_left()[self._reader_name]
            if left is None:
                raise ValueError(
                    f"the checkpoint is of {len(shards['sizes'])} shards and does not say how they were read: expected {self._shards.count}."
                )
            self._shards.begin_left(left)
            self._counter, self._size = 0, self._epoch_of_shards()
            return
        if shards:
            iterator_state.check_shards(state, self._shards, self.batch_size, self._policy == LastBatchPolicy.DROP)
            self._shards.restore(shards)
        self._counter, self._size = state["counter"], state["size"]

    def checkpoints(self):
        """The state of each pipeline, to go on from."""
        if not self._enable_checkpointing:
            raise ValueError("Cannot access checkpoints with checkpointing disabled")
        if not self._ever_consumed:
            return self._initial_checkpoints
        return [pipe.runner.checkpoint(self._save_state()) for pipe in self._pipes]


def _policy(fill_last_batch, policy):
    if fill_last_batch is not None:
        warnings.warn("`fill_last_batch` is an old spelling of `last_batch_policy`.", Warning, stacklevel=4)
        return LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    if type(policy) is not LastBatchPolicy:
        raise ValueError(f"Wrong type for `last_batch_policy`. Expected {LastBatchPolicy}, got {type(policy)}")
    return policy


_DaliBaseIterator = BaseIterator
