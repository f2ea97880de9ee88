"""A graph whose sources a stream of the library reads ahead: readers that the library has, and those that the
interpreter alone has, as data sets that the library calls. Errors are those of readers in the interpreter."""

import functools

from .._authoring import serialization
from .._authoring.seeds import assign
from .._native import library
from .._native.callback_dataset import CallbackDataset
from .._native.stream import StreamEngine
from .._readers import damage, epoch_starts
from .._readers.library import unread
from .native_readers import lanes
from .python_nodes import failed, is_reader, is_source, read, stop
from .runs import Called, Run, described, distinct, functions_of
from .sample_numbers import Files, Infos


class StreamRun(Run):
    """Runs a graph whose sources are read ahead."""

    def __init__(self, definition, settings, parameters, place, natives, state):
        """`natives`: readers that the library reads by. `state`: a checkpoint to go on from, or None."""
        operators = assign(definition.operators, parameters["seed"])
        self._batch_size, self._restarts = settings.batch_size, parameters["enable_checkpointing"]
        self._begun, self._natives = state["batches"] if state else 0, natives
        # Behind how many batches the epoch was left in the middle, each time counted from the last time.
        self._left = []
        known = {id(node) for node in natives}
        self._readers = [node for node in operators if is_reader(node)]
        self._own = [node for node in self._readers if id(node) not in known]
        called = [node for node in operators if is_source(node) and id(node) not in known]
        self._datasets = {node.name: CallbackDataset(functools.partial(read, node)) for node in called}
        for node in self._own:
            node.operator.start(node, self._restarts)
            if node.name in self._datasets:
                node.is_wanted = functools.partial(getattr, self._datasets[node.name], "is_wanted")
        functions = functions_of(
            node for node in operators if id(node) not in known and node.name not in self._datasets
        )
        nodes = [
            Called(node, node.name in self._datasets) if node.name in {**functions, **self._datasets} else node
            for node in operators
        ]
        self._outputs, self._planned = definition.outputs, distinct(definition.outputs)
        # It has one lane if it calls functions, one batch after the other.
        most = {"most": 1} if functions else {}
        self._engine = StreamEngine(
            serialization.write(described(nodes, self._planned, parameters)),
            *place,
            batch_size=self._batch_size,
            functions={**functions, **self._datasets},
            close=functools.partial(stop, self._own),
            **lanes(place.device, settings.num_threads, settings.queue_depth, **most),
        )
        self._engine.skip(self._begun, state["branch_samples"] if state else [])
        self._engine.open()
        self._files = {node.name: self._files_of(node) for node in natives}
        self.is_read_by_library = not self._own

    def _files_of(self, node, **where):
        size = self._engine.reader_meta()[node.name]["epoch_size"]
        return Files(node, size, self._restarts, self._batch_size, **where)

    def run(self, batch_size, fed, taken):
        taken.has_begun, taken.samples = True, batch_size
        number, error, outcome = self._begun, None, None
        self._begun += 1
        try:
            outcome = self._engine.run(batch_size, list(fed.items()))
        except BaseException as raised:
            error = raised
        if outcome is not None:
            taken.branch_samples = outcome.branch_samples()
        given = {name: dataset.taken() for name, dataset in self._datasets.items()}
        if error is not None:
            self._raise(error, given.values())
        if outcome is None:
            raise RuntimeError("the program is at its end: no more batches are made")
        self._raise_unread(outcome.errors)
        errors = damage.with_origins(outcome.errors, self._origins(number, given)) if outcome.errors else {}
        found = {(edge.name, edge.device): output for edge, output in zip(self._planned, outcome.outputs)}
        return [found[edge.name, edge.device] for edge in self._outputs], errors

    def _origins(self, number, given):
        """What the samples of a batch were read from: name, infos and numbers of each reader."""
        natives = [(name, Infos(files, number)) for name, files in self._files.items()]
        found = [(name, infos, infos.numbers()) for name, infos in natives]
        return found + [(node.name, *given[node.name][0]) for node in self._own if node.name in given]

    def _raise(self, error, given):
        """Raises what a batch failed with, in the words of the reader that failed."""
        own = next((one for one in given if isinstance(one, BaseException)), None)
        if own is not None:
            raise own
        if isinstance(error, library.GessoError) and (node := self._reader_of(error.text)) is not None:
            raise failed(node, RuntimeError(error.text.reason)) from error
        raise error

    def _reader_of(self, text):
        """The reader that an error of the library names."""
        return next((node for node in self._readers if node.name == text.source), None)

    def _raise_unread(self, errors):
        """A file that cannot be read is an error of the batch, whatever becomes of samples that cannot be computed."""
        for _, text in sorted(errors.items()):
            node = self._reader_of(text)
            if node is not None:
                raise failed(node, unread(text))

    def skip(self, state):
        # The stream was opened where it goes on.
        for node in self._own:
            node.operator.skip(node, state["batches"], self._batch_size, state["readers"].get(node.name))

    def check_restart(self, batches):
        if self._natives and self._one_left(batches) is None:
            names = ", ".join(f"`{node.name}`" for node in self._natives)
            raise RuntimeError(
                f"the readers {names}, whose epochs differ, were restarted before and cannot be restarted again: make "
                "the pipeline with `prefetch_queue_depth=1`, or anew from its `checkpoint()`"
            )

    def _one_left(self, batches):
        """What the library is told of all ends in the middle of epochs, the last one behind so many batches."""
        metas = self._engine.reader_meta()
        own = [metas[node.name] for node in self._natives]
        return epoch_starts.one_left(own, self._batch_size, [*self._left, batches - sum(self._left)])

    def restart(self, place):
        batches = place["batches"]
        self._engine.restart(batches, self._one_left(batches) or 0, place["branch_samples"])
        self._begun = batches
        self._left.append(batches - sum(self._left))
        for node in self._own:
            node.operator.restart(node, batches, self._batch_size)
        # Batches of before keep theirs.
        self._files = {node.name: self._files_of(node, first=batches, left=list(self._left)) for node in self._natives}

    def reader_meta(self):
        found = self._engine.reader_meta() if self._natives else {}
        return {node.name: found.get(node.name) or node.operator.meta(node) for node in self._readers}

    def reader_history(self, batches):
        natives = {node.name: self._history_of(node, batches) for node in self._natives}
        own = {node.name: node.operator.history(node, batches, self._batch_size) for node in self._own}
        return natives | own

    def _history_of(self, node, batches):
        """What `Reader.history` gives, of a reader of the library."""
        now = [node.values_of("num_shards", 1), self._batch_size]
        return [*([*now, count, 1] for count in self._left), [*now, batches - sum(self._left)]]

    def reader_left(self):
        # For the library's readers there are none.
        return {node.name: None for node in self._natives} | {node.name: node.operator.left(node) for node in self._own}
