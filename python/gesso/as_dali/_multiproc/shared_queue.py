"""`nvidia.dali._multiproc.shared_queue`: a queue of records between processes."""

import struct

from ..._workers.shared import Chunk
from .messages import ShmMessageDesc

# At the beginning of the memory: where the oldest record is, how many there are, whether the queue is closed.
_HEAD = "=QQQ"


class ShmQueue:
    """At most `capacity` records, in memory that processes share. A process that was started anew has to `open_shm`
    first."""

    def __init__(self, mp, capacity, kind=ShmMessageDesc):
        self.capacity = capacity
        self._kind = kind
        self._changed = mp.Condition()
        self._first = struct.calcsize(_HEAD)
        self.shm = Chunk.create(self._first + capacity * kind.size())
        self._set(0, 0, False)

    def __getstate__(self):
        return {**self.__dict__, "shm": None}

    def open_shm(self, handle):
        """Takes the memory, of which `handle` is the file descriptor."""
        self.shm = Chunk(handle, self._first + self.capacity * self._kind.size())

    def _set(self, oldest, count, is_closed):
        self.shm.bytes()[: self._first] = memoryview(struct.pack(_HEAD, oldest, count, is_closed))

    def _head(self):
        return struct.unpack(_HEAD, self.shm.bytes()[: self._first])

    def _place(self, number):
        begin = self._first + number % self.capacity * self._kind.size()
        return self.shm.bytes()[begin : begin + self._kind.size()]

    def put(self, records):
        """Adds records; an error if there is no place for all of them. None is added to a queue that is closed."""
        packed = [record.pack() for record in records]
        with self._changed:
            oldest, count, is_closed = self._head()
            if is_closed:
                return None
            if count + len(packed) > self.capacity:
                raise RuntimeError(
                    f"The queue is full: it holds {count} of at most {self.capacity} records, and {len(packed)} should be added."
                )
            for i, data in enumerate(packed):
                self._place(oldest + count + i)[:] = memoryview(data)
            self._set(oldest, count + len(packed), False)
            self._changed.notify()
            return len(packed)

    def get(self, num_samples=1):
        """The oldest records, at most `num_samples` of them (None: all), as soon as there is one; None when the queue
        is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._head()[1] or self._head()[2])
            oldest, count, is_closed = self._head()
            if is_closed:
                return None
            taken = count if num_samples is None else min(count, num_samples)
            records = [self._kind.unpack(self._place(oldest + i).tobytes()) for i in range(taken)]
            self._set((oldest + taken) % self.capacity, count - taken, False)
            if count > taken:
                self._changed.notify()
            return records

    def close(self):
        """Ends the waiting of all processes; what is left is not given any more."""
        with self._changed:
            oldest, count, _ = self._head()
            self._set(oldest, count, True)
            self._changed.notify_all()
