"""Files in object stores, for readers of the library: it calls functions of the interpreter for paths such as
`s3://bucket/key`."""

import ctypes
import functools
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int32, c_size_t, c_uint64, c_void_p

from .._threads.interrupts import interrupt_later
from . import library as _library

_ROOM = CFUNCTYPE(c_void_p, c_void_p, c_size_t)
_ADD = CFUNCTYPE(None, c_void_p, c_char_p)
# The `gesso_status` of what cannot be read.
_NOT_FOUND = 3


class _Message(ctypes.Structure):
    """gesso_message"""

    _fields_ = [("struct_size", c_size_t), ("text", c_void_p), ("capacity", c_size_t)]


_TOLD = POINTER(_Message)
_SIZE = CFUNCTYPE(c_int32, c_void_p, c_char_p, POINTER(c_uint64), _TOLD)
_READ = CFUNCTYPE(c_int32, c_void_p, c_char_p, c_uint64, c_void_p, c_size_t, _TOLD)
_GET = CFUNCTYPE(c_int32, c_void_p, c_char_p, _ROOM, c_void_p, _TOLD)
_LIST = CFUNCTYPE(c_int32, c_void_p, c_char_p, _ADD, c_void_p, _TOLD)


class _Store(ctypes.Structure):
    """gesso_store"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("size", _SIZE),
        ("read", _READ),
        ("get", _GET),
        ("list", _LIST),
        ("user", c_void_p),
    ]


def _guarded(kind, function):
    """`function` of a path and what follows it, as the library calls it."""

    def call(user, path, *arguments):
        *given, message = arguments
        try:
            function(path.decode("utf-8", "surrogateescape"), *given)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                interrupt_later(error)
            told, text = message.contents, str(error).encode("utf-8", "replace")
            text = text[: told.capacity - 1] + b"\0"
            ctypes.memmove(told.text, text, len(text))
            return _NOT_FOUND
        return 0

    return kind(call)


@functools.cache
def use(storage):
    """Lets readers of the library read by `storage`, which has `size`, `read_at`, `read_all` and `names`; what they
    raise says why, without the path."""

    def size(path, found):
        found[0] = storage.size(path)

    def read(path, at, place, length):
        data = storage.read_at(path, at, length)
        if len(data) != length:
            raise RuntimeError(f"it has {len(data)} bytes from byte {at} on, expected {length}")
        ctypes.memmove(place, data.ctypes.data, length)

    def get(path, room, file):
        data = storage.read_all(path)
        place = room(file, len(data))
        if place is None:
            raise RuntimeError(f"there is no room for its {len(data)} bytes")
        ctypes.memmove(place, data.ctypes.data, len(data))

    def names(root, add, found):
        for name in storage.names(root):
            add(found, name.encode("utf-8", "surrogateescape"))

    functions = [_guarded(*one) for one in ((_SIZE, size), (_READ, read), (_GET, get), (_LIST, names))]
    table = _Store(ctypes.sizeof(_Store), *functions, None)
    _library.call("gesso_set_store", ctypes.byref(table))
    return functions
