"""Graphs with Python functions: cut into stages, each a file of its own; between them the functions run in the
interpreter."""

import functools
import weakref

import numpy as np

from .._authoring import call_site, schema, serialization
from .._authoring.seeds import assign
from .._authoring.video_input import VideoInput, of_size
from .._readers import damage
from .._tensors.device_array import DeviceArray, on_host
from .._tensors.enums import DALIDataType, dtype_of, to_numpy_type
from .._tensors.feeding import Batch
from .._threads.background import Ahead
from ..data_node import DataNode
from .branches import Branches, is_split
from .branches import run as run_conditional
from .engines_by_layout import LayoutEngines

# Elements of a constant that a file may have.
_LARGE = 1 << 16


def is_python(node):
    """Whether an operator runs in the interpreter."""
    return getattr(node.operator, "run_python", None) is not None or is_large_constant(node)


def is_source(node):
    """Whether it runs in the interpreter and reads nothing of the pipeline: before everything else."""
    return getattr(node.operator, "is_source", False) and not node.tensors or is_large_constant(node)


def is_large_constant(node):
    """Whether a constant is too large for a file: it is fed instead."""
    if node.schema.target != "Constant":
        return False
    values = node.values.get("idata") or node.values.get("fdata")
    return values is not None and len(values.values) > _LARGE


def _constant(node, batch_size):
    """The batch of a constant."""
    values = node.values.get("idata") or node.values.get("fdata")
    dtype = DALIDataType(node.values_of("dtype", int(DALIDataType.FLOAT)))
    array = np.array(values.values).astype(to_numpy_type(dtype)).reshape(node.values_of("shape") or [-1])
    return [Batch([array] * batch_size, dtype, node.values_of("layout", ""))]


def _edges(node):
    return [*node.inputs, *node.tensors.values()]


def _levels(operators, is_here, is_inside):
    """For each operator the stage that it belongs to: behind everything in the interpreter (`is_here`) that it needs.
    What a branch of a file's own makes (`is_inside`) has the samples of that branch alone, and no stage can hand it on:
    it is made in the stage that reads it."""
    levels = {id(node): 0 for node in operators}
    # A round follows one value through the interpreter, so that there are fewer rounds than operators.
    for _ in operators:
        before = dict(levels)
        for node in operators:
            for edge in _edges(node):
                behind = is_here(edge.source) and not is_source(edge.source)
                levels[id(node)] = max(levels[id(node)], levels[id(edge.source)] + behind)
        for node in reversed(operators):
            for edge in _edges(node):
                if is_inside(edge) and not is_here(node) and not is_here(edge.source):
                    levels[id(edge.source)] = max(levels[id(edge.source)], levels[id(node)])
        if levels == before:
            break
    return levels


class _Stand:
    """Takes the place of an operator of an earlier stage: an input of the same name as its edge."""

    def __init__(self, edge, device, external):
        self.name, self.device, self.schema = edge.name, device, external
        self.values, self.inputs, self.tensors, self.group = {}, [], {}, object()
        self.outputs = [DataNode(edge.name, device, self, 0)]


def _is_made_on_gpu(edge):
    """Whether its operator runs on a GPU, wherever it is read."""
    return edge.source.outputs[edge.index].device == "gpu"


