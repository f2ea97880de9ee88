"""Lists of files: by folders, by a text file, or as they are given."""

import ctypes
import functools
import os

from . import storage

IMAGES_AND_SOUND = (
    "*.jpg *.jpeg *.png *.bmp *.tif *.tiff *.pnm *.ppm *.pgm *.pbm *.jp2 *.webp *.flac *.ogg *.wav".split()
)


# FNM_CASEFOLD of <fnmatch.h>.
_ANY_CASE = 16


@functools.cache
def _fnmatch():
    """The C library's function, which DALI asks, and the library: Python's own knows neither `[^a]` nor `\\*`."""
    function = ctypes.CDLL(None).fnmatch
    function.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int]
    return function


def _matches(name, patterns, case_sensitive):
    flags, matches = 0 if case_sensitive else _ANY_CASE, _fnmatch()
    return any(matches(os.fsencode(pattern), os.fsencode(name), flags) == 0 for pattern in patterns)


def in_folders(root, file_filters=None, dir_filters=None, case_sensitive=False):
    """(path, label) of the files in the folders of `root`; the label is the number of the folder, in order of their
    names."""
    if storage.is_remote(root):
        names = [path.split("/") for path in storage.below(root)]
        inside = {folder: [] for folder in sorted({parts[0] for parts in names if len(parts) > 1})}
        for parts in names:
            if len(parts) == 2:
                inside[parts[0]].append(parts[1])
    else:
        inside = {name: None for name in sorted(os.listdir(root)) if os.path.isdir(os.path.join(root, name))}
    folders = list(inside)
    if dir_filters:
        folders = [name for name in folders if _matches(name, dir_filters, case_sensitive)]
    patterns = file_filters or IMAGES_AND_SOUND
    found = []
    for label, folder in enumerate(folders):
        for name in sorted(os.listdir(os.path.join(root, folder)) if inside[folder] is None else inside[folder]):
            if _matches(name, patterns, case_sensitive):
                found.append((os.path.join(root, folder, name), label))
    return found


def below(root, patterns):
    """Paths of all files below `root` that match, sorted."""
    paths = [name for name in storage.below(root) if _matches(name.rpartition("/")[2], patterns, True)]
    return sorted(os.path.join(root, name) for name in paths)


def of_list(path, root):
    """(path, label) of each line `path label` of a text file; paths are relative to `root`, else to the list's
    folder."""
    base = base_of(path, root)
    found = []
    for number, line in enumerate(storage.text(path).split("\n"), 1):
        if not line.strip():
            continue
        name, _, label = line.strip().rpartition(" ")
        try:
            found.append((joined(base, name.strip()), int(label)))
        except ValueError:
            raise RuntimeError(
                f'Incorrect format of the list file "{path}":{number}: expected `path label`, got {line!r}.'
            ) from None
    return found


def _folder(path):
    return path.rpartition("/")[0] if storage.is_remote(path) else os.path.dirname(os.path.abspath(path))


def base_of(listed, root):
    """What the paths of a list are relative to."""
    return root or _folder(listed)


def relative(base, path):
    """A path as DALI names it: as it was given, without the folder that it is relative to."""
    base = base.rstrip("/") + "/" if base and not isinstance(path, _Whole) else ""
    return path[len(base) :] if base and path.startswith(base) else str(path)


class _Whole(str):
    """A path that was given whole, and keeps its name."""


def joined(base, path):
    """A path below `base`, unless it says itself where it is."""
    if base and os.path.isabs(path):
        return _Whole(path)
    return path if not base or storage.is_remote(path) else os.path.join(base, path)


def of_arguments(get, pattern):
    """The paths that a reader's arguments name: `files`, the lines of `file_list`, or all below `file_root` that match
    `file_filter`."""
    root, listed, given = get("file_root"), get("file_list"), get("files")
    if listed is not None and given is not None:
        raise RuntimeError("File paths can be provided through `files` or `file_list` but not both.")
    if given is not None:
        return [joined(root, path) for path in given]
    if listed is not None:
        base = root or _folder(listed)
        return [joined(base, line.strip()) for line in storage.text(listed).split("\n") if line.strip()]
    if root is None:
        raise RuntimeError("Either `file_root`, `files` or `file_list` must be specified.")
    return below(root, [get("file_filter", pattern)])
