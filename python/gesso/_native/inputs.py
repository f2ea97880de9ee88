"""What a batch is made of: batches as the structures that the library reads. For few samples these are made once and
filled one by one, for many they are a table that numpy fills a column at a time."""

import ctypes
from typing import NamedTuple

import numpy as np

from .._tensors.device_array import DeviceArray, on_host
from . import library as _library
from .declarations import MAX_NDIM, Input, Sample

# The structure as a table.
_SAMPLE = np.dtype({"names": ["struct_size", "data", "shape", "ndim"], "formats": ["u8"] * 4})


# Up to so many samples are filled one by one: numpy takes as long for one as for ten.
FEW = 8


class SampleTable:
    """The samples of one input, at most `count` of `most_ndim` dimensions, in structures that are made once."""

    def __init__(self, count, most_ndim=MAX_NDIM):
        self.table, self._each = (Sample * count)(), []
        for sample in self.table:
            shape = (ctypes.c_int64 * max(most_ndim, 1))()
            sample.struct_size, sample.shape = ctypes.sizeof(Sample), shape
            self._each.append((sample, shape))

    def take(self, arrays):
        """Lets the structures describe arrays on the host, which must live while the library reads them."""
        for (sample, shape), array in zip(self._each, arrays):
            ndim = array.ndim
            sample.data = array.__array_interface__["data"][0] if array.size else None
            sample.ndim = ndim
            if ndim:
                shape[:ndim] = array.shape


class ReusedInputs:
    """The inputs of one batch at a time as structures, which stay for the next one where there are few samples."""

    def __init__(self, on_device=frozenset()):
        """`on_device`: names of inputs that may stay on the GPU."""
        self._on_device = on_device
        self._names, self._table, self._each = None, None, []

    def structures(self, inputs):
        """The inputs, pairs of a name and a `Batch`, as structures, and what must live beside them while the library
        reads them."""
        names = []
        for name, batch in inputs:
            if not _are_few(batch.arrays):
                return structures(inputs, self._on_device)
            names.append(name)
        if names != self._names:
            self._make(names)
        for (structure, samples), (_, batch) in zip(self._each, inputs):
            samples.take(batch.arrays)
            structure.dtype = int(batch.dtype)
            structure.origins = _origins(batch) if batch.infos else None
        return self._table, None

    def _make(self, names):
        self._names, self._table, self._each = names, (Input * max(len(names), 1))(), []
        for structure, name in zip(self._table, names):
            samples = SampleTable(FEW)
            structure.struct_size, structure.name = ctypes.sizeof(Input), name.encode()
            structure.device, structure.samples = _library.CPU, samples.table
            self._each.append((structure, samples))


def _are_few(arrays):
    """Whether these can be filled one by one."""
    if not 0 < len(arrays) <= FEW:
        return False
    for array in arrays:
        if not isinstance(array, np.ndarray) or array.ndim > MAX_NDIM:
            return False
    return True


class Filled(NamedTuple):
    """What the library reads of a batch."""

    samples: np.ndarray
    shapes: tuple | None
    origins: ctypes.Array | None


def structures(inputs, on_device=frozenset()):
    """The inputs as structures, and what must live while the library reads them. Those whose names are in `on_device`
    may stay on the GPU."""
    found, keep = (Input * max(len(inputs), 1))(), []
    for structure, (name, batch) in zip(found, inputs):
        structure.struct_size = ctypes.sizeof(Input)
        structure.name = name.encode()
        keep.append(fill(structure, batch, name in on_device))
    return found, keep


def fill(structure, batch, may_stay=False):
    """Fills a structure with a batch; returns what must live while the library reads it. `may_stay`: on the GPU."""
    stays = may_stay and bool(batch.arrays) and all(isinstance(array, DeviceArray) for array in batch.arrays)
    samples, shapes = _device_samples(batch) if stays else _samples(batch)
    structure.dtype = int(batch.dtype)
    structure.device = _library.GPU if stays else _library.CPU
    structure.samples = ctypes.cast(samples.ctypes.data, ctypes.POINTER(Sample))
    structure.origins = origins = _origins(batch)
    return Filled(samples, shapes, origins)


def _origins(batch):
    """Where the samples of a batch come from, as texts of C; None if that is not known of any."""
    if not batch.infos or not any(batch.infos):
        return None
    return (ctypes.c_char_p * len(batch.infos))(
        *[info.encode("utf-8", "replace").replace(b"\0", b"?") for info in batch.infos]
    )


def _device_samples(batch):
    """As `_samples`, where they are in memory of the GPU."""
    arrays = batch.arrays
    table = np.zeros(len(arrays), _SAMPLE)
    shapes = np.array([array.shape for array in arrays], np.int64).reshape(len(arrays), arrays[0].ndim)
    table["struct_size"], table["ndim"] = _SAMPLE.itemsize, arrays[0].ndim
    table["shape"] = shapes.ctypes.data + np.arange(len(arrays), dtype=np.uint64) * np.uint64(8 * arrays[0].ndim)
    table["data"] = [array.address if array.size else 0 for array in arrays]
    return table, (shapes, arrays)


def _samples(batch):
    """A table of `gesso_sample`s, and what it points at."""
    arrays, count = [on_host(array) for array in batch.arrays], len(batch.arrays)
    table = np.zeros(max(count, 1), _SAMPLE)
    table["struct_size"] = _SAMPLE.itemsize
    if not arrays:
        return table, None
    ndim, whole = arrays[0].ndim, batch.whole
    table["ndim"] = ndim
    numbers = np.arange(count, dtype=np.uint64)
    if whole is not None and whole.size:
        shapes = np.array(whole.shape[1:], np.int64)
        table["shape"] = shapes.ctypes.data
        table["data"] = whole.ctypes.data + numbers * np.uint64(whole.strides[0])
    else:
        shapes = np.array([array.shape for array in arrays], np.int64).reshape(count, ndim)
        table["shape"] = shapes.ctypes.data + numbers * np.uint64(8 * ndim)
        table["data"] = [array.__array_interface__["data"][0] if array.size else 0 for array in arrays]
    return table, (shapes, arrays)
