"""`Runner`: batches in, batches out, epochs. What makes one batch is in `execution`."""

import random
import threading
from collections import deque
from collections.abc import Collection
from dataclasses import replace

from .. import _context
from .._native import library
from .._threads.interrupts import held, let
from ..data_node import _check
from ..types import PipelineAPIType
from . import checkpoint, epochs, execution
from .definition import Definition
from .epochs import Taken
from .external_sources import Sources, is_itself
from .feeds import Feeds

_NO_INPUTS = (
    "`run(name=data)` needs a pipeline with `prefetch_queue_depth=1` or `exec_pipelined=False`: "
    "batches cannot be prepared ahead of data that comes with the call."
)

_SAVES_NOTHING = "the pipeline cannot {}: it was made without `enable_checkpointing=True`"


class _Scope:
    """What `Runner.scope` gives."""

    __slots__ = ("_runner", "_api_type", "_before")

    def __init__(self, runner, api_type):
        self._runner, self._api_type = runner, api_type

    def __enter__(self):
        self._before = self._runner.is_unchecked
        if not self._before and self._runner.way is not self._api_type:
            self._runner.check_way(self._api_type)
        self._runner.is_unchecked = True

    def __exit__(self, *_):
        self._runner.is_unchecked = self._before


class Runner:
    """Runs a pipeline. It holds the parts of one, which do not know each other, and moves what goes from one to
    another.

    It must not keep the pipeline, which is handed to it where what the user wrote is called (`define_graph`,
    `iter_setup`): a pipeline that nobody has is gone at once, and its worker processes with it."""

    def __init__(self, settings):
        self.settings, self.definition = settings, Definition()
        # What operators come to that run when they are called, in debug mode.
        self.calls = None
        self.epochs, self.feeds, self.sources = epochs.Epochs(), Feeds(), Sources()
        # What runs a batch, once the pipeline is built.
        self.execution = None
        # Errors of samples of the last batch, and which samples are not in it.
        self.errors = {}
        self.left_out: Collection = ()
        # Threads that share the pipeline change one thing after the other, and wait for batches without it.
        self._lock = threading.RLock()
        # The outcomes of batches that were begun and not taken.
        self.begun = deque()
        # What a batch was to be made of that a Ctrl-C stopped; whether nobody took what `run` had begun.
        self._interrupted, self._is_owed = None, False
        # Whether what is fed is taken before the call that feeds it returns.
        self._feeds_at_once = False
        # Whether batches are made one by one, of nothing but what is fed.
        self._is_plain = False
        # How it was run first, and whether it may be run in another way now.
        self.way, self.is_unchecked = None, False

    # --- building

    def define(self, pipeline, define_graph=None):
        """Makes the graph, if the pipeline is none of a file."""
        if self.definition.loaded is None and self.definition.operators is None:
            self.definition.build(pipeline, self.settings, define_graph)
            self.sources.find(self.definition.operators, self.settings)

    def load(self, serialized, given):
        """Becomes what a file says; arguments of `Pipeline` that are `given` replace that."""
        given = self.settings.checked_for_file(given)
        self.definition.load(serialized, self.settings.changed_fields(given))
        self.settings = self.settings.of_file(self.definition.loaded, given)

    def start_workers(self, pipeline):
        """Starts the worker processes of parallel sources."""
        self.define(pipeline)
        self.sources.start_workers(pipeline, self.settings)

    def build(self, pipeline):
        """Makes all that is needed to run."""
        if self.execution is not None:
            return self.execution.process.check("The pipeline")
        # Going on from a saved state may take long.
        with self._lock, let():
            if self.execution is None:
                self._build(pipeline)

    def _need(self, pipeline):
        """Lets the pipeline build itself, if that was not done yet."""
        if self.execution is None:
            pipeline.build()
        else:
            self.execution.process.check("The pipeline")

    def _build(self, pipeline):
        settings = self.settings
        if settings.num_threads is not None and settings.num_threads < 1:
            raise ValueError("`num_threads` is below 1: such a pipeline can be serialized, not run")
        state = self._saved_state()
        if self.definition.loaded is None:
            self.define(pipeline)
            if settings.batch_size is None or settings.batch_size < 1:
                raise RuntimeError(f"The `batch_size` of the pipeline must be at least 1, got {settings.batch_size}.")
            self.start_workers(pipeline)
        else:
            self.definition.build_of_file(pipeline)
            outputs = self.definition.loaded["outputs"]
            dtypes, ndims = [execution.dtype_named(one["dtype"]) for one in outputs], [one["ndim"] for one in outputs]
            self.settings = replace(settings, output_dtype=dtypes, output_ndim=ndims)
        built = execution.of_graph(self, state)
        self.feeds.declare(built.inputs, built.run.keeps_nothing)
        self._is_plain = self.settings.queue_depth == 1 and self.feeds.can_pass and not self.sources.groups
        self.execution = built
        if state is not None:
            self.epochs.restore(state)
            self.sources.skip(state["iter"], settings.batch_size)
            built.run.skip(state)

    def _saved_state(self):
        """The state to begin with, or None. Where states are saved, a seed is: without one of the author's, a random
        one."""
        saved, seed = self.settings.checkpoint, self.settings.seed
        if saved is not None and not self.settings.enable_checkpointing:
            raise RuntimeError(_context.add_words(_SAVES_NOTHING.format("go on from a checkpoint")))
        state = checkpoint.read(saved) if saved is not None else None
        if state is not None:
            seed = state["seed"]
        elif seed is None and self.settings.enable_checkpointing:
            seed = random.getrandbits(31)
        self.epochs.seed = seed
        return state

    # --- how it is run

    def scope(self, api_type):
        """Raises if the pipeline was run in another way before. Inside of it the ways may be mixed."""
        return _Scope(self, api_type)

    def check_way(self, api_type):
        """Raises if the pipeline was run in another way before."""
        if self.way is None:
            self.way = api_type
        if api_type is not self.way:
            raise RuntimeError(f"Mixing pipeline API type. Currently used: {self.way}, but trying to use {api_type}")

    # --- data in

    def feed(self, pipeline, edge, data, layout):
        """Gives an input, by its edge or name, its next batch."""
        with self._lock, held():
            self._need(pipeline)
            if not isinstance(edge, str):
                _check(edge)
            name = edge if isinstance(edge, str) else edge.name
            if self.sources.groups and self.sources.feeds(name):
                message = (
                    f"the external source `{name}` has a `source`, which feeds it; `feed_input` is for those without"
                )
                raise RuntimeError(_context.add_words(message))
            self._feed(name, data, layout, at_once=self._feeds_at_once)

    def _feed(self, name, data, layout, copy=True, at_once=False):
        at_once = at_once and not self.feeds.waiting
        self.feeds.feed(name, data, self.settings.batch_size, layout, copy, at_once)
        # Batches that waited for data begin in order.
        while self.feeds.waiting and self.feeds.are_there():
            outcome = self.feeds.waiting.popleft()
            self.execution.submit(self.feeds.take(self.settings.queue_depth), self.settings.exec_async, outcome)

    # --- batches

    def _begin_batch(self, pipeline, is_ahead):
        """Begins one batch, in the caller's own thread unless `is_ahead`; raises StopIteration at the end of an
        epoch."""
        try:
            self._begin_next(pipeline, is_ahead and self.settings.runs_ahead)
        finally:
            self.feeds.keep_rest()

    def _begin_next(self, pipeline, is_ahead):
        settings = self.settings
        taken, self._interrupted = self._interrupted, None
        if taken is None:
            gathered = self.sources.gather(settings.batch_size, self.epochs.epoch_idx, pipeline.iter_setup)
            for node, data, copy in gathered:
                self._feed(node.name, data, node.layout, copy, at_once=not is_ahead)
            if self.feeds.must_wait():
                self.feeds.waiting.append(execution.Begun())
                return self.begun.append(self.feeds.waiting[-1])
            try:
                taken = self.feeds.take(settings.queue_depth)
            except RuntimeError as error:
                return self.begun.append(execution.failed(error))
        outcome = self.execution.submit(taken, is_ahead)
        if outcome.done() and isinstance(outcome.exception(), KeyboardInterrupt):
            # In a function of the user's. The batch is made anew the next time.
            self._interrupted = taken
            raise outcome.exception()
        self.begun.append(outcome)

    def begin(self, pipeline, inputs):
        """Begins one batch of these inputs, whatever the pipeline prepares ahead; `outputs` gives what it makes."""
        with self._lock, held(), self.scope(PipelineAPIType.SCHEDULED):
            self._need(pipeline)
            self.epochs.is_first = False
            with self.feeds.together():
                for name, data in inputs.items():
                    self._feed(name, data, None)
            self._begin_batch(pipeline, is_ahead=True)

    def schedule(self, pipeline):
        """Begins the next batch; at first, as many as are prepared ahead."""
        with self._lock, held(), self.scope(PipelineAPIType.SCHEDULED):
            self._need(pipeline)
            self.execution.check_outside()
            self._begin_batches(pipeline, is_ahead=True)

    def _begin_batches(self, pipeline, is_ahead):
        epochs, settings = self.epochs, self.settings
        count = settings.queue_depth if epochs.is_first and settings.exec_pipelined else 1
        if epochs.is_first:
            self.sources.prefetch(settings.batch_size, epochs.epoch_idx)
        for _ in range(count):
            if epochs.is_last:
                return
            epochs.is_first = False
            try:
                self._begin_batch(pipeline, is_ahead)
            except StopIteration:
                epochs.is_last = True

    def outputs(self, pipeline):
        """The outputs of the oldest batch that was begun."""
        return self._outputs(self.check_scheduled, pipeline)

    def check_scheduled(self, pipeline):
        """Raises if the pipeline is run in another way than by `schedule_run`."""
        with self._lock, self.scope(PipelineAPIType.SCHEDULED):
            self._need(pipeline)

    def run(self, pipeline, inputs):
        """Begins a batch and gives its outputs, or those of one that was begun before."""
        if inputs and self.settings.exec_pipelined and self.settings.queue_depth > 1:
            raise RuntimeError(_NO_INPUTS)
        if inputs and self._is_plain:
            library.check_interrupt()
            made = None
            try:
                with held(), self._lock:
                    if self._are_all(pipeline, inputs):
                        made = self._run_of(inputs)
                        return made[0]
            except BaseException:
                # The batch was made: this is what a handler of Ctrl-C raises.
                if made is not None:
                    outputs, errors, taken = made
                    outcome = execution.Begun()
                    outcome.taken = taken
                    outcome.set_result((outputs, errors))
                    self._put_back(outcome)
                raise
        return self._outputs(self._begin_run, pipeline, inputs)

    def _are_all(self, pipeline, inputs):
        """Whether the next batch has to do with nothing but these inputs: nothing was fed or begun before, nothing of
        the user's is called."""
        return (
            not self.begun
            and not self._interrupted
            and not self.epochs.is_last
            and (self.way is PipelineAPIType.BASIC or self.is_unchecked)
            and self.feeds.are_just(inputs)
            and is_itself(pipeline.iter_setup, "does_nothing")
            and is_itself(pipeline.feed_input, "only_feeds")
        )

    def _run_of(self, inputs):
        """What `_outputs` comes to for such a batch, errors of its samples, and what it takes: a small one takes no
        longer than to go through all of that."""
        self.execution.process.check("The pipeline")
        fed, taken = self.feeds.passed(inputs, self.settings.batch_size), Taken()
        self.epochs.is_first = False
        self.epochs.consumer_iter += 1
        try:
            outputs, self.errors = self.execution.make(fed, taken)
        finally:
            self.epochs.take(taken)
        self.left_out = self.errors.keys() if self.settings.on_error == "skip" else ()
        return outputs, self.errors, taken

    def _begin_run(self, pipeline, inputs):
        self._need(pipeline)
        self.execution.check_outside()
        if inputs and (self._is_owed or self._interrupted):
            # What nobody took was made of other data.
            self._interrupted = None
            if self._is_owed:
                dropped = self.begun.popleft()
                dropped.exception()
                self.epochs.take(dropped.taken)
                self._is_owed = False
        # Whoever waits at once for the only batch needs no other thread.
        is_ahead = self.settings.queue_depth > 1 or bool(self.begun)
        try:
            if inputs:
                self._take_inputs(pipeline, inputs, is_ahead and self.settings.runs_ahead)
            with self.scope(PipelineAPIType.BASIC):
                if not self._is_owed:
                    self._begin_batches(pipeline, is_ahead)
                self._is_owed = False
        finally:
            self.feeds.keep_rest()

    def _take_inputs(self, pipeline, inputs, is_ahead):
        # What the user wrote and is called before the batch runs may change the data.
        self._feeds_at_once = not is_ahead and not self.sources.calls(pipeline.iter_setup)
        try:
            with self.feeds.together():
                for name, value in inputs.items():
                    pipeline.feed_input(name, value)
        finally:
            self._feeds_at_once = False

    def _outputs(self, prepare, *arguments):
        """The outputs of the oldest batch that was begun, once `prepare` was called. After a Ctrl-C the batch is there
        for who asks next."""
        # The library is called by other threads.
        library.check_interrupt()
        outcome = None
        try:
            with held():
                with self._lock:
                    prepare(*arguments)
                    self.epochs.consumer_iter += 1
                    if not self.begun:
                        raise StopIteration
                    outcome = self.begun.popleft()
                if not outcome.done():
                    with let():
                        outcome.exception()
                with self._lock:
                    self.epochs.take(outcome.taken)
                outputs, self.errors = outcome.result()
                self.left_out = self.errors.keys() if self.settings.on_error == "skip" else ()
                return outputs
        except BaseException as error:
            # The batch's own, or what a handler of Ctrl-C raises.
            if outcome is not None and not (outcome.done() and outcome.exception() is error):
                self._put_back(outcome)
            raise

    def _put_back(self, outcome):
        with self._lock:
            self.epochs.put_back(outcome.taken)
            self.begun.appendleft(outcome)
            self._is_owed = self.way is PipelineAPIType.BASIC

    # --- epochs

    def end_of_epoch(self):
        """Behind how many batches in all the epoch of the readers ends; None without readers."""
        run = self.execution.run
        return self.epochs.end(run.reader_meta, run.reader_left, self.settings.batch_size)

    def reset(self):
        """Begins the next epoch, if one has ended."""
        with self._lock, held():
            if self.epochs.begin_next():
                self.sources.reset()

    def restart(self):
        """Begins the next epoch of the readers in the middle of one; throws away what was prepared."""
        if not self.execution.run.reader_meta():
            raise RuntimeError("`restart` is for pipelines with readers.")
        if self.sources.groups or self.feeds:
            raise RuntimeError("A pipeline that is fed cannot be restarted: nobody would feed again what was prepared.")
        self.execution.run.check_restart(self.epochs.consumed)
        while self.begun:
            self.begun.popleft().exception()
        self._is_owed = False
        self.execution.run.restart(self.epochs.place())
        self.epochs.restart()

    def checkpoint(self, iterator_data=""):
        """Where it is, to go on from."""
        if not self.settings.enable_checkpointing:
            raise RuntimeError(_context.add_words(_SAVES_NOTHING.format("save a checkpoint")))
        return self.epochs.save(self.execution.run.reader_history(self.epochs.consumed), iterator_data)