class Stage:
    """One file: what it needs from earlier stages, what it gives, and the branches that it is in. What is made on a GPU
    stays there if an operator of another stage or the pipeline's user wants it there (`stays`); if only Python
    functions read it, the library brings it to the host."""

    def __init__(self, path, operators, needed, given, stays, parameters, open_engine):
        self.path = path
        self.inputs = [node.name for node in operators if node.schema.target == serialization.SOURCE]
        self.needed = needed
        self.given = given
        external = schema.find(serialization.SOURCE)
        on_device = {edge.name for node in operators for edge in node.inputs if edge.device == "gpu"}
        stands = [
            _Stand(edge, "gpu" if edge.name in on_device and _is_made_on_gpu(edge) else "cpu", external)
            for edge in needed
        ]
        outputs = [(edge.name, "gpu" if edge.name in stays else "cpu", None, None) for edge in given]
        description = serialization.describe(stands + operators, outputs, parameters)
        open_engine = functools.partial(open_engine, outputs_on_host=not stays)
        self.engine = LayoutEngines(description, open_engine) if outputs else None

    def run(self, batch_size, values, fed):
        """Adds what it gives to `values`; returns the errors of samples. In their places stand others, so that what
        follows can go on."""
        if self.engine is None:
            return {}
        if batch_size == 0:
            values.update({edge.name: Batch([], None) for edge in self.given})
            return {}
        inputs = [(name, fed[name]) for name in self.inputs]
        inputs += [(edge.name, values[edge.name]) for edge in self.needed]
        outcome = self.engine.run(batch_size, inputs)
        for edge, (arrays, layout, infos) in zip(self.given, outcome.outputs):
            values[edge.name] = _batch(arrays, layout, infos)
        return outcome.errors


def _batch(arrays, layout, infos):
    present = next((array for array in arrays if array is not None), None)
    if present is None:
        return Batch(arrays, None, layout)
    return Batch([present if array is None else array for array in arrays], dtype_of(present), layout, infos)


class _Batches:
    """What a run knows: the batches by edge, and the samples of each branch by their numbers in the whole batch."""

    def __init__(self, batch_size, values):
        self.values, self.errors = values, {}
        self.numbers = {(): list(range(batch_size))}

    def add_errors(self, path, errors):
        """Notes why samples of a branch failed."""
        self.errors.update({self.numbers[path][i]: text for i, text in errors.items()})

    def is_lost(self):
        """Whether no sample is left."""
        return len(self.errors) >= len(self.numbers[()]) > 0


def _without(arrays, errors):
    """The samples of an output, without those that failed somewhere."""
    return [None if i in errors else array for i, array in enumerate(arrays)] if errors else arrays


def _on_host(batch):
    """A batch for a Python function, which reads host memory."""
    if not any(isinstance(array, DeviceArray) for array in batch.arrays):
        return batch
    return Batch([on_host(array) for array in batch.arrays], batch.dtype, batch.layout, batch.infos)


def failed(node, error):
    """The error of a batch for one of an operator that runs in the interpreter, with the user's lines."""
    return RuntimeError(
        f"Critical error in pipeline:\nError in {node.device.upper()} operator `{node.operator.display}`,\nwhich was used in the "
        f"pipeline definition with the following traceback:\n\n{call_site.describe(node.origin)}\n\nencountered:\n\n"
        f"{type(error).__name__}: {error}"
    )


def _keep(node, inputs, batch_size, values):
    """Runs a node in the interpreter and adds its batches to `values`."""
    node.fed = {name: _on_host(values[edge.name]).arrays for name, edge in node.tensors.items()}
    inputs = [_on_host(batch) for batch in inputs]
    try:
        if is_large_constant(node):
            results = _constant(node, batch_size)
        elif batch_size == 0 and not is_source(node):
            results = [Batch([], None) for _ in node.outputs]
        else:
            results = node.operator.run_python(node, inputs, batch_size)
    except Exception as error:
        raise failed(node, error) from error
    infos = None if any(batch.infos for batch in results) else _common_infos(inputs)
    for edge, batch in zip(node.outputs, results):
        if infos is not None and len(infos) == len(batch.arrays):
            batch.infos = infos
        values[edge.name] = batch


def _common_infos(inputs):
    """Where the samples of all `inputs` come from, as the library hands it on: None where they are of different
    places."""
    if not inputs or any(len(batch.arrays) != len(inputs[0].arrays) for batch in inputs):
        return None
    known = [
        {info for info in infos if info}
        for infos in zip(*[batch.infos or [""] * len(batch.arrays) for batch in inputs])
    ]
    return None if any(len(infos) > 1 for infos in known) else [next(iter(infos), "") for infos in known]


