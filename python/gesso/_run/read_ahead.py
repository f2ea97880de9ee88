"""Readers and constants of the interpreter: their batches, which are read ahead."""

import functools
import weakref

from .._threads.background import Ahead
from . import python_nodes


class ReadAhead:
    """Nodes that need nothing of the pipeline. If `is_ahead`, a thread makes their next batch while this one is worked
    on.

    When nobody has it any more, `readers` close what they have open: nodes of a graph may live longer.
    """

    def __init__(self, nodes, readers, is_ahead):
        self._nodes = nodes
        self._thread = self._next = None
        stop = functools.partial(_stop, readers)
        if is_ahead and nodes:
            # The thread closes what it reads.
            self._thread = Ahead(stop)
        else:
            weakref.finalize(self, stop).atexit = False

    def batches(self, batch_size):
        """The next batch of each, by edge."""
        if self._thread is None:
            return batches_of(self._nodes, batch_size)
        coming = self._next or self._thread.submit(batches_of, self._nodes, batch_size)
        self._next = self._thread.submit(batches_of, self._nodes, batch_size)
        return coming.result()

    def forget(self):
        """Waits for what is under way and throws it away."""
        if self._next is not None:
            self._next.exception()
            self._next = None


def batches_of(nodes, batch_size):
    """The next batch of each output of sources, by edge."""
    values = {}
    for node in nodes:
        values.update(zip((edge.name for edge in node.outputs), python_nodes.read(node, batch_size)))
    return values


def _stop(readers):
    for node in readers:
        node.operator.stop(node)
