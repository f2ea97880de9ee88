"""What the library reads for readers that it has: it lists a data set and reads a sample. The order is decided here."""

import re

from .._authoring import serialization
from .._native import store
from .._native.dataset import Dataset
from .._native.library import GessoError
from . import storage
from .source import Reader

# What the system's messages end with.
_NUMBER = re.compile(r" \(os error \d+\)$")
# The `gesso_status` of what is not there.
_NOT_FOUND = 3


def unread(text):
    """Why the library could not read something, an `ErrorText`, in the words of all readers."""
    behind = text.reason.partition(f"`{text.file}`: ")[2] if text.file else ""
    if behind and text.status == _NOT_FOUND:
        return RuntimeError(f"Could not open file {text.file}: {_NUMBER.sub('', behind)}")
    return RuntimeError(f"Could not read {text.reason}" if behind else f"Could not read a sample: {text.reason}")


class _Alone:
    """A reader in a file of its own: tensors give values for a sample when it is read."""

    def __init__(self, node):
        self.name, self.schema, self.operator, self.group = node.name, node.schema, node.operator, node.group
        self.device, self.values, self.outputs = node.device, node.values, node.outputs
        self.inputs, self.tensors = [], {}


def _settings(node):
    return node.pipeline.runner.settings


class Samples:
    """What the reader of `node` finds. Several are read at a time: each takes a thread for as long as it is read."""

    is_remote = True

    def __init__(self, node):
        store.use(storage)
        outputs = [(edge.name, edge.device, None, None) for edge in node.outputs]
        # A `sampler` and its like are matters of the order.
        description = serialization.describe([_Alone(node)], outputs, _settings(node).fields(), is_whole=False)
        try:
            self._dataset = Dataset(serialization.write(description), len(outputs), node.pipeline.formats)
        except GessoError as error:
            raise (unread(error.text) if error.text.file else RuntimeError(str(error))) from error
        self.size, self.groups = self._dataset.size, self._dataset.groups
        self.layouts = [""] * len(outputs)

    def read(self, index, fed=None):
        """The arrays of all outputs, and where each is from. `fed`: values that arguments have for this sample."""
        try:
            arrays, self.layouts, infos = self._dataset.read(index, fed)
        except GessoError as error:
            raise unread(error.text) from error
        return arrays, infos


class OfLibrary(Reader):
    """Base of the readers that the library has."""

    def begin(self, node):
        """Finds the samples."""
        return Samples(node)
