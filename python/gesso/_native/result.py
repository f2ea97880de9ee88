"""What a batch gave: results of the library as arrays, and why samples failed."""

import ctypes
import math
import struct

import numpy as np

from .._tensors.device_array import DeviceArray, Memory
from .._tensors.enums import DALIDataType, to_numpy_type
from .._tensors.feeding import parts
from .._threads.interrupts import interrupt_later
from . import library as _library
from .declarations import Tensor

# The structure as a table, which numpy fills and reads a column at a time.
_TENSOR_SIZE = ctypes.sizeof(Tensor)
_FIELDS = ("struct_size", "data", "dtype", "device", "device_id", "ndim", "shape", "layout", "origin")
_TENSOR = np.dtype(
    {
        "names": _FIELDS,
        "formats": ["u8", "u8", "i4", "i4", "i4", "i4", "u8", "u8", "u8"],
        "offsets": [getattr(Tensor, name).offset for name in _FIELDS],
        "itemsize": _TENSOR_SIZE,
    }
)
# The type of a sample that failed.
_NONE = -1
TYPES = {i: np.dtype(to_numpy_type(DALIDataType(i))) for i in range(12)}


class Result:
    """The library's result of one batch; the arrays made of it keep it alive."""

    __slots__ = ("handle", "process", "kept")

    def __init__(self, handle, process, kept=None):
        self.handle = handle
        self.process = process
        # What lives as long as it does.
        self.kept = kept

    def __del__(self):
        # As what is `uninterrupted`, in less time: each batch has one.
        try:
            # In a child the locks of the library may be held by threads that are not there.
            if self.process.is_here():
                free = _library.library().gesso_result_free
                # No Ctrl-C comes between these.
                handle, self.handle = self.handle, None
                free(handle)
        except KeyboardInterrupt as error:
            interrupt_later(error)
            if self.handle is not None:
                self.__del__()


