"""A graph with operators of the interpreter as one plan of the library: sources of the interpreter are fed to it, and
it calls functions of the interpreter."""

from .._authoring import schema, serialization
from .._authoring.arguments import TypedValue
from .._authoring.seeds import assign
from .._authoring.video_input import VideoInput, of_size
from .._readers import damage
from ..data_node import DataNode
from .python_nodes import function_of, is_large_constant, is_python, is_source
from .read_ahead import ReadAhead, batches_of

# What the library calls an operator that it calls a function for.
_CALLBACK = "Callback"


class _Input:
    """Stands for what a source of the interpreter makes: an input of the same name as its edge."""

    def __init__(self, edge, device):
        self.name, self.device, self.schema = edge.name, device, schema.find(serialization.SOURCE)
        self.values, self.inputs, self.tensors, self.group = {}, [], {}, object()
        if is_large_constant(edge.source) and (layout := edge.source.values_of("layout")):
            self.values["layout"] = TypedValue("string", False, [layout])
        self.outputs = [DataNode(edge.name, device, self, 0)]


class _Call:
    """Stands for an operator of the interpreter: the library calls it."""

    def __init__(self, node):
        self.name, self.operator, self.group = node.name, node.operator, node.group
        self.schema = schema.Schema(_CALLBACK, ("cpu",), 0, len(node.inputs), len(node.outputs), {})
        self.inputs, self.tensors, self.outputs = node.inputs, node.tensors, node.outputs
        self.device = "cpu"
        self.values = {"output_layouts": TypedValue("string", True, _layouts(node))}


def _layouts(node):
    """The layouts of the outputs of an operator of the interpreter, as far as they are known before it is called."""
    if hasattr(node.operator, "known_layouts"):
        return node.operator.known_layouts()
    return getattr(getattr(node, "samples", None), "layouts", None) or [""] * len(node.outputs)


def _edges(node):
    return [*node.inputs, *node.tensors.values()]


def _is_made_on_gpu(edge):
    """Whether its operator runs on a GPU, wherever it is read."""
    return edge.source.outputs[edge.index].device == "gpu"


