"""A graph with operators of the interpreter as one plan of the library, which calls functions of the interpreter. Its
sources are read ahead by a stream, or fed to it batch by batch."""

import weakref
from types import SimpleNamespace

from .._authoring import schema, serialization
from .._authoring.arguments import TypedValue
from .._authoring.seeds import assign
from .._authoring.video_input import VideoInput, of_size
from .._readers import damage
from ..data_node import DataNode
from .python_nodes import function_of, is_large_constant, is_python, is_reader, is_source, read, stop

# What the library calls an operator that it calls a function for, and a source.
_CALLBACK, _CALLBACK_SOURCE = "Callback", "CallbackSource"


class _Input:
    """Stands for what a source of the interpreter makes: an input of the same name as its edge."""

    def __init__(self, edge, device):
        self.name, self.device, self.schema = edge.name, device, schema.find(serialization.SOURCE)
        self.values, self.inputs, self.tensors, self.group = {}, [], {}, object()
        if is_large_constant(edge.source) and (layout := edge.source.values_of("layout")):
            self.values["layout"] = TypedValue("string", False, [layout])
        self.outputs = [DataNode(edge.name, device, self, 0)]


class _Call:
    """Stands for an operator or a source of the interpreter: the library calls it."""

    def __init__(self, node, kind=_CALLBACK):
        self.name, self.operator, self.group = node.name, SimpleNamespace(display=node.operator.display), node.group
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


def _is_made_on_gpu(edge):
    """Whether its operator runs on a GPU, wherever it is read."""
    return edge.source.outputs[edge.index].device == "gpu"


def _functions(nodes):
    """What the library calls for operators of the interpreter, by their names."""
    return {node.name: function_of(node) for node in nodes if is_python(node)}


def _described(operators, outputs, parameters):
    return serialization.describe(operators, [(edge.name, edge.device, None, None) for edge in outputs], parameters)


def _distinct(outputs):
    return list({(edge.name, edge.device): edge for edge in outputs}.values())


class StreamRun:
    """Runs a graph whose sources a stream reads ahead."""

    def __init__(self, operators, outputs, parameters, sources):
        """`sources`: a `SourceStream` of the graph."""
        operators = assign(operators, parameters["seed"])
        sources.start()
        called, of_library = ({id(node) for node in nodes} for nodes in (sources.called, sources.natives))
        functions = _functions(node for node in operators if id(node) not in called | of_library)
        kinds = {True: _CALLBACK_SOURCE, False: _CALLBACK}
        nodes = [
            _Call(node, kinds[id(node) in called]) if id(node) in called or node.name in functions else node
            for node in operators
        ]
        self._sources, self._outputs, self._planned = sources, outputs, _distinct(outputs)
        sources.open(_described(nodes, self._planned, parameters), functions)

    def run(self, batch_size, fed):
        """(arrays and layout of each output, errors of samples)"""
        outcome, origins = self._sources.run(batch_size, list(fed.items()))
        found = {(edge.name, edge.device): output for edge, output in zip(self._planned, outcome.outputs)}
        return [found[edge.name, edge.device] for edge in self._outputs], damage.with_origins(outcome.errors, origins)

    def skip(self, batches, readers):
        """Goes to where so many batches were given; `readers` says how readers had done so."""
        self._sources.skip(batches, readers)

    def restart(self, batches):
        """Goes on with the epoch of the readers behind the one that so many batches have got to."""
        self._sources.restart(batches)

    def reader_meta(self):
        """What the readers say of their data."""
        return self._sources.meta()

    def reader_history(self, batches):
        """How the readers have read so many batches."""
        return self._sources.history(batches)

    def reader_left(self):
        """What is left for each shard of epochs that other shards began, by reader."""
        return self._sources.left()

    @property
    def is_read_by_library(self):
        """Whether the library reads, and not the interpreter."""
        return len(self._sources.natives) == len(self._sources.readers)


