"""Files where they are: on this machine, or in an object store (`s3://`, `gs://`, `az://`, `http://`, `https://`) by
the package `obstore`.

Credentials and endpoints come from the environment variables that the stores' own tools read (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, ...), or from the machine's role. Knows no readers.
"""

import contextlib
import datetime
import errno
import functools
import io
import os
import re
import stat

import numpy as np

from .. import _extras

_SCHEMES = ("s3", "gs", "az", "http", "https")
_URL = re.compile(rf"({'|'.join(_SCHEMES)})://([^/]+)/?(.*)", re.DOTALL)
# A request that fails is sent again so often, and for so long.
_RETRIES, _PATIENCE = 5, datetime.timedelta(seconds=60)
# A transfer may take as long as bytes come: without any for so long it has failed. The whole of it only ends one that
# trickles for good.
_STALLED, _LONGEST = datetime.timedelta(seconds=30), datetime.timedelta(days=1)
# Files that are read from beginning to end come in pieces of this size.
_PIECE = 4 << 20
# How many files of one store are read at the same time.
CONNECTIONS = 32


def is_remote(path):
    """Whether a path is in an object store."""
    return "://" in path and _URL.fullmatch(path) is not None


@functools.lru_cache
def _store(root, process):
    """What `obstore` makes of a bucket or a host, for each process: its threads do not survive a fork."""
    from_url = _extras.needed(
        "obstore.store", f"`{root}` is in an object store: to read there", "cloud", RuntimeError
    ).from_url
    retries = {"max_retries": _RETRIES, "retry_timeout": _PATIENCE}
    allowed = root.startswith("http://") or any(
        os.environ.get(name, "").startswith("http://") for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    )
    options = {"timeout": _LONGEST, "read_timeout": _STALLED, **({"allow_http": True} if allowed else {})}
    return from_url(root, client_options=options, retry_config=retries)


def _parts(path):
    scheme, host, key = _URL.fullmatch(path).groups()
    return _store(f"{scheme}://{host}", os.getpid()), key


def reason(error):
    """Why a file cannot be read, without its path."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    # The library's messages have details of its own in lines behind the first one.
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


@contextlib.contextmanager
def _telling():
    try:
        yield
    except Exception as error:
        raise RuntimeError(reason(error)) from None


@contextlib.contextmanager
def _named(path):
    try:
        yield
    except Exception as error:
        raise RuntimeError(f"Could not open file {path}: {reason(error)}") from None


# --- files in a store, as the library asks for them


def size(path):
    """How many bytes a file has."""
    with _telling():
        store, key = _parts(path)
        import obstore

        return obstore.head(store, key)["size"]


def read_at(path, offset, length):
    """So many bytes from `offset`. Any thread."""
    with _telling():
        store, key = _parts(path)
        import obstore

        return np.frombuffer(obstore.get_range(store, key, start=offset, length=length), np.uint8)


def read_all(path):
    """A whole file, as an array of bytes. Any thread."""
    with _telling():
        store, key = _parts(path)
        import obstore

        return np.frombuffer(obstore.get(store, key).bytes(), np.uint8)


def names(root):
    """The names of all files below `root`, relative to it."""
    with _telling():
        store, prefix = _parts(root)
        import obstore

        prefix = prefix.rstrip("/") + "/" if prefix else ""
        found = [entry["path"] for batch in obstore.list(store, prefix or None) for entry in batch]
        return [path[len(prefix) :] for path in found if path.startswith(prefix) and not path.endswith("/")]


# --- files wherever they are, for readers that run in the interpreter


def open_local(path):
    """A file of this machine, opened to be read. Not a pipe: it would wait for somebody to write."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return open(path, "rb")


class _Stream(io.RawIOBase):
    """A file in a store in the interface of Python's files."""

    def __init__(self, path):
        self._path, self._at = path, 0
        with _named(path):
            self._size = size(path)

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self):
        return self._at

    def readinto(self, buffer):
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        with _named(self._path):
            buffer[:length] = read_at(self._path, self._at, length).data
        self._at += length
        return length


def stream(path):
    """A file in a store, to be read as a file of Python's."""
    return io.BufferedReader(_Stream(path), _PIECE)


def read(path):
    """A whole file, as an array of bytes."""
    with _named(path):
        if is_remote(path):
            return read_all(path)
        with open_local(path) as file:
            return np.fromfile(file, np.uint8)


def text(path):
    """A whole file, as text."""
    return read(path).tobytes().decode("utf-8", "surrogateescape")


def below(root):
    """The names of all files below `root`, relative to it and sorted."""
    if is_remote(root):
        with _named(root):
            return sorted(names(root))
    found = [
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, inside in os.walk(root, followlinks=True)
        for name in inside
    ]
    return sorted(found)
