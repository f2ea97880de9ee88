"""Batches in memory that two processes share: a sender writes arrays into growing chunks, a receiver reads them where
they are."""

import mmap
import os
import pickle
import weakref
from collections import deque

import numpy as np

# Chunks are at least this large, so that small batches need no new ones.
MIN_CAPACITY = 1 << 20
# Where arrays begin: at multiples of a cache line.
_ALIGNMENT = 64


class Chunk:
    """Shared memory that has no name: whoever has its file descriptor, `handle`, can open it. It may grow, not
    shrink."""

    def __init__(self, handle, capacity):
        self.handle = handle
        self.capacity = capacity
        self._memory = mmap.mmap(handle, capacity)

    @classmethod
    def create(cls, capacity):
        """New memory of so many bytes."""
        handle = os.memfd_create("gesso", os.MFD_CLOEXEC)
        os.ftruncate(handle, capacity)
        return cls(handle, capacity)

    def grow(self, capacity):
        """Makes it larger; what was read of it before stays as it is."""
        if capacity > self.capacity:
            os.ftruncate(self.handle, capacity)
            self.follow(capacity)

    def follow(self, capacity):
        """Notes that the other process made it larger."""
        if capacity > self.capacity:
            self._memory, self.capacity = mmap.mmap(self.handle, capacity), capacity

    def bytes(self):
        """The memory as an array, which keeps it."""
        return np.frombuffer(self._memory, np.uint8)

    def close(self):
        """Gives up the descriptor; memory that is still read stays until then."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = self._memory = None


class Written:
    """What stands in a chunk: `header`, the value without the contents of its arrays, and the (offset, size) of
    each."""

    def __init__(self, header, places, size):
        self.header = header
        self.places = places
        self.size = size


def prepare(value):
    """(what will stand in a chunk of at least `size` bytes, the arrays' contents)"""
    buffers = []
    header = pickle.dumps(value, 5, buffer_callback=buffers.append)
    contents = [np.frombuffer(buffer.raw(), np.uint8) for buffer in buffers]
    places, end = [], 0
    for content in contents:
        begin = -(-end // _ALIGNMENT) * _ALIGNMENT
        places.append((begin, content.size))
        end = begin + content.size
    return Written(header, places, end), contents


def write(chunk, value):
    """Writes a value with arrays into a chunk, which grows if need be."""
    written, contents = prepare(value)
    chunk.grow(written.size)
    fill(chunk, written, contents)
    return written


def fill(chunk, written, contents):
    """Writes what `prepare` found into a chunk that is large enough."""
    memory = chunk.bytes()
    for (begin, size), content in zip(written.places, contents):
        memory[begin : begin + size] = content


def read(chunk, written):
    """The value that was written. Its arrays are the chunk's memory."""
    return value_in(chunk.bytes(), written)


def value_in(memory, written):
    """The value that was written into `memory`, an array, which its arrays keep."""
    return pickle.loads(written.header, buffers=[memory[begin : begin + size] for begin, size in written.places])


class Sender:
    """The side that writes: its chunks, and which of them nobody reads."""

    def __init__(self):
        self._chunks = []
        self._free = set()

    def write(self, value):
        """(number of the chunk, its capacity, what was written, the descriptor if the receiver does not have it yet)"""
        written, contents = prepare(value)
        if not contents:
            return None, 0, written, None
        fitting = [number for number in self._free if self._chunks[number].capacity >= written.size]
        number = min(fitting or self._free, key=lambda number: self._chunks[number].capacity, default=None)
        handle = None
        if number is None:
            number = len(self._chunks)
            self._chunks.append(Chunk.create(max(written.size, MIN_CAPACITY)))
            handle = self._chunks[number].handle
        self._free.discard(number)
        chunk = self._chunks[number]
        chunk.grow(written.size)
        fill(chunk, written, contents)
        return number, chunk.capacity, written, handle

    def release(self, numbers):
        """The receiver is done with these chunks."""
        self._free.update(numbers)


class _Reading(weakref.ref):
    """The memory of a value that is read, and the number of its chunk."""

    __slots__ = ("number",)
    number: int


class Receiver:
    """The side that reads."""

    def __init__(self):
        self._chunks = {}
        self._readings = {}
        self._done = deque()

    def add(self, number, handle, capacity):
        """A chunk that the sender made."""
        self._chunks[number] = Chunk(handle, capacity)

    def read(self, number, capacity, written):
        """The value; its chunk is among `done` when the value is gone."""
        if number is None:
            return pickle.loads(written.header)
        chunk = self._chunks[number]
        chunk.follow(capacity)
        memory = chunk.bytes()
        # Called back is no Python code: a Ctrl-C that came in it would be lost.
        reading = _Reading(memory, self._done.append)
        reading.number = number
        self._readings[number] = reading
        return value_in(memory, written)

    def done(self):
        """The chunks that nobody reads any more; each is named once."""
        return [self._done.popleft().number for _ in range(len(self._done))]

    def capacities(self):
        """The sizes of the chunks."""
        return [chunk.capacity for chunk in self._chunks.values()]

    def close(self):
        """Gives up the chunks."""
        for chunk in self._chunks.values():
            chunk.close()
        self._chunks.clear()
