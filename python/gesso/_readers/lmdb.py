"""LMDB files, read only: the values in the order of their keys."""

import mmap
import os
import struct

_HEADER = 16
_BRANCH, _LEAF = 1, 2
_BIG = 1
_MAGIC = 0xBEEFC0DE


class Lmdb:
    """The records of one database."""

    def __init__(self, path):
        file = os.path.join(path, "data.mdb") if os.path.isdir(path) else path
        try:
            with open(file, "rb") as opened:
                self._data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise RuntimeError(f"LMDB Error: {error.strerror or error}, with file: {path}") from None
        except ValueError:
            raise RuntimeError(f"LMDB Error: the file is empty, with file: {path}") from None
        self.places, self._seen = [], set()
        try:
            self._page_size, root = self._newest_root()
            if root != 0xFFFFFFFFFFFFFFFF:
                self._walk(root)
        except (struct.error, RuntimeError) as error:
            raise RuntimeError(f"LMDB Error: the file is cut off or damaged ({error}), with file: {path}") from None

    def _newest_root(self):
        newest = None
        offset = 0
        for _ in range(2):
            (magic,) = struct.unpack_from("<I", self._data, offset + _HEADER)
            if magic != _MAGIC:
                raise RuntimeError("no LMDB header")
            at = offset + _HEADER + 24
            (page_size,) = struct.unpack_from("<I", self._data, at)
            (root,) = struct.unpack_from("<Q", self._data, at + 48 + 40)
            (transaction,) = struct.unpack_from("<Q", self._data, at + 96 + 8)
            if newest is None or transaction > newest[0]:
                newest = (transaction, page_size, root)
            offset = page_size
        return newest[1:]

    def _walk(self, page):
        if page in self._seen:
            raise RuntimeError(f"page {page} is in two places")
        self._seen.add(page)
        base = page * self._page_size
        flags, lower = struct.unpack_from("<HH", self._data, base + 10)
        for k in range((lower - _HEADER) // 2):
            node = base + struct.unpack_from("<H", self._data, base + _HEADER + 2 * k)[0]
            low, high, node_flags, key_size = struct.unpack_from("<HHHH", self._data, node)
            if flags & _BRANCH:
                self._walk(low | high << 16 | node_flags << 32)
                continue
            at, size = node + 8 + key_size, low | high << 16
            if node_flags & _BIG:
                at = struct.unpack_from("<Q", self._data, at)[0] * self._page_size + _HEADER
            self.places.append((at, size))

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        at, size = self.places[index]
        if at + size > len(self._data):
            raise RuntimeError(f"LMDB Error: the file ends within a record of {size} bytes")
        return self._data[at : at + size]


class Joined:
    """Several databases one behind the other."""

    def __init__(self, paths):
        self._parts = [Lmdb(path) for path in paths]

    def __len__(self):
        return sum(map(len, self._parts))

    def __getitem__(self, index):
        for part in self._parts:
            if index < len(part):
                return part[index]
            index -= len(part)
        raise IndexError(index)
