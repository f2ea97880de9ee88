"""Data that users give for a batch, of whatever kind, as dense host arrays."""

import numpy as np

from . import dlpack
from .arrays import is_cupy_array, is_mxnet_array, is_torch_tensor
from .enums import dtype_of
from .feeding_device import device_arrays
from .tensor import TensorCPU, check_layout, layout_text
from .tensor_list import TensorListCPU

# How much of a wrong value a message shows.
_SHOWN = 80


class Batch:
    """One batch of an input: dense arrays of one type and rank. `whole` is the array that they are parts of, where
    there is one; `infos` say where each is from, `numbers` which sample of a reader each is."""

    __slots__ = ("arrays", "dtype", "layout", "infos", "whole", "numbers")

    def __init__(self, arrays, dtype, layout="", infos=None, whole=None, numbers=None):
        self.numbers = numbers
        self.arrays = arrays
        self.whole = whole
        self.dtype = dtype
        self.layout = layout
        self.infos = infos

    def make_own(self):
        """Copies what the user may change from now on."""
        # Only arrays of the host are read where the user has them.
        self.arrays = [array.copy() if isinstance(array, np.ndarray) else array for array in self.arrays]
        self.whole = None

    def facts(self):
        """(type, rank, layout), which stay the same from batch to batch."""
        return self.dtype, self.arrays[0].ndim if self.arrays else None, self.layout


def to_array(value):
    """One tensor of any framework as a numpy array; without a copy where it is in host memory and dense."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, TensorCPU):
        return value.array
    if is_torch_tensor(value):
        return value.detach().cpu().numpy()
    if is_mxnet_array(value):
        return value.asnumpy()
    if isinstance(value, (bytes, bytearray)):
        return np.frombuffer(value, np.uint8)
    if dlpack.is_capsule(value):
        return dlpack.from_capsule(value)
    if is_cupy_array(value):
        return value.get()
    return np.asarray(value)


def hint_for(array):
    """What to do with an array whose type cannot be fed."""
    if array.dtype.kind in "SV":
        return " The bytes of a file are fed as `bytes`, or as numbers: `np.frombuffer(data, np.uint8)`; an array of texts has one length for all."
    if array.dtype.kind == "U":
        return " Text is numbers as `np.frombuffer(text.encode(), np.uint8)`; a file is fed by its bytes, not by its name: `np.fromfile(path, np.uint8)`."
    if array.dtype.kind == "O":
        return " A list is a batch: give it arrays, or `bytes`, one a sample."
    return ""


def _dense(array, copy):
    """A dense array of the library's byte order that nobody else changes."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("="))
    if copy:
        return np.array(array, order="C", copy=True)
    return (
        array if array.flags.c_contiguous and array.flags.aligned else np.ascontiguousarray(array).reshape(array.shape)
    )


def is_constant(data):
    """Whether these are `bytes`, or arrays in memory of such: nobody can write there."""
    arrays = data if isinstance(data, (list, tuple)) else [data]
    return all(
        isinstance(array, bytes) or isinstance(array, np.ndarray) and isinstance(_owner(array), bytes)
        for array in arrays
    )


# From so many bytes on a sample is worth to be read where it is: smaller ones are sooner copied together.
_WORTH = 4096


def is_large(data):
    """Whether these are arrays on the host, or `bytes`, that are worth to be read where they are."""
    if isinstance(data, np.ndarray):
        return data.nbytes >= _WORTH
    if not isinstance(data, (list, tuple)):
        return False
    for sample in data:
        if isinstance(sample, np.ndarray):
            size = sample.nbytes
        elif isinstance(sample, bytes):
            size = len(sample)
        else:
            return False
        if size < _WORTH:
            return False
    return True


def _owner(array):
    """What the memory of an array belongs to."""
    while isinstance(array, np.ndarray):
        array = array.base
    return array


def _is_uniform(arrays):
    if not arrays:
        return False
    shape, dtype = arrays[0].shape, arrays[0].dtype
    return all(array.dtype is dtype and array.shape == shape for array in arrays)


def parts(whole):
    """The samples of an array whose first dimension counts them."""
    return list(whole) if whole.ndim > 1 else [whole[i, ...] for i in range(len(whole))]


def _check_size(count, limit):
    if not count:
        raise RuntimeError("the external source gave a batch without samples, expected at least one")
    if limit is not None and count > limit:
        raise RuntimeError(f"the external source gave a batch of {count} samples, expected at most {limit}")


