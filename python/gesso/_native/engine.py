"""One loaded file that runs batches: the library's pipeline and instance. Knows arrays and names, no Python graphs."""

import ctypes
import struct
import threading

import numpy as np

from .._tensors.device_array import DeviceArray, Memory, on_host
from .._tensors.enums import DALIDataType, to_numpy_type
from .._tensors.feeding import parts
from .._threads.fork import Process
from . import library as _library
from .library import Input, InstanceOptions, Sample, Tensor

# The structures as tables, which numpy fills and reads a column at a time.
_SAMPLE = np.dtype({"names": ["struct_size", "data", "shape", "ndim"], "formats": ["u8"] * 4})
_FIELDS = ("struct_size", "data", "dtype", "device", "device_id", "ndim", "shape", "layout", "origin")
_TENSOR = np.dtype(
    {
        "names": _FIELDS,
        "formats": ["u8", "u8", "i4", "i4", "i4", "i4", "u8", "u8", "u8"],
        "offsets": [getattr(Tensor, name).offset for name in _FIELDS],
        "itemsize": ctypes.sizeof(Tensor),
    }
)
# The type of a sample that failed.
_NONE = -1
_TYPES = {i: np.dtype(to_numpy_type(DALIDataType(i))) for i in range(12)}


class Result:
    """The library's result of one batch; the arrays made of it keep it alive."""

    __slots__ = ("handle", "process")

    def __init__(self, handle, process):
        self.handle = handle
        self.process = process

    def __del__(self):
        try:
            # In a child the locks of the library may be held by threads that are not there.
            if self.process.is_here():
                _library.library().gesso_result_free(self.handle)
        except KeyboardInterrupt as error:
            _library.interrupt_later(error)


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


def _array(address, shape, dtype, owner):
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


def _arrays(table, owner):
    """The samples that a table of `gesso_tensor`s describes."""
    dtype, shapes = _TYPES[int(table["dtype"][0])], _shapes(table)
    if table["device"][0] == _library.GPU:
        memory = Memory(owner, int(table["device_id"][0]))
        each = shapes if isinstance(shapes, list) else [shapes] * len(table)
        return [DeviceArray(address, shape, dtype, memory) for address, shape in zip(table["data"].tolist(), each)]
    if isinstance(shapes, list):
        return [_array(address, shape, dtype, owner) for address, shape in zip(table["data"].tolist(), shapes)]
    count, step = len(table), _evenly(table["data"])
    if not step:
        return [_array(address, shapes, dtype, owner) for address in table["data"].tolist()]
    # Side by side: one array, of which the samples are parts.
    whole = np.asarray(
        _View(int(table["data"][0]), (count, *shapes), dtype, owner, (step, *_strides(shapes, dtype.itemsize)))
    )
    return parts(whole)


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

    __slots__ = ("outputs", "errors", "batch_size")

    def __init__(self, outputs, errors, batch_size):
        self.outputs = outputs
        self.errors = errors
        self.batch_size = batch_size


class Engine:
    """Runs one file, one batch at a time. What is made on a GPU is brought to the host, or left there as a
    `DeviceArray`."""

    def __init__(
        self,
        serialized,
        device=_library.CPU,
        gpu=0,
        gpu_multiprocessors=0,
        deterministic=False,
        formats=None,
        *,
        num_threads=0,
        outputs_on_host=True,
    ):
        self._pipeline = ctypes.c_void_p()
        self._instance = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._process = Process()
        _library.call("gesso_pipeline_load", serialized, len(serialized), device, ctypes.byref(self._pipeline))
        size, on_host = ctypes.sizeof(InstanceOptions), int(outputs_on_host)
        options = InstanceOptions(size, num_threads, gpu, on_host, 1, gpu_multiprocessors, deterministic, formats)
        _library.call("gesso_instance_create", self._pipeline, ctypes.byref(options), ctypes.byref(self._instance))
        self.output_count = _library.library().gesso_pipeline_output_count(self._pipeline)
        # Names of inputs whose samples may be in memory of the GPU.
        self._device_inputs = _device_inputs(self._pipeline) if device == _library.GPU else frozenset()

    def __del__(self):
        try:
            library = _library.library()
        except Exception:  # the interpreter is going
            return
        if not self._process.is_here():
            return
        library.gesso_instance_free(self._instance)
        library.gesso_pipeline_free(self._pipeline)

    def run(self, batch_size, inputs):
        """Runs `batch_size` samples of `inputs`: pairs of a name and a `Batch`."""
        given, keep = _inputs(inputs, self._device_inputs)
        handle = ctypes.c_void_p()
        with self._lock:
            _library.call("gesso_instance_run", self._instance, batch_size, given, len(inputs), ctypes.byref(handle))
        del keep
        return outcome_of(Result(handle, self._process), batch_size, self.output_count)


