"""The part of `Pipeline` that takes data: what inputs are fed, and what sources give for the next batch."""

from collections import deque

from .. import _context
from .._tensors.feeding import is_constant, to_batch
from .._threads.interrupts import held, let
from ..data_node import _check
from . import runner
from .input_checks import check_declared, check_same

# In place of the data of a source: its epoch is over.
_END = ()


def _videos(declared):
    """What makes batches of the videos that an input was fed, or None."""
    node = declared.get("videos")
    return getattr(node, "videos", node)


def _has_more(declared):
    videos = _videos(declared)
    return videos is not None and videos.has_more()


class Gathering:
    """Gathering the inputs of batches."""

    def input_feed_count(self, input_name):
        """Batches that the input wants before the first run."""
        self.build()
        return self._queue_depth() if self._exec_pipelined else 1

    def feed_input(self, data_node, data, layout=None, cuda_stream=None, use_copy_kernel=False):
        """Gives an input its next batch: a list of tensors, or an array whose first dimension counts samples."""
        with self._lock, held():
            self._feed_named(data_node, data, layout)

    def _feed_named(self, data_node, data, layout):
        self.build()
        if isinstance(data_node, str):
            name = data_node
        else:
            _check(data_node)
            name = data_node.name
        if self._operators is not None:
            node = next((node for node in self._operators if node.name == name), None)
            group = getattr(node, "group_of_sources", None)
            if group is not None and group.callback is not None:
                message = (
                    f"the external source `{name}` has a `source`, which feeds it; `feed_input` is for those without"
                )
                raise RuntimeError(_context.add_words(message))
        self._feed_input(name, data, layout)

    def _feed_input(self, name, data, layout=None, copy=True):
        declared = self._execution.inputs.get(name)
        if declared is None:
            raise KeyError(
                f'Could not find an input operator with name "{name}". The pipeline has {sorted(self._execution.inputs)}.'
            )
        if "videos" in declared:
            copy = not (declared["no_copy"] or is_constant(data))
        batch = to_batch(data, self._max_batch_size, layout, copy)
        check_declared(name, declared, batch)
        if "videos" in declared:
            _videos(declared).feed(batch)
            return self._start_waiting()
        check_same(self._facts.get(name), batch)
        self._facts[name] = batch.facts()
        self._fed.setdefault(name, deque()).append(batch)
        self._start_waiting()

    def iter_setup(self):
        """Called before each batch, for subclasses that feed inputs there. May raise StopIteration."""

    def _gather(self):
        """Runs sources and takes what was fed; raises StopIteration at the end of an epoch. What was gathered before a
        Ctrl-C is there the next time."""
        try:
            # Those in workers first.
            for group in sorted(self._groups, key=lambda group: not group.parallel):
                if group not in self._gathered:
                    self._gathered[group] = self._next_of(group)
            if _END in self._gathered.values():
                raise StopIteration
            with let():
                self.iter_setup()
        except Exception:
            self._gathered = {}
            raise
        gathered, self._gathered = self._gathered, {}
        for group, (data,) in gathered.items():
            copy = not (group.no_copy or group.parallel)
            for node, part in group.split(data, self._max_batch_size):
                self._feed_input(node.name, part, node.layout, copy)

    def _next_of(self, group):
        try:
            if group.parallel:
                return (self._workers.receive(group, self._max_batch_size, self._epoch_idx),)
            return (group.next(self._max_batch_size, self._epoch_idx),)
        except StopIteration:
            return _END

    def _start_waiting(self):
        """Begins batches that waited for data, in order."""
        while self._waiting and self._is_fed():
            future = self._waiting.popleft()
            running = self._execution.submit(self._take_fed(), self._exec_async)
            running.add_done_callback(lambda done, waiting=future: runner.pass_on(done, waiting))

    def _is_fed(self):
        inputs = self._execution.inputs
        return all(
            self._fed.get(name) or declared["repeat_last"] and name in self._last_fed or _has_more(declared)
            for name, declared in inputs.items()
        )

    def _take_fed(self):
        """The next batch of every input."""
        taken = {}
        for name, declared in self._execution.inputs.items():
            if "videos" in declared:
                continue
            queue = self._fed.get(name)
            if queue:
                taken[name] = self._last_fed[name] = queue.popleft()
            elif declared["repeat_last"] and name in self._last_fed:
                taken[name] = self._last_fed[name]
            else:
                raise RuntimeError(
                    f"There is no batch for the input `{name}`: feed it before each run, `{self._queue_depth()}` times before the first "
                    "one, as the pipeline prepares batches ahead. (Attempted to peek the data batch that doesn't exist.)"
                )
        return taken
