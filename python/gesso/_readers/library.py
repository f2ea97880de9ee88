"""Samples that the library reads, one by one: for readers that it alone has. Their order is decided here."""

from .._authoring import serialization
from .._native.dataset import Dataset
from .._native.library import GessoError
from . import storage


class Samples:
    """What the reader of `node` finds. Several are read at a time: each takes a thread for as long as it is read."""

    is_remote = True

    def __init__(self, node):
        outputs = [(edge.name, edge.device, None, None) for edge in node.outputs]
        # A `sampler` and its like are matters of the order.
        description = serialization.describe([node], outputs, node.pipeline.runner.settings.fields(), is_whole=False)
        try:
            self._dataset = Dataset(serialization.write(description), len(outputs))
        except GessoError as error:
            raise RuntimeError(str(error)) from error
        self.size = self._dataset.size

    def read(self, index):
        """The arrays of all outputs, and where each is from."""
        try:
            arrays, _, infos = self._dataset.read(index)
        except GessoError as error:
            raise RuntimeError(f"Could not read {error}") from error
        return arrays, infos


def require_local(node, *names):
    """Raises for paths in an object store, which the library does not read."""
    for name in names:
        if storage.is_remote(node.values_of(name) or ""):
            raise RuntimeError(
                f"`{node.operator.display}` reads files of this machine, but `{name}` is {node.values_of(name)}."
            )
