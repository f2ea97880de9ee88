"""Iterators that let one look at the next batch, as CLU's loops want them. CLU itself is not needed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ... import _context
from ..base_iterator import LastBatchPolicy
from .iterator import DALIGenericIterator, decorator

try:
    from clu.data.dataset_iterator import ArraySpec
except ImportError:

    @dataclass(frozen=True)
    class ArraySpec:  # type: ignore[no-redef]
        """Type and shape of an array."""

        dtype: np.dtype
        shape: tuple


def _specification(batch):
    return {name: ArraySpec(dtype=array.dtype, shape=tuple(array.shape)) for name, array in batch.items()}


class DALIGenericPeekableIterator(DALIGenericIterator):
    """Batches as dictionaries of `jax.Array`s, all of the same types and shapes; `output_map` names the outputs.

    `peek` gives the next batch without taking it, `peek_async` a future of it. The arguments are those of
    `DALIGenericIterator`."""

    def __init__(
        self,
        pipelines,
        output_map,
        size=-1,
        reader_name=None,
        auto_reset=False,
        last_batch_padded=False,
        last_batch_policy=LastBatchPolicy.FILL,
        prepare_first_batch=True,
        sharding=None,
        pmap_compatible=None,
    ):
        self._lock = threading.RLock()
        self._peeked = None
        self._thread = None
        self._specified = None
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            sharding,
            pmap_compatible,
        )
        if self._first_batch is not None:
            self._specified = _specification(self._first_batch)

    @property
    def element_spec(self):
        """Type and shape of each array of a batch."""
        if self._specified is None:
            self.peek()
        return self._specified

    def _next_checked(self):
        batch = self._next_batch()
        found = _specification(batch)
        self._specified = self._specified or found
        if found != self._specified:
            raise ValueError(
                f"The iterator gives batches of one shape and type. Expected {self._specified}, got {found}. Operators that make samples of "
                "the same shape, or the last batch policy DROP, help."
            )
        return batch

    def __next__(self):
        with self._lock:
            if self._peeked is None:
                return self._next_checked()
            batch, self._peeked = self._peeked, None
            return batch

    def peek(self):
        """The next batch; it comes again with `next`."""
        with self._lock:
            if self._peeked is None:
                self._peeked = self._next_checked()
            return self._peeked

    def peek_async(self):
        """A future of what `peek` gives."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "gesso-peek")
        return self._thread.submit(self.peek)

    def checkpoints(self):
        """The state of each pipeline, to go on from. Not while a batch is peeked at."""
        if self._peeked is not None:
            raise RuntimeError(_context.add_words("no checkpoint while a batch is peeked at: take it first"))
        return super().checkpoints()


def peekable_data_iterator(
    pipeline_fn=None,
    output_map=(),
    size=-1,
    reader_name=None,
    auto_reset=False,
    last_batch_padded=False,
    last_batch_policy=LastBatchPolicy.FILL,
    prepare_first_batch=True,
    sharding=None,
    devices=None,
    pmap_compatible=None,
):
    """`data_iterator` whose iterators are `DALIGenericPeekableIterator`s."""
    return decorator(DALIGenericPeekableIterator, **locals())
