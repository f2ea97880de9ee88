"""Plans: a function of operators, made into a pipeline for inputs of one kind, and kept. `run` is what every call of
an operator comes to."""

import functools
import threading

import numpy as np

from .. import fn as _fn
from .._authoring import arithmetic
from .._native.library import GessoError
from .._native.prepared_call import PreparedCall, as_dense, with_layout
from .._pipeline_def import pipeline_def
from .._tensors.device_array import on_host
from .._tensors.enums import DALIDataType
from .._tensors.tensor_list import TensorListCPU, TensorListGPU
from .._threads.fork import process_id

# Plans that are kept.
KEPT = 256
# All random operators have it. What they draw follows from a position, so that no plan is made for each draw.
SEED = 1
# Values of one argument that get plans of their own; behind them they are fed.
MOST_VALUES = 16
# Enumerations are numbers to operators.
_NUMBERS = {DALIDataType.DATA_TYPE, DALIDataType.IMAGE_TYPE, DALIDataType.INTERP_TYPE}


class _Plan:
    """A function of nodes for inputs of these kinds: (name, dtype, ndim, layout, device) each."""

    def __init__(self, function, kinds, names, fixed, size, device_id, threads, seed=SEED):
        labels = [f"input_{i}" for i in range(len(kinds))]
        count = len(kinds) - len(names)

        @pipeline_def(batch_size=size, num_threads=threads, device_id=device_id, prefetch_queue_depth=1, seed=seed)
        def define():
            nodes = [
                _fn.external_source(
                    name=label, dtype=dtype, ndim=ndim, layout=layout or None, device=device, no_copy=True
                )
                for label, (dtype, ndim, layout, device) in zip(labels, kinds)
            ]
            results = function(*nodes[:count], **dict(zip(names, nodes[count:])), **dict(fixed))
            if isinstance(results, dict):
                results = tuple(results.values())
            return tuple(results) if isinstance(results, (list, tuple)) else results

        self._labels, self._lock, self.prepared = labels, threading.Lock(), None
        self._pipeline = define()
        if device_id is None and not getattr(function, "only_in_python", False):
            try:
                file = self._pipeline.serialize()
            except RuntimeError:
                # A function of the user's is in it.
                return
            inputs = [(label, dtype, ndim) for label, (dtype, ndim, _, _) in zip(labels, kinds)]
            self.prepared = PreparedCall(file, inputs, size, threads)

    def run(self, batches, position=None):
        """The outputs, lists of tensors, for inputs of the kinds. `position`: where in the random numbers of `SEED` its
        operators begin."""
        if self.prepared is not None:
            arrays = [[as_dense(on_host(array)) for array in batch._data] for batch in batches]
            return [
                TensorListCPU._of(made, layout) for made, layout in self.prepared.run_with_layouts(arrays, position)
            ]
        with self._lock:
            try:
                if position is not None:
                    self._pipeline.build()
                    self._pipeline.runner.execution.run.go_on(position)
                return list(self._pipeline.run(**dict(zip(self._labels, map(_as_numbers, batches)))))
            except RuntimeError as error:
                # It names the line that the plan was made for, which need not be the one that called.
                plain = error.__cause__
                if isinstance(plain, GessoError):
                    # A new one: a pipeline that cannot be built gives the same object again.
                    raise GessoError(plain.text, plain.status) from None
                raise

    def run_arrays(self, batches):
        """For each output a list of arrays; `batches` are lists of dense arrays of the kinds."""
        if self.prepared is not None:
            return self.prepared.run(batches)
        with self._lock:
            outputs = self._pipeline.run(**dict(zip(self._labels, batches)))
        return [[with_layout(np.asarray(array), output.layout()) for array in output.arrays] for output in outputs]


def _as_numbers(batch):
    """A batch of an enumeration as one of its numbers."""
    if batch.dtype not in _NUMBERS:
        return batch
    return type(batch)._of(list(batch._data), batch.layout(), DALIDataType.INT32)


@functools.lru_cache(maxsize=KEPT)
def kept(_process, *facts):
    """The plan of these facts, of which each process has its own."""
    return _Plan(*facts)


def run(function, batches, named, fixed, size, device_id=None, threads=2, position=None):
    """The outputs of `function` for `batches` (by position) and `named` ones, which all have `size` samples. `fixed`:
    pairs of a name and a value that can be a key. `position`: where random numbers begin."""
    every = [*batches, *named.values()]
    kinds = tuple(
        [
            (
                DALIDataType.INT32 if batch.dtype in _NUMBERS else batch.dtype,
                batch.ndim(),
                batch.layout(),
                "gpu" if isinstance(batch, TensorListGPU) else "cpu",
            )
            for batch in every
        ]
    )
    facts = (function, kinds, tuple(named), fixed, size, device_id, threads)
    return kept(process_id(), *facts).run(every, position)


def moved_node(node):
    """A node's value in memory of the GPU."""
    return node.gpu()


def _cast(node, dtype):
    return _fn.cast(node, dtype=DALIDataType(dtype), device=node.device)


def moved(batch, device, device_id=0):
    """A batch in memory of a GPU."""
    if isinstance(batch, TensorListGPU):
        return run(_fn.copy, [batch], {}, (("device", device),), len(batch), device_id)[0]
    return run(moved_node, [batch], {}, (), len(batch), device_id)[0]


def cast(batch, dtype):
    """A batch with elements of another type."""
    device_id = batch.device_id() if isinstance(batch, TensorListGPU) else None
    return run(_cast, [batch], {}, (("dtype", dtype),), len(batch), device_id)[0]


@functools.cache
def arithmetic_of(name, constants):
    """The function of nodes that computes `name`; `constants` has for each input the type and the value of a number, or
    None twice for a node."""

    def function(*nodes):
        rest = iter(nodes)
        return arithmetic.apply(name, *(next(rest) if kind is None else value for kind, value in constants))

    return function
