"""LMDB files, read only: the values in the order of their keys."""

import os
import struct

from .. import _storage

_HEADER = 16
_BRANCH, _LEAF = 1, 2
_BIG = 1
_MAGIC = 0xBEEFC0DE
_META = 136
_NO_PAGE = 0xFFFFFFFFFFFFFFFF


class Lmdb:
    """The records of one database."""

    def __init__(self, path):
        # Not mapped: who cuts a mapped file short ends the process.
        try:
            self._file = _storage.open_file(os.path.join(path, "data.mdb") if os.path.isdir(path) else path)
        except RuntimeError as error:
            raise RuntimeError(f"LMDB Error: {str(error).rpartition(': ')[2]}, with file: {path}") from None
        if self._file.size == 0:
            raise RuntimeError(f"LMDB Error: the file is empty, with file: {path}")
        self.places = []
        try:
            self._page_size, root = self._newest_root()
            if root != _NO_PAGE:
                self._walk(root)
        except (struct.error, OverflowError, RuntimeError) as error:
            raise RuntimeError(f"LMDB Error: the file is cut off or damaged ({error}), with file: {path}") from None

    def _newest_root(self):
        newest, offset = None, 0
        for _ in range(2):
            meta = self._file.read_at(offset + _HEADER, _META)
            (magic,) = struct.unpack_from("<I", meta)
            if magic != _MAGIC:
                raise RuntimeError("no LMDB header")
            (page_size,) = struct.unpack_from("<I", meta, 24)
            (root,) = struct.unpack_from("<Q", meta, 112)
            (transaction,) = struct.unpack_from("<Q", meta, 128)
            if newest is None or transaction > newest[0]:
                newest = (transaction, page_size, root)
            offset = page_size
        return newest[1:]

    def _walk(self, root):
        """Notes where the values below a page are. A page stands at one place of the tree: a file that says otherwise has no end."""
        pages, seen = [root], set()
        while pages:
            number = pages.pop()
            if number in seen:
                raise RuntimeError(f"page {number} is in two places")
            seen.add(number)
            base, children = number * self._page_size, []
            page = self._file.read_at(base, self._page_size)
            flags, lower = struct.unpack_from("<HH", page, 10)
            for k in range((lower - _HEADER) // 2):
                (node,) = struct.unpack_from("<H", page, _HEADER + 2 * k)
                low, high, node_flags, key_size = struct.unpack_from("<HHHH", page, node)
                if flags & _BRANCH:
                    children.append(low | high << 16 | node_flags << 32)
                    continue
                at, size = node + 8 + key_size, low | high << 16
                at = struct.unpack_from("<Q", page, at)[0] * self._page_size + _HEADER if node_flags & _BIG else base + at
                if at + size > self._file.size:
                    raise RuntimeError(f"a value of {size} bytes in page {number} ends behind the file")
                self.places.append((at, size))
            pages += reversed(children)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        at, size = self.places[index]
        return self._file.read_at(at, size)


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
