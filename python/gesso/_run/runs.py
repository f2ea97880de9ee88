"""`Run`: what runs the batches of a graph. And the graph as the library's file has it, in which operators and sources
of the interpreter are called."""

from types import SimpleNamespace

from .._authoring import schema, serialization
from .._authoring.arguments import TypedValue
from ..data_node import DataNode
from .python_nodes import function_of, is_large_constant, is_python

# What the library calls an operator that it calls a function for, and a source.
_CALLBACK, _CALLBACK_SOURCE = "Callback", "CallbackSource"


class Run:
    """Base of `FedRun`, which is given what a batch is made of, and `StreamRun`, whose sources are read ahead."""

    # Whether the library reads all data sets, and not the interpreter.
    is_read_by_library = False
    # Whether nothing of what it is fed is needed, or changed, once a batch has run: no function of the user's sees it.
    keeps_nothing = False

    def run(self, batch_size, fed, taken):
        """The next batch: arrays, layout and origins of each output, and errors of samples. `fed`: name > batch.
        `taken`, a `Taken`, is told what the batch takes, also if it fails."""
        raise NotImplementedError

    def skip(self, state):
        """Goes to the place (`Epochs.place`) that a checkpoint says; it has more: `Epochs.save`."""
        raise NotImplementedError

    def check_restart(self, batches):
        """Raises if `restart` behind so many batches cannot be."""

    def restart(self, place):
        """Goes on with the epoch of the readers behind the one that the batches before a place (`Epochs.place`) have
        got to. What was made ahead is as if it had not been."""
        raise NotImplementedError

    def reader_meta(self):
        """What the readers say of their data, by their names."""
        raise NotImplementedError

    def reader_history(self, batches):
        """How the readers have read so many batches."""
        raise NotImplementedError

    def reader_left(self):
        """What is left for each shard of epochs that other shards began, by reader."""
        raise NotImplementedError


class Fed:
    """Stands for what a source of the interpreter makes: an input of the same name as its edge."""

    def __init__(self, edge, device):
        self.name, self.device, self.schema = edge.name, device, schema.find(serialization.SOURCE)
        self.values, self.inputs, self.tensors, self.group = {}, [], {}, object()
        if is_large_constant(edge.source) and (layout := edge.source.values_of("layout")):
            self.values["layout"] = TypedValue("string", False, [layout])
        self.outputs = [DataNode(edge.name, device, self, 0)]


class Called:
    """Stands for an operator or a source of the interpreter: the library calls it."""

    def __init__(self, node, is_source=False):
        self.name, self.operator, self.group = node.name, SimpleNamespace(display=node.operator.display), node.group
        kind = _CALLBACK_SOURCE if is_source else _CALLBACK
        self.schema = schema.Schema(kind, ("cpu",), 0, len(node.inputs), len(node.outputs), {})
        self.inputs, self.tensors, self.outputs = node.inputs, node.tensors, node.outputs
        self.device = "cpu"
        self.values = {"output_layouts": TypedValue("string", True, _layouts(node))}


def _layouts(node):
    """The layouts of the outputs of an operator of the interpreter, as far as they are known before it is called."""
    if hasattr(node.operator, "known_layouts"):
        return node.operator.known_layouts()
    if is_large_constant(node):
        return [node.values_of("layout", "")]
    return getattr(getattr(node, "samples", None), "layouts", None) or [""] * len(node.outputs)


def functions_of(nodes):
    """What the library calls for operators of the interpreter, by their names."""
    return {node.name: function_of(node) for node in nodes if is_python(node)}


def described(nodes, outputs, parameters):
    """The description of a file."""
    return serialization.describe(nodes, [(edge.name, edge.device, None, None) for edge in outputs], parameters)


def distinct(outputs):
    """Each of the outputs once."""
    return list({(edge.name, edge.device): edge for edge in outputs}.values())
