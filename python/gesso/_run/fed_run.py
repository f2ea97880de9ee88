"""A graph that is run batch by batch: with what its inputs are fed, and with a batch of each source in turn. Where
something is fed, nobody knows before how many samples a batch has."""

import weakref

from .._authoring import serialization
from .._authoring.seeds import assign
from .._authoring.video_input import VideoInput, of_size
from .._readers import damage
from .layout_engines import LayoutEngines
from .python_nodes import is_python, is_reader, is_source, read, stop
from .runs import Called, Fed, Run, described, distinct, functions_of


class FedRun(Run):
    """Runs a graph in the thread that asks for a batch."""

    def __init__(self, definition, settings, parameters, open_engine, on_gpu=False):
        """`open_engine` makes what runs a file and functions. `on_gpu`: whether there is a GPU for what is to run
        there."""
        operators, outputs = definition.operators, definition.outputs
        # Whether the plan has all of them.
        self.keeps_nothing = is_whole = not any(map(is_python, operators))
        if not is_whole:
            assign(operators, parameters["seed"])
        self._batch_size, self._is_saved = settings.batch_size, parameters["enable_checkpointing"]
        # Those that say how many samples a batch has come first.
        self._videos = [node for node in operators if isinstance(node.operator, VideoInput)]
        for node in self._videos:
            # What is decoded on the GPU stays there.
            node.stays_on_gpu = on_gpu and node.outputs[0].device == "gpu"
        self._readers = [node for node in operators if is_reader(node)]
        # Whether a batch had another size than readers have in a checkpoint.
        self._was_short = False
        for node in self._readers:
            node.operator.start(node, parameters["enable_checkpointing"])
        # Nodes of a graph may live longer.
        weakref.finalize(self, stop, self._readers).atexit = False
        sources = [node for node in operators if is_source(node)]
        self._others = [node for node in sources if node not in self._videos]
        self._of_sources = {id(node) for node in sources}
        planned = [node for node in operators if id(node) not in self._of_sources]
        self._inputs = [node.name for node in planned if node.schema.target == serialization.SOURCE]
        self._outputs = outputs
        self._planned = outputs if is_whole else self._through_plan(planned, on_gpu)
        edges = [*(edge for node in planned for edge in (*node.inputs, *node.tensors.values())), *self._planned]
        fed = {edge.name: edge for edge in edges}
        self._fed = [edge for edge in fed.values() if id(edge.source) in self._of_sources]
        self._engines = None
        if is_whole:
            description = {**definition.description(settings), "seed": parameters["seed"]}
            self._engines = LayoutEngines(description, open_engine)
        elif self._planned:
            functions = functions_of(planned)
            description = self._description(planned, functions, parameters)
            self._engines = LayoutEngines(description, open_engine, functions)

    def _through_plan(self, others, on_gpu):
        """The outputs that the plan has: not those that sources make where they are wanted."""

        def is_there(edge):
            on_its_gpu = getattr(edge.source, "stays_on_gpu", False)
            return id(edge.source) in self._of_sources and (edge.device != "gpu" or not on_gpu or on_its_gpu)

        # A plan has outputs; so has one of functions alone that return nothing.
        return distinct(edge for edge in self._outputs if not is_there(edge)) or (self._outputs[:1] if others else [])

    def _description(self, others, functions, parameters):
        wanted_on_gpu = {edge.name for node in others for edge in node.inputs if edge.device == "gpu"}
        inputs = [
            Fed(edge, "gpu" if edge.name in wanted_on_gpu and _is_made_on_gpu(edge) else "cpu") for edge in self._fed
        ]
        nodes = [Called(node) if node.name in functions else node for node in others]
        return described(inputs + nodes, self._planned, parameters)

    def run(self, batch_size, fed, taken):
        if self.keeps_nothing:
            outcome = self._run_engine(batch_size, [(name, fed[name]) for name in self._inputs], taken)
            return outcome.outputs, outcome.errors
        values = _batches_of(self._videos, batch_size)
        if self._videos:
            batch_size = len(values[self._videos[0].outputs[0].name].arrays)
            fed = {name: of_size(batch, batch_size) for name, batch in fed.items()}
        taken.has_begun = True
        self._was_short = self._was_short or batch_size != self._batch_size
        values.update(_batches_of(self._others, batch_size))
        found, errors = {}, {}
        if self._engines is not None:
            inputs = [(name, fed[name]) for name in self._inputs]
            inputs += [(edge.name, values[edge.name]) for edge in self._fed]
            outcome = self._run_engine(batch_size, inputs, taken)
            found = {(edge.name, edge.device): output for edge, output in zip(self._planned, outcome.outputs)}
            errors = damage.with_origins(outcome.errors, self._origins(values))
        return [
            found.get((edge.name, edge.device)) or _given(values[edge.name], errors) for edge in self._outputs
        ], errors

    def _run_engine(self, batch_size, inputs, taken):
        taken.has_begun, taken.samples = True, batch_size
        outcome = self._engines.run(batch_size, inputs)
        if self._is_saved:
            taken.branch_samples = outcome.branch_samples()
        return outcome

    def _origins(self, values):
        """What samples were read from: name, infos and numbers of each reader."""
        firsts = [(node.name, values.get(node.outputs[0].name)) for node in self._readers if node.outputs]
        return [(name, batch.infos, batch.numbers) for name, batch in firsts if batch is not None and batch.infos]

    def go_on(self, samples):
        """The next batch is one before which there were so many samples: its random numbers follow from that."""
        self._engines.go_on(samples)

    def skip(self, state):
        for node in self._readers:
            node.operator.skip(node, state["batches"], self._batch_size, state["readers"].get(node.name))
        if self._engines is not None:
            self._engines.go_on(state["samples"], state["branch_samples"])

    def restart(self, place):
        for node in self._readers:
            node.operator.restart(node, place["batches"], self._batch_size)
        if self._engines is not None:
            self._engines.go_on(place["samples"], place["branch_samples"])

    def reader_meta(self):
        return {node.name: node.operator.meta(node) for node in self._readers if node not in self._videos}

    def reader_history(self, batches):
        own = [node for node in self._readers if node not in self._videos]
        if own and self._was_short:
            raise RuntimeError(
                f"there is no checkpoint behind batches of fewer samples than `batch_size`, {self._batch_size}, where "
                f"readers (`{own[0].name}`) stand beside inputs: it would not tell where they are"
            )
        return {node.name: node.operator.history(node, batches, self._batch_size) for node in own}

    def reader_left(self):
        return {node.name: node.operator.left(node) for node in self._readers}


def _is_made_on_gpu(edge):
    """Whether its operator runs on a GPU, wherever it is read."""
    return edge.source.outputs[edge.index].device == "gpu"


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
