"""`Call`: one operator at its place in a definition, with the state that it keeps from run to run: a pipeline of that
operator alone."""

import numpy as np

from .. import fn
from .._tensors.tensor_list import TensorListCPU
from ..data_node import DataNode
from ..pipeline import Pipeline
from .given import BATCH, SET, check_same, is_same

_SIZE = "batch_size"


class Call:
    """A call of `function`. Made by its first run, which says what it is given in all of them."""

    def __init__(self, settings, function, name, inputs, named, is_sized=False):
        self.name, self._inputs, self._named = name, inputs, named
        # Names of the inputs of its pipeline. `is_sized`: one more says how many samples there are.
        self._labels, self._is_sized = [], is_sized
        self._pipeline = Pipeline(**settings)
        with self._pipeline:
            nodes = [self._node_of(given) for given in inputs]
            keywords = {name: self._node_of(given) for name, given in named.items()}
            self._structure = function(*nodes, **keywords)
            outputs = list(_leaves(self._structure))
            self.count = len(outputs)
            if is_sized or not outputs:
                # Outputs, so that they are read.
                outputs.append(
                    fn.external_source(name=_SIZE, ndim=0, no_copy=True) if is_sized else fn.constant(idata=0)
                )
            self._pipeline.set_outputs(*outputs)

    def _node_of(self, given):
        if given.kind == SET:
            return [self._node_of(part) for part in given.data]
        if given.kind != BATCH:
            return given.data
        self._labels.append(f"input_{len(self._labels)}")
        return fn.external_source(name=self._labels[-1], device=given.device, no_copy=True)

    def check(self, inputs, named):
        """Raises unless it is given what it was given first, but for the data of batches."""
        for what, before, now in (("inputs", self._inputs, inputs), ("keyword arguments", self._named, named)):
            if len(before) != len(now):
                raise RuntimeError(
                    f"Trying to use operator '{self.name}' with different number of {what} than when it was built. "
                    f"Expected: {len(before)} {what}, got {len(now)}."
                )
        pairs = [(f"Input {i}", before, now) for i, (before, now) in enumerate(zip(self._inputs, inputs))]
        for name, now in named.items():
            if name not in self._named:
                raise RuntimeError(f"Argument '{name}' for operator '{self.name}' was not given when it was built.")
            pairs.append((f"Argument '{name}'", self._named[name], now))
        for where, before, now in pairs:
            check_same(before, now, where, self.name)
            if before.kind not in (BATCH, SET) and not is_same(before.data, now.data):
                raise RuntimeError(
                    f"{where} for operator '{self.name}' unexpectedly changed value from '{before.data}' to '{now.data}'. "
                    "Constants are those of the first run: what differs from batch to batch is given as a batch."
                )

    def run(self, inputs, named, size):
        """The outputs for these data: batches."""
        batches = [batch for given in (*inputs, *named.values()) for batch in given.batches()]
        if any(len(batch) == 0 for batch in batches):
            # A branch that no sample takes.
            return [TensorListCPU._of([]) for _ in range(self.count)]
        data = dict(zip(self._labels, batches))
        if self._is_sized:
            data[_SIZE] = np.zeros(size, np.uint8)
        return self._pipeline.run(**data)[: self.count]

    def shaped(self, nodes):
        """Outputs as the operator's function returns them: one, or lists of them."""
        rest = iter(nodes)
        return _replaced(self._structure, rest)

    # --- sources and readers

    def feed(self, name, data, layout):
        """Gives an external source its next batch."""
        self._pipeline.feed_input(name, data, layout)

    def reset(self):
        """Begins the next epoch, if one has ended."""
        self._pipeline.reset()

    def reader_meta(self):
        """What readers say of their data, by name."""
        return self._pipeline.reader_meta()


def _leaves(structure):
    if isinstance(structure, DataNode):
        yield structure
    elif structure is not None:
        for part in structure.values() if isinstance(structure, dict) else structure:
            yield from _leaves(part)


def _replaced(structure, nodes):
    if structure is None or isinstance(structure, DataNode):
        return None if structure is None else next(nodes)
    if isinstance(structure, dict):
        return {name: _replaced(part, nodes) for name, part in structure.items()}
    return type(structure)(_replaced(part, nodes) for part in structure)
