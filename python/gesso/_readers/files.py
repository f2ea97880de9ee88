"""The files of readers that run in the interpreter: below a folder, of a text file, or as they are given."""

import ctypes
import functools
import os

from . import storage


@functools.cache
def _fnmatch():
    """The C library's function, which DALI asks, and the library: Python's own knows neither `[^a]` nor `\\*`."""
    function = ctypes.CDLL(None).fnmatch
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    return function


def _below(root, pattern):
    """Paths of all files below `root` that match, sorted."""
    matches, pattern = _fnmatch(), os.fsencode(pattern)
    paths = [name for name in storage.below(root) if matches(pattern, os.fsencode(name.rpartition("/")[2]), 0) == 0]
    return sorted(os.path.join(root, name) for name in paths)


def _folder(path):
    return path.rpartition("/")[0] if storage.is_remote(path) else os.path.dirname(os.path.abspath(path))


def _joined(base, path):
    """A path below `base`, unless it says itself where it is."""
    return path if not base or storage.is_remote(path) else os.path.join(base, path)


def of_arguments(get, pattern):
    """The paths that a reader's arguments name: `files`, the lines of `file_list`, or all below `file_root` that match
    `file_filter`."""
    root, listed, given = get("file_root"), get("file_list"), get("files")
    if listed is not None and given is not None:
        raise RuntimeError("File paths can be provided through `files` or `file_list` but not both.")
    if given is not None:
        return [_joined(root, path) for path in given]
    if listed is not None:
        base = root or _folder(listed)
        return [_joined(base, line.strip()) for line in storage.text(listed).split("\n") if line.strip()]
    if root is None:
        raise RuntimeError("Either `file_root`, `files` or `file_list` must be specified.")
    return _below(root, get("file_filter", pattern))