def _check_rank(arrays, layout):
    if not arrays:
        return
    rank = arrays[0].ndim
    for array in arrays:
        if array.ndim != rank:
            raise RuntimeError("samples of one batch differ in their number of dimensions, expected the same of all")
    if layout and rank != len(layout):
        raise RuntimeError(f"The layout '{layout}' cannot describe {rank}-dimensional data")


def _device_batch(arrays, data, limit, layout):
    _check_size(len(arrays), limit)
    _check_rank(arrays, layout)
    kinds = {array.dtype for array in arrays}
    if len(kinds) > 1:
        raise RuntimeError(
            f"All samples of a batch must have the same type, found {', '.join(sorted(map(str, kinds)))}."
        )
    own = data.layout() if isinstance(data, TensorListCPU) else ""
    return Batch(
        arrays, data.dtype if isinstance(data, TensorListCPU) else dtype_of(arrays[0]), layout_text(layout) or own
    )


def _no_batch(data):
    """What is wrong with data that is one sample, or none."""
    expected = "Expected a batch: a list of tensors or an array whose first dimension counts samples, got"
    if isinstance(data, (bytes, bytearray)):
        return f"{expected} the {len(data)} bytes of one sample. A batch of it is `[data]`; a `source` of single samples has `batch=False`."
    found = repr(data)
    return f"{expected} {found if len(found) <= _SHOWN else found[:_SHOWN] + '...'} of type `{type(data).__name__}`."


def in_place(data, limit):
    """A list of arrays as a `Batch` that is read where they are. None: `to_batch` makes it, or says what is wrong."""
    if type(data) is not list or not 0 < len(data) <= limit:
        return None
    arrays = list(data)
    first = arrays[0]
    for array in arrays:
        if type(array) is not np.ndarray or array.dtype is not first.dtype or array.ndim != first.ndim:
            return None
        flags = array.flags
        if array.nbytes < _WORTH or not flags.c_contiguous or not flags.aligned:
            return None
    dtype = dtype_of(first)
    return Batch(arrays, dtype) if dtype is not None else None


def to_batch(data, limit, layout=None, copy=True):
    """`data` as a `Batch` of at most `limit` samples.

    A list or a batch has a sample in each element; of an array the first dimension counts samples. Unless `copy` is
    False, the caller may change the data afterwards.
    """
    device = device_arrays(data, copy)
    if device is not None:
        return _device_batch(device, data, limit, layout)
    own = ""
    infos = dtype = None
    if isinstance(data, TensorListCPU):
        arrays, own, dtype, infos = data.arrays, data.layout(), data.dtype, data._infos
    elif isinstance(data, (list, tuple)):
        if data and isinstance(data[0], TensorCPU):
            own, dtype = data[0].layout(), data[0].dtype
        arrays = [value if isinstance(value, np.ndarray) else to_array(value) for value in data]
    else:
        if isinstance(data, TensorCPU):
            own = data.layout()[1:]
        whole = to_array(data)
        if whole.ndim == 0 or isinstance(data, (bytes, bytearray)):
            raise RuntimeError(_no_batch(data))
        arrays = [whole[i, ...] for i in range(whole.shape[0])]
    _check_size(len(arrays), limit)
    _check_rank(arrays, layout)
    whole = None
    if copy and _is_uniform(arrays):
        # One copy for all.
        whole = _dense(np.array(arrays), copy=False)
        arrays = parts(whole)
        kinds = [dtype_of(whole)]
    else:
        arrays = [_dense(array, copy) for array in arrays]
        kinds = [dtype_of(array) for array in arrays]
    if None in kinds:
        wrong = arrays[kinds.index(None)]
        raise TypeError(
            f"Data of the type {wrong.dtype} cannot be fed: expected numbers or truth values.{hint_for(wrong)}"
        )
    for i, kind in enumerate(kinds):
        if kind != kinds[0]:
            raise RuntimeError(
                f"All samples of a batch must have the same type: sample {i} has {kind}, the first one has {kinds[0]}."
            )
    layout = own if layout is None else layout_text(layout) or own
    if layout and arrays:
        check_layout(layout, arrays[0].ndim, "batch")
    return Batch(arrays, dtype if dtype is not None else kinds[0] if kinds else None, layout, infos, whole)
