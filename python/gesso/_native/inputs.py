"""What a batch is made of: batches as the structures that the library reads."""

import ctypes
from typing import NamedTuple

import numpy as np

from .._tensors.device_array import DeviceArray, on_host
from .._tensors.feeding import Batch
from . import library as _library
from .library import Input, Sample

# The structure as a table, which numpy fills a column at a time.
_SAMPLE = np.dtype({"names": ["struct_size", "data", "shape", "ndim"], "formats": ["u8"] * 4})


class Filled(NamedTuple):
    """What the library reads of a batch."""

    samples: np.ndarray
    shapes: tuple | None
    origins: ctypes.Array | None
    batch: Batch


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
    return Filled(samples, shapes, origins, batch)


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
