"""Branches of conditionals that hold Python functions: there the batch is split and merged in the interpreter, and what
stands inside of such a branch runs as a batch of its own, with as many samples as the branch has."""

import numpy as np

from .._tensors.feeding import Batch

SPLIT, MERGE = "_conditional__Split", "_conditional__Merge"


def _predicate(node):
    """What decides, as a key: the name of the edge."""
    edge = node.tensors.get("predicate")
    return None if edge is None else edge.name


class Branches:
    """Of a graph in order: in which branches each operator is."""

    def __init__(self, operators, is_function):
        self._of_edge, self._of_node = {}, {}
        for node in operators:
            inside = max(
                (self._of_edge[edge.name] for edge in [*node.inputs, *node.tensors.values()]), key=len, default=()
            )
            self._of_node[id(node)] = inside
            for i, edge in enumerate(node.outputs):
                self._of_edge[edge.name] = self._behind(node, inside, i)
        # Predicates of branches that a Python function is in.
        self._held = {predicate for node in operators if is_function(node) for predicate, _ in self._of_node[id(node)]}

    @staticmethod
    def _behind(node, inside, index):
        if is_split(node):
            return (*inside, (_predicate(node), index))
        if is_merge(node):
            return tuple(step for step in inside if step[0] != _predicate(node))
        return inside

    def is_held(self, node):
        """Whether an operator splits or merges in the interpreter."""
        return (is_split(node) or is_merge(node)) and _predicate(node) in self._held

    def is_inside(self, edge):
        """Whether a value has the samples of a branch that a file splits and merges itself."""
        return any(predicate not in self._held for predicate, _ in self._of_edge[edge.name])

    def path(self, node):
        """The branches that the operator is in, as far as they are batches of their own."""
        if is_merge(node):
            return tuple(
                step for step in self._of_node[id(node)] if step[0] in self._held and step[0] != _predicate(node)
            )
        return tuple(step for step in self._of_node[id(node)] if step[0] in self._held)


def is_split(node):
    """Whether it divides a batch between branches."""
    return node.schema.name == SPLIT or node.schema.target == SPLIT


def is_merge(node):
    """Whether it makes one batch of two branches'."""
    return node.schema.name == MERGE or node.schema.target == MERGE


def run(node, inputs, predicate):
    """What a `Split` or a `Merge` makes of batches; `predicate` is the batch that decides."""
    taken = [bool(np.asarray(array)) for array in predicate.arrays]
    if is_split(node):
        (batch,) = inputs
        return [_some(batch, [i for i, is_taken in enumerate(taken) if is_taken == branch]) for branch in (True, False)]
    first, second = inputs
    sides = iter(first.arrays), iter(second.arrays)
    arrays = [next(sides[0 if is_taken else 1]) for is_taken in taken]
    origins = [iter(batch.infos or [""] * len(batch.arrays)) for batch in inputs]
    infos = [next(origins[0 if is_taken else 1]) for is_taken in taken]
    given = first if first.arrays else second
    _check_alike(first, second)
    return [Batch(arrays, given.dtype, given.layout, infos)]


def _some(batch, numbers):
    infos = [batch.infos[i] for i in numbers] if batch.infos else None
    return Batch([batch.arrays[i] for i in numbers], batch.dtype, batch.layout, infos)


def _check_alike(first, second):
    if (
        first.arrays
        and second.arrays
        and (first.dtype != second.dtype or first.arrays[0].ndim != second.arrays[0].ndim)
    ):
        raise RuntimeError(
            f"The branches of a conditional give different data: {first.dtype} of {first.arrays[0].ndim} dimensions where the condition "
            f"holds, {second.dtype} of {second.arrays[0].ndim} where it does not. Both must have one type and number of dimensions."
        )
