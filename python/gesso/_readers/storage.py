"""Files where they are: on this machine, or in an object store (`s3://`, `gs://`, `az://`, `http://`, `https://`) by
the package `obstore`.

Credentials and endpoints come from the environment variables that the stores' own tools read (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, ...), or from the machine's role. Knows no readers.
"""

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


def _failed(path, error):
    # The library's messages have details of its own in lines behind the first one.
    text = (
        str(error).strip().splitlines()[0]
        if isinstance(error, Exception) and str(error).strip()
        else type(error).__name__
    )
    text = (error.strerror or text) if isinstance(error, OSError) else text
    return RuntimeError(f"Could not open file {path}: {text}")


def open_local(path):
    """A file of this machine, opened to be read. Not a pipe: it would wait for somebody to write."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return open(path, "rb")


class _Local:
    """A file of this machine."""

    def __init__(self, path):
        self._path = path
        try:
            self._file = open_local(path)
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise _failed(path, error) from None

    def read_at(self, offset, size):
        """So many bytes from `offset`, fewer at the end of the file. Any thread."""
        size = min(size, self.size - offset)
        return os.pread(self._file.fileno(), size, offset) if size > 0 else b""

    def stream(self):
        """The file, to be read from its beginning."""
        return open(self._path, "rb")

    def close(self):
        """Closes it."""
        self._file.close()


class _Remote:
    """A file in an object store."""

    def __init__(self, path):
        import obstore

        self._path, self._obstore = path, obstore
        self._store, self._key = _parts(path)
        try:
            self.size = obstore.head(self._store, self._key)["size"]
        except Exception as error:
            raise _failed(path, error) from None

    def read_at(self, offset, size):
        """So many bytes from `offset`, fewer at the end of the file. Any thread."""
        size = min(size, self.size - offset)
        if size <= 0:
            return b""
        try:
            return bytes(self._obstore.get_range(self._store, self._key, start=offset, length=size))
        except Exception as error:
            raise _failed(self._path, error) from None

    def stream(self):
        """The file, to be read from its beginning."""
        return io.BufferedReader(_Stream(self), _PIECE)

    def close(self):
        """Nothing is open."""


class _Stream(io.RawIOBase):
    """A remote file in the interface of Python's files."""

    def __init__(self, file):
        self._file, self._at = file, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        return self._at

    def tell(self):
        return self._at

    def readinto(self, buffer):
        data = self._file.read_at(self._at, len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def open_file(path):
    """A file to read parts of."""
    if is_remote(path):
        _parts(path)
        return _Remote(path)
    return _Local(path)


def read(path):
    """A whole file, as an array of bytes."""
    if not is_remote(path):
        try:
            with open_local(path) as file:
                return np.fromfile(file, np.uint8)
        except OSError as error:
            raise _failed(path, error) from None
    store, key = _parts(path)
    import obstore

    try:
        return np.frombuffer(obstore.get(store, key).bytes(), np.uint8)
    except Exception as error:
        raise _failed(path, error) from None


def text(path):
    """A whole file, as text."""
    return read(path).tobytes().decode("utf-8", "surrogateescape")


def below(root):
    """The names of all files below `root`, relative to it and sorted."""
    if not is_remote(root):
        found = [
            os.path.relpath(os.path.join(folder, name), root)
            for folder, _, names in os.walk(root, followlinks=True)
            for name in names
        ]
        return sorted(found)
    store, prefix = _parts(root)
    import obstore

    prefix = prefix.rstrip("/") + "/" if prefix else ""
    try:
        found = [entry["path"] for batch in obstore.list(store, prefix or None) for entry in batch]
    except Exception as error:
        raise _failed(root, error) from None
    return sorted(path[len(prefix) :] for path in found if path.startswith(prefix) and not path.endswith("/"))
