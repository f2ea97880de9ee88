"""What one `source` feeds: one input or several, batch after batch."""

from .._threads.interrupts import let
from ..types import BatchInfo, SampleInfo


class SourceGroup:
    """A source with the inputs that it feeds, and where it is in the epoch."""

    def __init__(self, callback, described, is_multioutput, options):
        self.callback = callback
        self.source_desc = described
        self.is_multioutput = is_multioutput
        self.nodes = []
        self.used = self.nodes
        self.batch = options["batch"]
        self.batch_info = options["batch_info"]
        self.parallel = options["parallel"]
        self.no_copy = bool(options["no_copy"])
        self.prefetch_queue_depth = options["prefetch_queue_depth"]
        self.accepts_arg = described is not None and described.has_inputs
        self.reset()

    def add(self, node):
        """Adds an input."""
        self.nodes.append(node)

    def reset(self):
        """Back to the beginning of an epoch."""
        self.current_iter = 0
        self.current_sample = 0

    def skip_unused(self, is_used):
        """Feeds only the inputs for which `is_used`; returns the positions of the others."""
        self.used = [node for node in self.nodes if is_used(node)]
        return [i for i, node in enumerate(self.nodes) if not is_used(node)]

    def argument(self, idx_in_batch, epoch, batch_size, lead=0):
        """What the source is called with, as a tuple; for the batch `lead` behind the next one."""
        if not self.accepts_arg:
            return ()
        iteration = self.current_iter + lead
        if idx_in_batch is not None:
            index = self.current_sample + idx_in_batch + batch_size * lead
            return (SampleInfo(index, idx_in_batch, iteration, epoch),)
        return (BatchInfo(iteration, epoch),) if self.batch_info else (iteration,)

    def advance(self, batch_size):
        """One batch further."""
        self.current_sample += batch_size
        self.current_iter += 1

    def next(self, batch_size, epoch):
        """What the source gives for the next batch; raises StopIteration at the end."""
        try:
            with let():
                if self.batch:
                    data = self.callback(*self.argument(None, epoch, batch_size))
                else:
                    data = [self.callback(*self.argument(i, epoch, batch_size)) for i in range(batch_size)]
        except StopIteration:
            self.reset()
            raise
        self.advance(batch_size)
        return data

    def split(self, data, batch_size):
        """(input, its part) for each input that is used."""
        if not self.is_multioutput:
            return [(self.used[0], data)] if self.used else []
        if self.batch:
            return [(node, data[node.output_index]) for node in self.used]
        return [(node, [data[i][node.output_index] for i in range(batch_size)]) for node in self.used]