class _Sources:
    """Readers and constants, which need nothing of the pipeline. If `is_ahead`, a thread makes their next batch while
    this one is worked on.

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
            return _of_sources(self._nodes, batch_size)
        coming = self._next or self._thread.submit(_of_sources, self._nodes, batch_size)
        self._next = self._thread.submit(_of_sources, self._nodes, batch_size)
        return coming.result()

    def forget(self):
        """Waits for what is under way and throws it away."""
        if self._next is not None:
            self._next.exception()
            self._next = None


def _of_sources(nodes, batch_size):
    values = {}
    for node in nodes:
        _keep(node, [], batch_size, values)
    return values


def _stop(readers):
    for node in readers:
        node.operator.stop(node)


class StagedGraph:
    """Runs a graph that has Python functions."""

    def __init__(self, operators, outputs, parameters, open_engine, reads_ahead=False, on_gpu=False):
        """`reads_ahead`: readers may be a batch ahead, as all batches have the same number of samples. `on_gpu`:
        whether there is a GPU for what is to run there."""
        self.outputs = outputs
        operators = assign(operators, parameters["seed"])
        self.branches = Branches(operators, lambda node: is_python(node) and not is_source(node))
        levels = _levels(operators, self._is_here, self.branches.is_inside)
        # Those that say how many samples a batch has come first.
        self.videos = [node for node in operators if isinstance(node.operator, VideoInput)]
        for node in self.videos:
            # What is decoded on the GPU stays there.
            node.stays_on_gpu = on_gpu and node.outputs[0].device == "gpu"
        self.readers = [node for node in operators if getattr(node.operator, "is_source", False)]
        for node in self.readers:
            node.operator.start(node, parameters["enable_checkpointing"])
        before_all = [node for node in operators if is_source(node) and node not in self.videos]
        self._sources = _Sources(before_all, self.readers, reads_ahead)
        # For each level: stages, one for each branch that is a batch of its own, and what runs here behind them.
        self.levels = []
        for level in range(max(levels.values(), default=0) + 1):
            here = [node for node in operators if levels[id(node)] == level]
            by_path = {}
            for node in here:
                if not self._is_here(node):
                    by_path.setdefault(self.branches.path(node), []).append(node)
            stages = []
            for path, nodes in by_path.items():
                given, stays = self._given(nodes, operators)
                stages.append(Stage(path, nodes, self._crossing(nodes), given, stays, parameters, open_engine))
            self.levels.append((stages, [node for node in here if self._is_here(node) and not is_source(node)]))

        self._upload = self._to_gpu(parameters, open_engine) if on_gpu else None

    def _to_gpu(self, parameters, open_engine):
        """A last stage, which brings outputs to the GPU that were made on the host and are wanted there; None without
        any."""

        def is_there(edge):
            is_video = getattr(edge.source, "stays_on_gpu", False)
            return _is_made_on_gpu(edge) and (is_video or not self._is_here(edge.source))

        from_host = {edge.name: edge for edge in self.outputs if edge.device == "gpu" and not is_there(edge)}
        edges = list(from_host.values())
        return Stage((), [], edges, edges, set(from_host), parameters, open_engine) if edges else None

    def _is_here(self, node):
        return is_python(node) or self.branches.is_held(node)

    def _crossing(self, engine_nodes):
        own = {id(node) for node in engine_nodes}
        needed = {}
        for node in engine_nodes:
            for edge in _edges(node):
                if id(edge.source) not in own:
                    needed.setdefault(edge.name, edge)
        return list(needed.values())

    def _given(self, engine_nodes, operators):
        """What others read of a stage, and the names of what they want on the GPU."""
        own = {id(node) for node in engine_nodes}
        wanted, stays = {}, set()
        readers = [(edge, is_python(node)) for node in operators if id(node) not in own for edge in _edges(node)]
        for edge, is_function in readers + [(edge, False) for edge in self.outputs]:
            if id(edge.source) in own:
                wanted.setdefault(edge.name, edge)
                if edge.device == "gpu" and _is_made_on_gpu(edge) and not is_function:
                    stays.add(edge.name)
        return list(wanted.values()), stays

    def run(self, batch_size, fed):
        """(arrays and layout of each output, errors of samples)"""
        values = {}
        for node in self.videos:
            _keep(node, [], batch_size, values)
            batch_size = len(values[node.outputs[0].name].arrays)
            fed = {name: of_size(batch, batch_size) for name, batch in fed.items()}
        batches = _Batches(batch_size, values)
        values.update(self._sources.batches(batch_size))
        for stages, nodes in self.levels:
            for stage in stages:
                batches.add_errors(stage.path, stage.run(len(batches.numbers[stage.path]), values, fed))
            if batches.is_lost():
                return [([None] * batch_size, "", None) for _ in self.outputs], self._named(batches)
            for node in nodes:
                self._run_here(node, batches)
        on_gpu = {}
        if self._upload is not None:
            uploaded = dict(values)
            self._upload.run(batch_size, uploaded, {})
            on_gpu = {edge.name: uploaded[edge.name].arrays for edge in self._upload.given}
        outputs = []
        for edge in self.outputs:
            batch = values[edge.name]
            arrays = on_gpu.get(edge.name, batch.arrays) if edge.device == "gpu" else batch.arrays
            outputs.append((_without(arrays, batches.errors), batch.layout, batch.infos))
        return outputs, self._named(batches)

    def _named(self, batches):
        """The errors of samples, with what they were read from."""
        found = []
        for node in self.readers if batches.errors else []:
            batch = batches.values.get(node.outputs[0].name) if node.outputs else None
            if batch is not None and batch.infos and len(batch.infos) == len(batches.numbers[()]):
                found.append((node.name, batch.infos, batch.numbers))
        return damage.with_origins(batches.errors, found)

    def _run_here(self, node, batches):
        path, values = self.branches.path(node), batches.values
        inputs = [values[edge.name] for edge in node.inputs]
        if not self.branches.is_held(node):
            return _keep(node, inputs, len(batches.numbers[path]), values)
        predicate = values[node.tensors["predicate"].name]
        for i, (edge, batch) in enumerate(zip(node.outputs, run_conditional(node, inputs, predicate))):
            values[edge.name] = batch
            if is_split(node):
                taken = [bool(np.asarray(array)) == (i == 0) for array in predicate.arrays]
                step = (node.tensors["predicate"].name, i)
                batches.numbers[(*path, step)] = [
                    number for number, is_in in zip(batches.numbers[path], taken) if is_in
                ]

    def skip(self, batches, readers, batch_size):
        """Goes to where so many batches were given; `readers` says how readers had done so."""
        for node in self.readers:
            node.operator.skip(node, batches, batch_size, readers.get(node.name))
        for stage in (stage for stages, _ in self.levels for stage in stages):
            if stage.engine is not None:
                stage.engine.skip(batches)

    def restart(self, batches, batch_size):
        """Goes on with the epoch of the readers behind the one that so many batches have got to."""
        self._sources.forget()
        for node in self.readers:
            node.operator.restart(node, batches, batch_size)

    def reader_meta(self):
        """What the readers say of their data."""
        return {node.name: node.operator.meta(node) for node in self.readers if node not in self.videos}

    def reader_history(self, batches, batch_size):
        """How the readers have read so many batches."""
        return {node.name: node.operator.history(node, batches, batch_size) for node in self.readers}

    def reader_left(self):
        """What is left for each shard of epochs that other shards began, by reader."""
        return {node.name: node.operator.left(node) for node in self.readers}
