"""`fn.readers.file`: files as they are, with labels."""

import numpy as np

from . import files, storage
from .source import Reader, schema

_OWN = {
    "file_root": ("STRING", None),
    "file_list": ("STRING", None),
    "files": ("_STRING_VEC", None),
    "labels": ("_INT32_VEC", None),
    "file_filters": ("_STRING_VEC", files.IMAGES_AND_SOUND),
    "dir_filters": ("_STRING_VEC", None),
    "case_sensitive_filter": ("BOOL", False),
}


class _Files:
    def __init__(self, found, base=""):
        self.found, self._base = found, base
        self.size = len(found)
        self.is_remote = any(storage.is_remote(path) for path, _ in found)

    def name(self, index):
        """The path of a sample."""
        return self.found[index][0]

    def read(self, index):
        path, label = self.found[index]
        return (storage.read(path), np.array([label], np.int32)), files.relative(self._base, path)


def _given(paths, labels, root):
    paths = [files.joined(root, path) for path in paths]
    if labels is None:
        labels = range(len(paths))
    elif len(labels) != len(paths):
        raise RuntimeError(
            f"Provided {len(labels)} labels for {len(paths)} files. When the `labels` argument is specified, it must have the same "
            "length as `files`."
        )
    return list(zip(paths, labels))


class File(Reader):
    """Reads files: from folders whose order gives the labels, from a list of paths and labels, or as they are given.

    Outputs: the files' bytes, and the labels.
    """

    schema_name = "readers__File"
    schema = named_schema = schema("readers__File", "Reads files and labels.", _OWN)

    def expected(self, node):
        """Of folders: that files lie in folders of their own."""
        get = node.values_of
        if get("files") is not None or get("file_list") is not None:
            return ""
        return f": expected in `{get('file_root')}` a folder for each label, with files that match in it"

    def begin(self, node):
        """Finds the files."""
        get = node.values_of
        root, listed, given = get("file_root"), get("file_list"), get("files")
        if listed is not None and given is not None:
            raise RuntimeError("File paths can be provided through `files` or `file_list` but not both.")
        if root is None and listed is None and given is None:
            raise RuntimeError("Either `file_root`, `files` or `file_list` must be specified.")
        if given is None and get("labels") is not None:
            raise RuntimeError("The argument `labels` is valid only when file paths are provided as `files` argument.")
        for name in ("file_filters", "dir_filters"):
            if get(name) == []:
                raise RuntimeError(f"`{name}` list cannot be empty.")
        if given is not None:
            return _Files(_given(given, get("labels"), root), root)
        if listed is not None:
            return _Files(files.of_list(listed, root), files.base_of(listed, root))
        return _Files(
            files.in_folders(root, get("file_filters"), get("dir_filters"), get("case_sensitive_filter", False)), root
        )
