"""Which samples the batches of a reader of the library are of: the library says so of none."""

import threading

from .._readers import damage


class Files:
    """Which samples the batches of a reader are of, from number `first` on: found out by drawing their order again, if
    somebody asks. `size`: how many the library found; `left`: batches behind which the epoch was left in the middle,
    each time counted from the last time."""

    def __init__(self, node, size, restarts, batch_size, first=0, left=()):
        self._node, self._size, self._restarts, self._batch_size = (node, size, restarts, batch_size)
        self._first, self._left = first, left
        self._lock = threading.Lock()
        self._samples = self._order = None
        self._next = first

    def _begin(self):
        options = {name: value.value for name, value in self._node.values.items()}
        self._order, self._next = (self._node.operator.order(self._samples, options, self._restarts), self._first)
        for batches in self._left:
            for _ in range(batches):
                self._order.batch(self._batch_size)
            self._order.next_epoch()

    def name(self, index):
        """What the errors of a sample call it."""
        if hasattr(self._samples, "name"):
            return self._samples.name(index)
        try:
            _, info = self._read(index)
        except (RuntimeError, OSError):
            return ""
        return info[0] if isinstance(info, list) else info

    def _read(self, index):
        with damage.named(f"a sample of `{self._node.operator.display}`", but=(RuntimeError, OSError)):
            return self._samples.read(index)

    def of_batch(self, number):
        """The numbers of its samples."""
        with self._lock:
            if self._samples is None:
                self._samples = self._node.operator.begin(self._node)
            if self._samples.size != self._size:
                # Others came or went since: which file is which number nobody knows any more.
                return None
            if self._order is None or number < self._next:
                self._begin()
            while self._next < number:
                self._order.batch(self._batch_size)
                self._next += 1
            self._next += 1
            return self._order.batch(self._batch_size)


class Infos:
    """The path of each sample of a batch, and its number among those of its reader, found out when it is asked for."""

    def __init__(self, files, number):
        self._files, self._number, self._found = files, number, ()

    def __getitem__(self, index):
        numbers = self.numbers()
        return "" if numbers is None else self._files.name(numbers[index])

    def numbers(self):
        """The number of each sample, or None."""
        if self._found == ():
            self._found = self._files.of_batch(self._number)
        return self._found