class _View:
    """Memory of a result, for numpy."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address, shape, dtype, owner, strides=None):
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (address, False),
            "strides": strides,
        }
        self.owner = owner


def array_at(address, shape, dtype, owner):
    if not address:
        return np.empty(shape, dtype)
    return np.asarray(_View(address, shape, dtype, owner))


def _evenly(addresses):
    """How far apart the addresses are, if all are equally far; else None."""
    if len(addresses) == 1:
        return 0
    steps = np.diff(addresses.astype(np.int64))
    return int(steps[0]) if (steps == steps[0]).all() else None


def _shapes(table):
    """The shape of each sample, as tuples; one tuple if all are the same."""
    ndim = int(table["ndim"][0])
    if ndim == 0:
        return ()
    shapes = [ctypes.string_at(pointer, 8 * ndim) for pointer in table["shape"].tolist()]
    extents = struct.Struct(f"{ndim}q")
    if shapes.count(shapes[0]) == len(shapes):
        return extents.unpack(shapes[0])
    return [extents.unpack(shape) for shape in shapes]


def _strides(shape, size):
    """Those of a dense array with elements of `size` bytes."""
    strides = []
    for extent in reversed(shape):
        strides.insert(0, size)
        size *= extent
    return strides


def arrays_of(table, owner):
    """The samples that a table of `gesso_tensor`s describes."""
    dtype, shapes = TYPES[int(table["dtype"][0])], _shapes(table)
    if table["device"][0] == _library.GPU:
        memory = Memory(owner, int(table["device_id"][0]))
        each = shapes if isinstance(shapes, list) else [shapes] * len(table)
        return [DeviceArray(address, shape, dtype, memory) for address, shape in zip(table["data"].tolist(), each)]
    if isinstance(shapes, list):
        whole = _rows(table["data"], shapes, dtype, owner)
        if whole is not None:
            return whole
        return [array_at(address, shape, dtype, owner) for address, shape in zip(table["data"].tolist(), shapes)]
    count, step = len(table), _evenly(table["data"])
    if not step:
        return [array_at(address, shapes, dtype, owner) for address in table["data"].tolist()]
    # Side by side: one array, of which the samples are parts.
    whole = np.asarray(
        _View(int(table["data"][0]), (count, *shapes), dtype, owner, (step, *_strides(shapes, dtype.itemsize)))
    )
    return parts(whole)


def _rows(addresses, shapes, dtype, owner):
    """Samples that are rows of one array: they have different numbers of rows of one shape, and each begins where the
    one before it ends. None if they are not."""
    row = shapes[0][1:]
    if any(not shape or shape[1:] != row for shape in shapes):
        return None
    ends = np.cumsum([shape[0] for shape in shapes])
    row_bytes = math.prod(row) * dtype.itemsize
    if not row_bytes or (addresses[1:] - addresses[0] != ends[:-1].astype(np.uint64) * row_bytes).any():
        return None
    whole = array_at(int(addresses[0]), (int(ends[-1]), *row), dtype, owner)
    return np.split(whole, ends[:-1])


class _Origins:
    """Where the samples of an output come from: texts of a result, read when somebody asks."""

    __slots__ = ("_addresses", "_owner")

    def __init__(self, addresses, owner):
        self._addresses, self._owner = addresses, owner

    def __len__(self):
        return len(self._addresses)

    def __getitem__(self, index):
        address = int(self._addresses[index])
        return ctypes.string_at(address).decode("utf-8", "replace") if address else ""


class Outcome:
    """The outputs of a batch: for each a list of arrays (None for samples that failed), a layout, and where they come
    from; and why samples failed."""

    __slots__ = ("outputs", "errors", "batch_size", "_owner")

    def __init__(self, outputs, errors, batch_size, owner):
        self.outputs = outputs
        self.errors = errors
        self.batch_size = batch_size
        self._owner = owner

    def branch_samples(self):
        """How many samples each branch of conditionals has had, in the batch and those before it; empty unless random
        numbers depend on it."""
        count = ctypes.c_size_t()
        numbers = _library.library().gesso_result_branch_samples(self._owner.handle, ctypes.byref(count))
        return numbers[: count.value] if count.value else []


def outcome_of(owner, batch_size, output_count):
    """What a result of the library holds."""
    if batch_size == 1 and output_count:
        return _outcome_of_one(owner, output_count)
    # Without outputs nothing else tells; and where no sample is left, there are none.
    errors = errors_of(owner, range(batch_size)) if not output_count or _has_none(owner) else {}
    if errors and len(errors) == batch_size:
        return Outcome([([None] * batch_size, "", None)] * output_count, errors, batch_size, owner)
    outputs = [output_of(owner, k, batch_size, errors) for k in range(output_count)]
    return Outcome(outputs, errors, batch_size, owner)


def _outcome_of_one(owner, output_count):
    """As `outcome_of` for a batch of one sample: whether it failed is not asked before."""
    outputs, errors = [], {}
    try:
        for k in range(output_count):
            outputs.append(_output_of_one(owner, k, errors))
    except _library.GessoError:
        # Where no sample is left, there are none.
        errors = errors_of(owner, [0])
        if not errors:
            raise
    if errors:
        outputs = [([None], "", None)] * output_count
    return Outcome(outputs, errors, 1, owner)


def _has_none(owner):
    """Whether the first sample failed."""
    return _library.library().gesso_result_sample_status(owner.handle, 0, None) != 0


def errors_of(owner, samples):
    """Why those of `samples` failed that did."""
    library = _library.library()
    failed = [i for i in samples if library.gesso_result_sample_status(owner.handle, i, None) != 0]
    return {i: _library.sample_error(owner.handle, i) for i in failed}


def output_of(owner, index, batch_size, errors):
    """One output: arrays (None for samples that failed), layout, and where they come from; adds to `errors`."""
    if batch_size == 1:
        return _output_of_one(owner, index, errors)
    table = np.zeros(batch_size, _TENSOR)
    table["struct_size"] = _TENSOR.itemsize
    _library.call("gesso_result_tensors", owner.handle, index, table.ctypes.data, batch_size)
    good = table["dtype"] != _NONE
    if good.all():
        present, arrays = table, arrays_of(table, owner) if batch_size else []
    else:
        present, arrays = table[good], [None] * batch_size
        if not errors:
            errors.update(errors_of(owner, np.flatnonzero(~good).tolist()))
        for i, array in zip(np.flatnonzero(good).tolist(), arrays_of(present, owner) if len(present) else []):
            arrays[i] = array
    layout = int(present["layout"][-1]) if len(present) else 0
    return (arrays, ctypes.string_at(layout).decode() if layout else "", _Origins(table["origin"], owner))


def _output_of_one(owner, index, errors):
    """As `output_of` for a batch of one sample, which needs no table."""
    tensor = Tensor(_TENSOR_SIZE)
    _library.call("gesso_result_tensors", owner.handle, index, ctypes.addressof(tensor), 1)
    origin = tensor.origin.decode("utf-8", "replace") if tensor.origin else ""
    if tensor.dtype == _NONE:
        if not errors:
            errors.update(errors_of(owner, [0]))
        return [None], "", [origin]
    dtype, ndim = TYPES[tensor.dtype], tensor.ndim
    shape = tuple(tensor.shape[:ndim]) if ndim else ()
    if tensor.device == _library.GPU:
        array = DeviceArray(tensor.data, shape, dtype, Memory(owner, tensor.device_id))
    else:
        array = array_at(tensor.data, shape, dtype, owner)
    return [array], tensor.layout.decode() if tensor.layout else "", [origin]
