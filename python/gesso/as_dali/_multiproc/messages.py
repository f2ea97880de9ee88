"""`nvidia.dali._multiproc.messages`: records of a fixed size, as they stand in a queue."""

import struct

from ... import _context


class Record:
    """Numbers with names. Subclasses say the `names`, and the `format` that the module `struct` writes them in."""

    names: tuple = ()
    format = ""

    def __init__(self, *values):
        if len(values) != len(self.names):
            raise TypeError(f"`{type(self).__name__}` has the fields {self.names}, got {len(values)} values.")
        for name, value in zip(self.names, values):
            setattr(self, name, value)

    def get_values(self):
        """The numbers, in order."""
        return tuple(getattr(self, name) for name in self.names)

    @classmethod
    def size(cls):
        """Bytes of one."""
        return struct.calcsize(cls.format)

    def pack(self):
        """As bytes."""
        try:
            return struct.pack(self.format, *self.get_values())
        except struct.error as error:
            fields = ", ".join(f"{name}={value}" for name, value in zip(self.names, self.get_values()))
            message = f"a `{type(self).__name__}` of {fields} has no place in {self.size()} bytes: {error}"
            raise RuntimeError(_context.add_words(message)) from None

    @classmethod
    def unpack(cls, data):
        """Of bytes."""
        return cls(*struct.unpack(cls.format, data))


class ShmMessageDesc(Record):
    """Where something stands in shared memory."""

    names = ("worker_id", "shm_chunk_id", "shm_capacity", "offset", "num_bytes")
    format = "=iiQQQ"
