"""`Sources`: the functions that feed a pipeline, and their worker processes."""

from .. import _context
from .._authoring import call_site
from .._callbacks.sources import SourceKind, warn_unused
from .._threads.interrupts import let

# In place of the data of a source: its epoch is over.
_END = ()


def is_itself(method, mark):
    """Whether it is the method of `Pipeline` with this mark, and no other in its place. The mark is the function, as
    decorators copy marks."""
    function = getattr(method, "__func__", None)
    return function is not None and getattr(function, mark, None) is function


class Sources:
    """The external sources of a pipeline that have a function, in groups of one function each, and what they gave for
    the next batch.

    They are called in the thread that runs the pipeline, as in DALI, and not ahead by a thread of the library's, as
    readers are: a program sees how often each was called behind each run, and what a function raises is raised by the
    run that called it, whatever was begun before.

    It must not know what becomes of the data."""

    def __init__(self):
        self.groups, self.workers = [], None
        self._gathered = {}

    def find(self, operators, settings):
        """Finds them in a graph."""
        groups = []
        for node in operators:
            group = getattr(node, "group_of_sources", None)
            if group is not None and group.callback is not None and group not in groups:
                groups.append(group)
        workers = settings.py_num_workers
        if any(group.parallel for group in groups) and (not isinstance(workers, int) or workers <= 0):
            raise RuntimeError(
                _context.add_words(
                    f"an external source has `parallel=True`, and `py_num_workers` is {workers}. Give the pipeline at "
                    "least one worker, or leave `parallel` out."
                )
            )
        self.groups = groups
        if settings.enable_checkpointing:
            self._warn_of_checkpoints()
        used = {id(node) for node in operators}
        for group in groups:
            unused = group.skip_unused(lambda node: id(node) in used)
            if unused:
                warn_unused(group, unused)

    def _warn_of_checkpoints(self):
        """Says which sources cannot go back to where they were."""
        for group in self.groups:
            kind = group.source_desc.kind
            if kind is SourceKind.CALLABLE and group.source_desc.has_inputs:
                continue
            what = "parameterless callable" if kind is SourceKind.CALLABLE else kind
            message = (
                f"the checkpoint does not hold where the source of an external source is: with {what} as a 'source'. "
                "Who goes on from it must bring the source to that point, or it begins anew beside data that goes on"
            )
            call_site.warn(_context.add_words(message), Warning)

    def start_workers(self, pipeline, settings):
        """Starts the processes of parallel sources, which end with the pipeline."""
        parallel = [group for group in self.groups if group.parallel]
        if self.workers is None and parallel:
            from .._workers.pool import start

            self.workers = start(pipeline, parallel, settings)

    def prefetch(self, batch_size, epoch_idx):
        """Lets the workers begin an epoch."""
        if self.workers is not None:
            self.workers.prefetch(self.groups, batch_size, epoch_idx)

    def calls(self, iter_setup):
        """Whether something of the user's is called for a batch."""
        return bool(self.groups) or not is_itself(iter_setup, "does_nothing")

    def feeds(self, name):
        """Whether one of them feeds this input."""
        return any(node.name == name for group in self.groups for node in group.used)

    def gather(self, batch_size, epoch_idx, iter_setup):
        """(input, data, whether to copy it) of the next batch; raises StopIteration at the end of an epoch. What was
        gathered before a Ctrl-C is there the next time."""
        if not self.calls(iter_setup):
            return ()
        try:
            # Those in workers first.
            for group in sorted(self.groups, key=lambda group: not group.parallel):
                if group not in self._gathered:
                    self._gathered[group] = self._next_of(group, batch_size, epoch_idx)
            if _END in self._gathered.values():
                raise StopIteration
            if not is_itself(iter_setup, "does_nothing"):
                with let():
                    iter_setup()
        except Exception:
            self._gathered = {}
            raise
        gathered, self._gathered = self._gathered, {}
        return [
            (node, part, not (group.no_copy or group.parallel))
            for group, (data,) in gathered.items()
            for node, part in group.split(data, batch_size)
        ]

    def _next_of(self, group, batch_size, epoch_idx):
        try:
            if group.parallel:
                return (self.workers.receive(group, batch_size, epoch_idx),)
            return (group.next(batch_size, epoch_idx),)
        except StopIteration:
            return _END

    def skip(self, batches, batch_size):
        """Goes on behind so many batches of an epoch."""
        for group in self.groups:
            group.current_iter, group.current_sample = batches, batches * batch_size

    def reset(self):
        """Begins the next epoch."""
        for group in self.groups:
            group.reset()
        if self.workers is not None:
            self.workers.reset(self.groups)