class GraphRun:
    """Runs such a graph."""

    def __init__(self, operators, outputs, parameters, open_engines, native=None, reads_ahead=False, on_gpu=False):
        """`open_engines` makes what runs a description and functions. `native`: readers that the library reads by.
        `reads_ahead`: other readers may be a batch ahead, as all batches have the same number of samples. `on_gpu`:
        whether there is a GPU for what is to run there."""
        operators = assign(operators, parameters["seed"])
        self._native, natives = native, {id(node) for node in native.nodes} if native else set()
        # Those that say how many samples a batch has come first.
        self._videos = [node for node in operators if isinstance(node.operator, VideoInput)]
        for node in self._videos:
            # What is decoded on the GPU stays there.
            node.stays_on_gpu = on_gpu and node.outputs[0].device == "gpu"
        is_reader = lambda node: getattr(node.operator, "is_source", False) and id(node) not in natives
        self._readers = [node for node in operators if is_reader(node)]
        for node in self._readers:
            node.operator.start(node, parameters["enable_checkpointing"])
        sources = [node for node in operators if is_source(node) and id(node) not in natives]
        ahead = [node for node in sources if node not in self._videos]
        self._sources = ReadAhead(ahead, self._readers, reads_ahead)
        self._of_sources = {id(node) for node in sources}
        others = [node for node in operators if id(node) not in self._of_sources]
        self._inputs = [node.name for node in others if node.schema.target == serialization.SOURCE]
        self._outputs, self._planned = outputs, self._through_plan(outputs, others, on_gpu)
        read = {edge.name: edge for edge in [*(edge for node in others for edge in _edges(node)), *self._planned]}
        self._fed = [edge for edge in read.values() if id(edge.source) in self._of_sources]
        self._engines = None
        if self._planned:
            is_function = lambda node: is_python(node) and id(node) not in natives
            functions = {node.name: function_of(node) for node in others if is_function(node)}
            self._engines = open_engines(self._description(others, functions, parameters), functions)

    def _through_plan(self, outputs, others, on_gpu):
        """The outputs that the plan has: not those that sources make where they are wanted."""

        def is_there(edge):
            on_its_gpu = getattr(edge.source, "stays_on_gpu", False)
            return id(edge.source) in self._of_sources and (edge.device != "gpu" or not on_gpu or on_its_gpu)

        planned = list({(edge.name, edge.device): edge for edge in outputs if not is_there(edge)}.values())
        # A plan has outputs; so has one of functions alone that return nothing.
        return planned or (outputs[:1] if others else [])

    def _description(self, others, functions, parameters):
        wanted_on_gpu = {edge.name for node in others for edge in node.inputs if edge.device == "gpu"}
        inputs = [
            _Input(edge, "gpu" if edge.name in wanted_on_gpu and _is_made_on_gpu(edge) else "cpu") for edge in self._fed
        ]
        nodes = [_Call(node) if node.name in functions else node for node in others]
        outputs = [(edge.name, edge.device, None, None) for edge in self._planned]
        return serialization.describe(inputs + nodes, outputs, parameters)

    def run(self, batch_size, fed):
        """(arrays and layout of each output, errors of samples)"""
        values = batches_of(self._videos, batch_size)
        if self._videos:
            batch_size = len(values[self._videos[0].outputs[0].name].arrays)
            fed = {name: of_size(batch, batch_size) for name, batch in fed.items()}
        values.update(self._sources.batches(batch_size))
        found, errors = {}, {}
        if self._engines is not None:
            inputs = [(name, fed[name]) for name in self._inputs]
            inputs += [(edge.name, values[edge.name]) for edge in self._fed]
            outcome, origins = self._run_plan(batch_size, inputs, values)
            found = {(edge.name, edge.device): output for edge, output in zip(self._planned, outcome.outputs)}
            errors = damage.with_origins(outcome.errors, origins)
        return [
            found.get((edge.name, edge.device)) or _given(values[edge.name], errors) for edge in self._outputs
        ], errors

    def _run_plan(self, batch_size, inputs, values):
        """The outcome, and if samples failed what they were read from: name, infos and numbers of each reader."""
        if self._native is not None:
            return self._native.run(batch_size, inputs)
        outcome, found = self._engines.run(batch_size, inputs), []
        for node in self._readers if outcome.errors else []:
            batch = values.get(node.outputs[0].name) if node.outputs else None
            if batch is not None and batch.infos:
                found.append((node.name, batch.infos, batch.numbers))
        return outcome, found

    def skip(self, batches, readers, batch_size):
        """Goes to where so many batches were given; `readers` says how readers had done so."""
        for node in self._readers:
            node.operator.skip(node, batches, batch_size, readers.get(node.name))
        # A stream was opened where it goes on.
        if self._engines is not None and self._native is None:
            self._engines.skip(batches)

    def restart(self, batches, batch_size):
        """Goes on with the epoch of the readers behind the one that so many batches have got to."""
        self._sources.forget()
        for node in self._readers:
            node.operator.restart(node, batches, batch_size)
        if self._native is not None:
            self._native.restart(batches)

    def reader_meta(self):
        """What the readers say of their data."""
        if self._native is not None:
            return self._native.meta()
        return {node.name: node.operator.meta(node) for node in self._readers if node not in self._videos}

    def reader_history(self, batches, batch_size):
        """How the readers have read so many batches."""
        if self._native is not None:
            return self._native.history(batches)
        return {node.name: node.operator.history(node, batches, batch_size) for node in self._readers}

    def reader_left(self):
        """What is left for each shard of epochs that other shards began, by reader."""
        if self._native is not None:
            return self._native.left()
        return {node.name: node.operator.left(node) for node in self._readers}

    @property
    def is_read_by_library(self):
        """Whether the library reads, and not the interpreter."""
        return self._native is not None


def _given(batch, errors):
    """What a source made, without the samples that failed somewhere."""
    arrays = [None if i in errors else array for i, array in enumerate(batch.arrays)] if errors else batch.arrays
    return arrays, batch.layout, batch.infos