class FedRun:
    """Runs a graph with a batch of each source in turn: where some is fed, nobody knows before how many samples a batch
    has."""

    is_read_by_library = False

    def __init__(self, operators, outputs, parameters, open_engines, batch_size, on_gpu=False):
        """`open_engines` makes what runs a description and functions. `on_gpu`: whether there is a GPU for what is to
        run there."""
        operators = assign(operators, parameters["seed"])
        self._batch_size = batch_size
        # Those that say how many samples a batch has come first.
        self._videos = [node for node in operators if isinstance(node.operator, VideoInput)]
        for node in self._videos:
            # What is decoded on the GPU stays there.
            node.stays_on_gpu = on_gpu and node.outputs[0].device == "gpu"
        self._readers = [node for node in operators if is_reader(node)]
        for node in self._readers:
            node.operator.start(node, parameters["enable_checkpointing"])
        # Nodes of a graph may live longer.
        weakref.finalize(self, stop, self._readers).atexit = False
        sources = [node for node in operators if is_source(node)]
        self._others = [node for node in sources if node not in self._videos]
        self._of_sources = {id(node) for node in sources}
        planned = [node for node in operators if id(node) not in self._of_sources]
        self._inputs = [node.name for node in planned if node.schema.target == serialization.SOURCE]
        self._outputs, self._planned = outputs, self._through_plan(outputs, planned, on_gpu)
        edges = [*(edge for node in planned for edge in (*node.inputs, *node.tensors.values())), *self._planned]
        fed = {edge.name: edge for edge in edges}
        self._fed = [edge for edge in fed.values() if id(edge.source) in self._of_sources]
        self._engines = None
        if self._planned:
            functions = _functions(planned)
            self._engines = open_engines(self._description(planned, functions, parameters), functions)

    def _through_plan(self, outputs, others, on_gpu):
        """The outputs that the plan has: not those that sources make where they are wanted."""

        def is_there(edge):
            on_its_gpu = getattr(edge.source, "stays_on_gpu", False)
            return id(edge.source) in self._of_sources and (edge.device != "gpu" or not on_gpu or on_its_gpu)

        # A plan has outputs; so has one of functions alone that return nothing.
        return _distinct(edge for edge in outputs if not is_there(edge)) or (outputs[:1] if others else [])

    def _description(self, others, functions, parameters):
        wanted_on_gpu = {edge.name for node in others for edge in node.inputs if edge.device == "gpu"}
        inputs = [
            _Input(edge, "gpu" if edge.name in wanted_on_gpu and _is_made_on_gpu(edge) else "cpu") for edge in self._fed
        ]
        nodes = [_Call(node) if node.name in functions else node for node in others]
        return _described(inputs + nodes, self._planned, parameters)

    def run(self, batch_size, fed):
        """(arrays and layout of each output, errors of samples)"""
        values = _batches_of(self._videos, batch_size)
        if self._videos:
            batch_size = len(values[self._videos[0].outputs[0].name].arrays)
            fed = {name: of_size(batch, batch_size) for name, batch in fed.items()}
        values.update(_batches_of(self._others, batch_size))
        found, errors = {}, {}
        if self._engines is not None:
            inputs = [(name, fed[name]) for name in self._inputs]
            inputs += [(edge.name, values[edge.name]) for edge in self._fed]
            outcome = self._engines.run(batch_size, inputs)
            found = {(edge.name, edge.device): output for edge, output in zip(self._planned, outcome.outputs)}
            errors = damage.with_origins(outcome.errors, self._origins(values))
        return [
            found.get((edge.name, edge.device)) or _given(values[edge.name], errors) for edge in self._outputs
        ], errors

    def _origins(self, values):
        """What samples were read from: name, infos and numbers of each reader."""
        firsts = [(node.name, values.get(node.outputs[0].name)) for node in self._readers if node.outputs]
        return [(name, batch.infos, batch.numbers) for name, batch in firsts if batch is not None and batch.infos]

    def skip(self, batches, readers):
        """Goes to where so many batches were given; `readers` says how readers had done so."""
        for node in self._readers:
            node.operator.skip(node, batches, self._batch_size, readers.get(node.name))
        if self._engines is not None:
            self._engines.skip(batches)

    def restart(self, batches):
        """Goes on with the epoch of the readers behind the one that so many batches have got to."""
        for node in self._readers:
            node.operator.restart(node, batches, self._batch_size)

    def reader_meta(self):
        """What the readers say of their data."""
        return {node.name: node.operator.meta(node) for node in self._readers if node not in self._videos}

    def reader_history(self, batches):
        """How the readers have read so many batches."""
        return {node.name: node.operator.history(node, batches, self._batch_size) for node in self._readers}

    def reader_left(self):
        """What is left for each shard of epochs that other shards began, by reader."""
        return {node.name: node.operator.left(node) for node in self._readers}


def _batches_of(nodes, batch_size):
    """The next batch of each output of sources, by edge."""
    values = {}
    for node in nodes:
        values.update(zip((edge.name for edge in node.outputs), read(node, batch_size)))
    return values


def _given(batch, errors):
    """What a source made, without the samples that failed somewhere."""
    arrays = [None if i in errors else array for i, array in enumerate(batch.arrays)] if errors else batch.arrays
    return arrays, batch.layout, batch.infos
