"""LMDB files, read only: the values in the order of their keys. Nothing is mapped: a file that is cut off while it is
read is an error, not a crash."""

import os
import struct

from . import storage

_HEADER = 16
_BRANCH, _LEAF = 1, 2
_BIG = 1
_MAGIC = 0xBEEFC0DE
_NONE = 0xFFFFFFFFFFFFFFFF
# Of the structure behind a page's header that says where everything is: both trees, and the number of the transaction.
_META = 96 + 24 + 16
_LARGEST_PAGE = 1 << 16


class Lmdb:
    """The records of one database."""

    def __init__(self, path):
        file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
        try:
            self._file = storage.open_local(file)
            self._size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise RuntimeError(f"LMDB Error: {error.strerror or error}, with file: {path}") from None
        self.path, self.places, self._keys, self._seen = path, [], [], set()
        try:
            self._page_size, root = self._newest_root()
            if root != _NONE:
                self._walk(root)
        except (struct.error, RuntimeError) as error:
            raise RuntimeError(f"LMDB Error: the file is cut off or damaged ({error}), with file: {path}") from None

    def _bytes(self, at, size):
        data = os.pread(self._file.fileno(), size, at) if at + size <= self._size else b""
        if len(data) != size:
            raise RuntimeError(f"it ends before {size} bytes at {at}")
        return data

    def _newest_root(self):
        newest = None
        offset = 0
        for _ in range(2):
            meta = self._bytes(offset + _HEADER, _META)
            (magic,) = struct.unpack_from("<I", meta)
            if magic != _MAGIC:
                raise RuntimeError("no LMDB header")
            (page_size,) = struct.unpack_from("<I", meta, 24)
            (root,) = struct.unpack_from("<Q", meta, 24 + 48 + 40)
            (transaction,) = struct.unpack_from("<Q", meta, 24 + 96 + 8)
            if not _HEADER + _META <= page_size <= _LARGEST_PAGE:
                raise RuntimeError(f"pages of {page_size} bytes")
            if newest is None or transaction > newest[0]:
                newest = (transaction, page_size, root)
            offset = page_size
        return newest[1:]

    def _walk(self, number):
        if number in self._seen:
            raise RuntimeError(f"page {number} is in two places")
        self._seen.add(number)
        base = number * self._page_size
        page = self._bytes(base, self._page_size)
        flags, lower = struct.unpack_from("<HH", page, 10)
        for k in range((lower - _HEADER) // 2):
            (node,) = struct.unpack_from("<H", page, _HEADER + 2 * k)
            low, high, node_flags, key_size = struct.unpack_from("<HHHH", page, node)
            if flags & _BRANCH:
                self._walk(low | high << 16 | node_flags << 32)
                continue
            at, size = node + 8 + key_size, low | high << 16
            self._keys.append((base + node + 8, key_size))
            if node_flags & _BIG:
                self.places.append((struct.unpack_from("<Q", page, at)[0] * self._page_size + _HEADER, size))
            else:
                self.places.append((base + at, size))

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        return self._bytes(*self.places[index])

    def key(self, index):
        """The key of a value, as text."""
        return self._bytes(*self._keys[index]).decode("utf-8", "replace")

    def close(self):
        """Closes the file."""
        self._file.close()


class Joined:
    """Several databases one behind the other."""

    def __init__(self, paths):
        self._parts = [Lmdb(path) for path in paths]

    def __len__(self):
        return sum(map(len, self._parts))

    def find(self, index):
        """The database of a value, and its number there."""
        for part in self._parts:
            if index < len(part):
                return part, index
            index -= len(part)
        raise IndexError(index)

    def close(self):
        """Closes the files."""
        for part in self._parts:
            part.close()
