"""The part of `Pipeline` that runs: batches in, batches out, epochs. What a batch is made of is in `runner`."""

import random
import threading
from collections import deque
from concurrent.futures import Future

from .._callbacks.sources import warn_unused
from .._native import library
from .._threads.interrupts import held, let
from ..types import PipelineAPIType
from . import checkpoint, file_graph, runner
from .epochs import ends
from .gathering import Gathering
from .inspection import Asking
from .loading import Loading

_NO_INPUTS = (
    "`run(name=data)` needs a pipeline with `prefetch_queue_depth=1` or `exec_pipelined=False`: "
    "batches cannot be prepared ahead of data that comes with the call."
)


class Running(Asking, Loading, Gathering):
    """Running a pipeline."""

    def _start_running(self):
        self._execution = None
        self._description = None
        self._built = False
        self._groups = []
        self._workers = None
        self._fed = {}
        self._last_fed = {}
        self._facts = {}
        self._waiting = deque()
        self._results = deque()
        # Threads that share the pipeline change one thing after the other, and wait for batches without it.
        self._lock = threading.RLock()
        self._gathered, self._interrupted = {}, None
        self._is_owed = False
        self._first_iter, self._last_iter = True, False
        self._epoch_idx = 0
        self._consumer_iter = self._consumer_epoch_idx = 0
        self._batches_to_consume = 0
        self._consumed = 0
        self._iterator_data = None
        self._run_seed = None
        self._api_type, self._skip_api_check = None, False
        self.is_restored = False
        self._is_restored_from_checkpoint = False
        self._shared = None
        self.errors = {}
        # Which samples of the last batch are not in it.
        self._left_out = ()
        self._epochs = self._epoch_end = None
        # Batches before those of `_epochs`.
        self._epochs_begin = 0

    # --- building

    def _collect_sources(self):
        groups = []
        for node in self._operators:
            group = getattr(node, "group_of_sources", None)
            if group is not None and group.callback is not None and group not in groups:
                groups.append(group)
        parallel = [group for group in groups if group.parallel]
        if parallel and (not isinstance(self._py_num_workers, int) or self._py_num_workers <= 0):
            raise RuntimeError(
                f"an external source has `parallel=True`, and `py_num_workers` is {self._py_num_workers}. Give the pipeline at least one worker, or "
                "leave `parallel` out."
            )
        self._groups = groups
        if self._enable_checkpointing:
            checkpoint.warn_of_sources(self)
        used = {id(node) for node in self._operators}
        for group in groups:
            unused = group.skip_unused(lambda node: id(node) in used)
            if unused:
                warn_unused(group, unused)

    def start_py_workers(self):
        """Starts the worker processes of parallel sources. Call it before anything that does not survive a fork, such
        as CUDA."""
        if self._description is None:
            self._build_graph()
        if self._workers is None and any(group.parallel for group in self._groups):
            from .._workers.pool import start

            self._workers = start(self)

    def build(self):
        """Makes all that is needed to run. Called by what needs it."""
        if self._built:
            return self._execution.process.check("The pipeline")
        # Going on from a saved state may take long.
        with self._lock, let():
            self._build()

    def _build(self):
        if self._built:
            self._execution.process.check("The pipeline")
            return
        if self._num_threads is not None and self._num_threads < 1:
            raise ValueError("`num_threads` is below 1: such a pipeline can be serialized, not run")
        state = self._saved_state()
        if self._description is None:
            self._build_graph()
            if self._max_batch_size is None or self._max_batch_size < 1:
                raise RuntimeError(f"The `batch_size` of the pipeline must be at least 1, got {self._max_batch_size}.")
            self.start_py_workers()
            self._declared_outputs()
            self._execution = runner.of_graph(self, state)
        elif file_graph.needs_graph(self._description):
            self._operators, self._graph_outputs = file_graph.graph(self, self._description, self._serialized)
            self._take_declared(self._description["outputs"])
            self._execution = runner.of_graph(self, state)
        else:
            self._execution = runner.of_file(self, self._serialized)
        self._built = True
        if state is not None:
            checkpoint.restore(self, state)

    def _saved_state(self):
        """The state to begin with, or None. Where states are saved, a seed is: without one of the author's, a random
        one."""
        state = checkpoint.read(self._checkpoint) if self._checkpoint is not None else None
        self._run_seed = self._seed
        if state is not None:
            self._run_seed = state["seed"]
        elif self._seed is None and self._enable_checkpointing:
            self._run_seed = random.getrandbits(31)
        return state

    # --- running

    def _prepares_ahead(self):
        """Whether batches are made in the background before they are asked for."""
        return self._exec_async and self._exec_pipelined and self._queue_depth() > 1

    def _queue_depth(self):
        return max(self._cpu_queue_size, self._gpu_queue_size) if self._exec_separated else self._cpu_queue_size

    def _scope(self, api_type):
        if not self._skip_api_check:
            if self._api_type is None:
                self._api_type = api_type
            if api_type != self._api_type:
                raise RuntimeError(
                    f"Mixing pipeline API type. Currently used: {self._api_type}, but trying to use {api_type}"
                )
        return _Unchecked(self)

    _check_api_type_scope = _scope

    def enable_api_check(self, enable):
        """Whether `run`, `schedule_run` and iterators may not be mixed."""
        self._skip_api_check = not enable

    def _one_batch(self, is_ahead=True):
        """Begins one batch, in the caller's own thread unless `is_ahead`; raises StopIteration at the end of an
        epoch."""
        taken, self._interrupted = self._interrupted, None
        if taken is None:
            self._gather()
            if any(declared["blocking"] for declared in self._execution.inputs.values()) and (
                self._waiting or not self._is_fed()
            ):
                self._waiting.append(Future())
                return self._add(self._waiting[-1])
            try:
                taken = self._take_fed()
            except RuntimeError as error:
                return self._add(runner.failed(error))
        future = self._execution.submit(taken, is_ahead and self._exec_async and self._exec_pipelined)
        if future.done() and isinstance(future.exception(), KeyboardInterrupt):
            # In a function of the user's. The batch is made anew the next time.
            self._interrupted = taken
            raise future.exception()
        self._add(future)

    def _add(self, future):
        self._batches_to_consume += 1
        self._results.append(future)

    def schedule_run(self):
        """Begins the next batch; at first, as many as are prepared ahead. `outputs` or `share_outputs` waits for it."""
        self._schedule()

    def _schedule(self, is_ahead=True):
        with self._lock, held(), self._scope(PipelineAPIType.SCHEDULED):
            self.build()
            self._execution.check_outside()
            count = self._queue_depth() if self._first_iter and self._exec_pipelined else 1
            if self._first_iter and self._workers is not None:
                self._workers.prefetch(self._groups, self._max_batch_size, self._epoch_idx)
            for _ in range(count):
                if self._last_iter:
                    return
                self._first_iter = False
                try:
                    self._one_batch(is_ahead)
                except StopIteration:
                    self._last_iter = True

    def _outputs(self, prepare):
        """The outputs of the oldest batch that was begun, once `prepare` was called. After a Ctrl-C the batch is there
        for who asks next."""
        # The library is called by other threads.
        library.check_interrupt()
        future, given = None, False
        try:
            with held():
                with self._lock:
                    prepare()
                    self._consumer_iter += 1
                    if self._batches_to_consume == 0 or not self._results:
                        raise StopIteration
                    self._batches_to_consume -= 1
                    future = self._results.popleft()
                if not future.done():
                    with let():
                        future.exception()
                outputs, self.errors = future.result()
                self._left_out = self.errors.keys() if self._on_error == "skip" else ()
                with self._lock:
                    self._consumed += 1
                    given = True
                return outputs
        except KeyboardInterrupt as interrupt:
            if future is not None and not (future.done() and future.exception() is interrupt):
                self._put_back(future, given)
            raise

    def _put_back(self, future, given):
        with self._lock:
            self._consumer_iter -= 1
            self._consumed -= given
            self._batches_to_consume += 1
            self._results.appendleft(future)
            self._is_owed = self._api_type is PipelineAPIType.BASIC

    def outputs(self, cuda_stream=None):
        """The outputs of the oldest batch that was begun, a tuple; StopIteration when the epoch is over."""
        if cuda_stream is not None:
            self._require_exec_dynamic("outputs that are not waited for need ")
        return self._outputs(self._begin_asking)

    def _begin_asking(self):
        with self._scope(PipelineAPIType.SCHEDULED):
            self.build()

    def share_outputs(self, cuda_stream=None):
        """As `outputs`; the memory is the pipeline's until `release_outputs`."""
        return self.outputs(cuda_stream)

    def release_outputs(self):
        """Gives back what `share_outputs` gave."""
        with self._lock:
            self._begin_asking()

    def run(self, cuda_stream=None, /, **pipeline_inputs):
        """Runs one batch and returns its outputs. Keyword arguments feed inputs by name; that needs
        `prefetch_queue_depth=1`."""
        if pipeline_inputs and not self._can_feed_by_name():
            raise RuntimeError(_NO_INPUTS)
        if cuda_stream is not None:
            self._require_exec_dynamic("outputs that are not waited for need ")
        return self._outputs(lambda: self._begin_run(pipeline_inputs))

    def _begin_run(self, pipeline_inputs):
        self.build()
        self._execution.check_outside()
        if pipeline_inputs and (self._is_owed or self._interrupted):
            # What nobody took was made of other data.
            self._interrupted = None
            if self._is_owed:
                self._batches_to_consume -= 1
                self._results.popleft()
                self._is_owed = False
        for name, value in pipeline_inputs.items():
            self.feed_input(name, value)
        with self._scope(PipelineAPIType.BASIC):
            if not self._is_owed:
                # Whoever waits at once for the only batch needs no other thread.
                self._schedule(is_ahead=self._queue_depth() > 1 or bool(self._results))
            self._is_owed = False

    def _can_feed_by_name(self):
        if not self._exec_pipelined:
            return True
        if self._exec_separated:
            return self._cpu_queue_size <= 1 and self._gpu_queue_size <= 1
        return self._prefetch_queue_depth <= 1

    def __iter__(self):
        """Batches until the epoch ends: that of the sources, or that of the readers. Then the pipeline is reset, and
        the next loop is the next epoch."""
        self.build()
        end = self._end_of_epoch()
        while end is None or self._consumed < end:
            try:
                outputs = self.run()
            except StopIteration:
                self.reset()
                return
            yield outputs

    def _end_of_epoch(self):
        """How many batches there are in all when the epoch of the readers ends; None without readers."""
        if self._epochs is None:
            metas = self._execution.reader_meta()
            if not metas:
                return None
            lefts = self._execution.reader_left()
            self._epochs = ends(list(metas.values()), [lefts.get(name) for name in metas], self._max_batch_size)
            if any(lefts.values()):
                self._epochs_begin = self._consumed
            self._epoch_end = self._epochs_begin + next(self._epochs)
        while self._epoch_end <= self._consumed:
            self._epoch_end = self._epochs_begin + next(self._epochs)
        return self._epoch_end

    def empty(self):
        """Whether no batch is under way."""
        return self._batches_to_consume == 0

    def reset(self):
        """Begins the next epoch, if one has ended."""
        with self._lock, held():
            self._reset()

    def _reset(self):
        if not self._last_iter:
            return
        self._first_iter, self._last_iter = True, False
        self._epoch_idx += 1
        if self._consumer_iter > 0:
            self._consumer_epoch_idx += 1
            self._consumer_iter = 0
        for group in self._groups:
            group.reset()
        if self._workers is not None:
            self._workers.reset(self._groups)

    def restart(self):
        """Begins the next epoch of the readers at once, in the middle of one. Batches that were prepared are thrown
        away."""
        self.build()
        checkpoint.next_epoch(self)


class _Unchecked:
    """Inside of it the kinds of running may be mixed."""

    def __init__(self, pipeline):
        self._pipeline = pipeline

    def __enter__(self):
        self._before = self._pipeline._skip_api_check
        self._pipeline._skip_api_check = True

    def __exit__(self, *_):
        self._pipeline._skip_api_check = self._before
