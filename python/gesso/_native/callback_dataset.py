"""A data set that the interpreter alone can read, as a source of a stream: the library asks for its batches ahead of
who takes them. Knows no graphs."""

from collections import deque


class CallbackDataset:
    """Batches that `read` makes: it is called with their number of samples, by a thread of the stream's, for one batch
    after the other, and gives a batch for each output."""

    def __init__(self, read):
        self.read, self._given = read, deque()
        # Who reads asks now and then: a stream that ends waits for the batch that is being read.
        self.is_wanted = True

    def note(self, given):
        """Notes what was given for the next batch: for each output where samples are from and their numbers, or the
        error that the batch fails with."""
        self._given.append(given)

    def taken(self):
        """What was noted for the batch that was taken from the stream."""
        return self._given.popleft() if self._given else []

    def forget(self):
        """Forgets batches that nobody will take."""
        self._given.clear()
