"""`DebugPipeline`: what `pipeline_def(debug=True)` makes."""

import functools
import weakref
from dataclasses import replace

from .. import _context
from .._run.execution import Begun
from .._run.runner import Runner
from .._run.runs import Run
from .._threads.interrupts import let
from ..pipeline import Pipeline
from .calls import Calls

_ONE_BY_ONE = {"prefetch_queue_depth": 1, "exec_async": False, "exec_pipelined": False, "exec_dynamic": False}
_KEPT = ("batch_size", "num_threads", "device_id", "on_error", "gpu_multiprocessors", "deterministic", "formats")
_NO_GRAPH = "a pipeline in debug mode has no graph: each run of its definition may be another one. Leave out `debug=True` to {}."


class _Readers(Run):
    """What `meta` says of readers; their operators run one by one."""

    def __init__(self, meta):
        self._meta = meta

    def reader_meta(self):
        return self._meta()

    def reader_left(self):
        return {}


class _Execution:
    """What `Pipeline` asks of something that runs."""

    inputs: dict = {}

    def __init__(self, meta):
        self.run, self.outputs, self.process = _Readers(meta), (), self

    def check(self, what):
        """Nothing: each operator looks whether its process was forked."""

    def check_outside(self):
        """Nothing: batches are made in the caller's thread."""


class _AtOnce(Runner):
    """Runs a definition for each batch, in the thread that asks for it."""

    def __init__(self, settings, definition):
        super().__init__(replace(settings, **_ONE_BY_ONE))
        own = {name: getattr(settings, name) for name in _KEPT}
        self.calls = Calls({**own, **_ONE_BY_ONE}, settings.seed)
        self._definition, self._begin_conditions = definition, None
        self._user = lambda: None

    def define(self, pipeline, define_graph=None):
        raise RuntimeError(_NO_GRAPH.format("serialize or draw it"))

    def load(self, serialized, given):
        raise RuntimeError(_NO_GRAPH.format("load a file"))

    def checkpoint(self, iterator_data=""):
        raise RuntimeError(_NO_GRAPH.format("save checkpoints"))

    def restart(self):
        raise RuntimeError(_NO_GRAPH.format("begin an epoch of the readers in the middle of one"))

    def start_workers(self, pipeline):
        """Nothing: sources are called here."""

    def build(self, pipeline):
        self._user = weakref.ref(pipeline)
        if self.execution is None:
            self.execution = _Execution(self._reader_meta)

    def feed(self, pipeline, edge, data, layout):
        self.calls.feed(edge if isinstance(edge, str) else edge.name, data, layout)

    def _reader_meta(self):
        """Readers are known once the definition ran: the batch of that run is the next one's."""
        if not self.calls:
            self.epochs.is_first, self._is_owed = False, True
            self._begin_batch(self._user(), is_ahead=False)
        return self.calls.reader_meta()

    def _begin_batch(self, pipeline, is_ahead):
        pipeline.iter_setup()
        outcome = Begun()
        outcome.taken.has_begun = True
        _context.push(pipeline)
        try:
            with let():
                outputs = self.calls.run(functools.partial(self._definition, pipeline))
            self.execution.outputs = outputs
            outcome.set_result((outputs, {}))
        except (StopIteration, KeyboardInterrupt):
            raise
        except Exception as error:
            outcome.set_exception(error)
        finally:
            _context.pop()
        self.begun.append(outcome)

    def reset(self):
        if self.epochs.begin_next():
            self.calls.reset()


class DebugPipeline(Pipeline):
    """A pipeline whose definition, a function, runs for each batch. `definition` gets the pipeline."""

    def __init__(self, definition, **settings):
        super().__init__(**settings)
        self.runner = _AtOnce(self.runner.settings, definition)

    def __enter__(self):
        raise RuntimeError(
            "A pipeline in debug mode is made by `pipeline_def`: it has a definition, and cannot be entered."
        )
