"""`fn.readers.hdf5`: rows of datasets in HDF5 files, by the package `h5py`."""

import numpy as np

from . import damage, files, rows, storage
from .source import Reader, schema

_OWN = {
    "datasets": ("_STRING_VEC", None),
    "file_root": ("STRING", None),
    "file_filter": ("STRING", "*.h5"),
    "file_list": ("STRING", None),
    "files": ("_STRING_VEC", None),
}
# Files that are open at the same time.
_OPEN = 64
_EXPECTED = "expected numbers, truth values, text, opaque bytes, or arrays of numbers of any length"


class _Rows:
    """The rows of all files, in their order."""

    def __init__(self, paths, names):
        self._h5py = rows.package("h5py", "hdf5")
        self._paths, self._names, self._open = paths, names, {}
        counts, kinds = [], None
        for number, path in enumerate(paths):
            with damage.named(path):
                datasets = self._datasets(number)
                own = [self._check(dataset, name, path) for dataset, name in zip(datasets, names)]
            kinds = kinds or own
            rows.require_same(names, kinds, own, paths[0], path)
            lengths = [len(dataset) for dataset in datasets]
            if len(set(lengths)) > 1:
                each = ", ".join(f"`{name}` {length}" for name, length in zip(names, lengths))
                raise RuntimeError(f"The datasets of {path} differ in their number of rows: {each}.")
            counts.append(lengths[0])
        self._ends = rows.ends(counts)
        self.size = int(self._ends[-1]) if counts else 0

    def _check(self, dataset, name, path):
        """The type of a dataset's rows, if there can be batches of it."""
        if not isinstance(dataset, self._h5py.Dataset) or not dataset.shape:
            raise RuntimeError(f"`{name}` in {path} has no rows: expected a dataset of at least one dimension.")
        kind = dataset.dtype
        if self._h5py.check_string_dtype(kind) is not None or kind.kind == "V" and not kind.fields:
            return "bytes"
        element = self._h5py.check_vlen_dtype(kind) or kind
        if element.kind not in "biuf" or element.itemsize > 8:
            raise RuntimeError(f"`{name}` in {path} has the type {kind}, {_EXPECTED}.")
        return str(element.newbyteorder("="))

    def _datasets(self, number):
        """The datasets of a file. Those used longest ago are closed."""
        file, datasets = self._open.pop(number, (None, None))
        if file is None:
            path = self._paths[number]
            try:
                file = self._h5py.File(storage.stream(path) if storage.is_remote(path) else path, "r")
                datasets = [file[name] for name in self._names]
            except KeyError as error:
                raise RuntimeError(
                    f"{path} has no such dataset: {error.args[0]}; it has {_names(file, self._h5py)}."
                ) from None
            except OSError as error:
                raise RuntimeError(f"Could not open file {path}: {error}") from None
            while len(self._open) >= _OPEN:
                self._open.pop(next(iter(self._open)))[0].close()
        self._open[number] = file, datasets
        return datasets

    def read(self, index):
        number = int(np.searchsorted(self._ends, index, "right"))
        path, row = self._paths[number], int(index - (self._ends[number - 1] if number else 0))
        found = []
        for name, dataset in zip(self._names, self._datasets(number)):
            with damage.named(f"row {row} of `{name}` in {path}"):
                found.append(_array(dataset[row]))
        return found, f"{path} row {row}"

    def close(self):
        """Closes the files."""
        for file, _ in self._open.values():
            file.close()


def _names(file, h5py):
    found = []
    file.visititems(lambda name, item: found.append(name) if isinstance(item, h5py.Dataset) else None)
    return found


def _array(value):
    """A row as an array; text and opaque bytes as the numbers of their bytes."""
    if isinstance(value, str):
        value = value.encode()
    if isinstance(value, np.void):
        value = value.tobytes()
    if isinstance(value, bytes):
        return np.frombuffer(value, np.uint8)
    array = np.asarray(value)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


class HDF5(Reader):
    """Reads rows of datasets in HDF5 files: the first dimension of each dataset counts samples. `datasets`: their
    names, one for each output."""

    schema_name = "readers__HDF5"
    schema = named_schema = schema(
        "readers__HDF5", "Reads rows of datasets in HDF5 files.", _OWN, required=("datasets",), outputs=1
    )
    in_files = False

    def output_count(self, node):
        return len(node.values_of("datasets"))

    def begin(self, node):
        """Finds the files, and counts their rows."""
        return _Rows(files.of_arguments(node.values_of, "*.h5"), node.values_of("datasets"))