def outcome_of(owner, batch_size, output_count):
    """What a result of the library holds."""
    # Without outputs nothing else tells; and where no sample is left, there are none.
    errors = errors_of(owner, range(batch_size)) if not output_count or _has_none(owner) else {}
    if errors and len(errors) == batch_size:
        return Outcome([([None] * batch_size, "", None)] * output_count, errors, batch_size)
    outputs = [_output(owner, k, batch_size, errors) for k in range(output_count)]
    return Outcome(outputs, errors, batch_size)


def _has_none(owner):
    """Whether the first sample failed."""
    return _library.library().gesso_result_sample_status(owner.handle, 0, None) != 0


def errors_of(owner, samples):
    """Why those of `samples` failed that did."""
    library, message, errors = _library.library(), ctypes.c_char_p(), {}
    for i in samples:
        if library.gesso_result_sample_status(owner.handle, i, ctypes.byref(message)) != 0:
            errors[i] = (message.value or b"").decode("utf-8", "replace")
    return errors


def _output(owner, index, batch_size, errors):
    table = np.zeros(batch_size, _TENSOR)
    table["struct_size"] = _TENSOR.itemsize
    _library.call("gesso_result_tensors", owner.handle, index, table.ctypes.data, batch_size)
    good = table["dtype"] != _NONE
    if good.all():
        present, arrays = table, _arrays(table, owner) if batch_size else []
    else:
        present, arrays = table[good], [None] * batch_size
        if not errors:
            errors.update(errors_of(owner, np.flatnonzero(~good).tolist()))
        for i, array in zip(np.flatnonzero(good).tolist(), _arrays(present, owner) if len(present) else []):
            arrays[i] = array
    layout = int(present["layout"][-1]) if len(present) else 0
    return arrays, ctypes.string_at(layout).decode() if layout else "", _Origins(table["origin"], owner)


def _device_inputs(pipeline):
    library, info, names = _library.library(), _library.TensorInfo(), set()
    for i in range(library.gesso_pipeline_input_count(pipeline)):
        info.struct_size = ctypes.sizeof(info)
        _library.call("gesso_pipeline_input", pipeline, i, ctypes.byref(info))
        if info.device == _library.GPU:
            names.add(info.name.decode())
    return frozenset(names)


def _inputs(inputs, on_device):
    """The inputs as structures, and what must live while the library reads them. Those whose names are in `on_device`
    may stay on the GPU."""
    structures, keep = (Input * max(len(inputs), 1))(), []
    for structure, (name, batch) in zip(structures, inputs):
        stays = (
            name in on_device and bool(batch.arrays) and all(isinstance(array, DeviceArray) for array in batch.arrays)
        )
        samples, shapes = _device_samples(batch) if stays else _samples(batch)
        structure.struct_size = ctypes.sizeof(Input)
        structure.name = name.encode()
        structure.dtype = int(batch.dtype)
        structure.device = _library.GPU if stays else _library.CPU
        structure.samples = ctypes.cast(samples.ctypes.data, ctypes.POINTER(Sample))
        structure.origins = origins = _origins(batch)
        keep.append((samples, shapes, origins, batch))
    return structures, keep


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


def describe(serialized):
    """What a file holds, as the text of a JSON object."""
    return _library.take_string("gesso_describe", serialized, len(serialized))


def has_gpu():
    """Whether there is a GPU that can be used."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        count = ctypes.c_int()
        return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0
    except OSError:
        return False
