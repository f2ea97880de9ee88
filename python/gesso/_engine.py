"""One loaded file that runs batches: the library's pipeline and instance. Knows arrays and names, no Python graphs."""

import ctypes
import threading

import numpy as np

from . import _library
from ._enums import DALIDataType, to_numpy_type
from ._library import Input, InstanceOptions, Sample, Tensor

_SAMPLE_SIZE = ctypes.sizeof(Sample)
_TYPES = {i: np.dtype(to_numpy_type(DALIDataType(i))) for i in range(12)}


class Result:
    """The library's result of one batch; the arrays made of it keep it alive."""

    __slots__ = ("handle",)

    def __init__(self, handle):
        self.handle = handle

    def __del__(self):
        _library.library().gesso_result_free(self.handle)


class _View:
    """Memory of a result, for numpy."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, tensor, shape, dtype, owner):
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (tensor.data, False),
        }
        self.owner = owner


def _array(tensor, owner):
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    dtype = _TYPES[tensor.dtype]
    if not tensor.data:
        return np.empty(shape, dtype)
    return np.asarray(_View(tensor, shape, dtype, owner))


class Outcome:
    """The outputs of a batch: for each a list of arrays (None for samples that failed) and a layout; and why samples failed."""

    __slots__ = ("outputs", "errors", "batch_size")

    def __init__(self, outputs, errors, batch_size):
        self.outputs = outputs
        self.errors = errors
        self.batch_size = batch_size


class Engine:
    """Runs one file, one batch at a time."""

    def __init__(self, serialized, device=_library.CPU, gpu=0, num_threads=0):
        self._pipeline = ctypes.c_void_p()
        self._instance = ctypes.c_void_p()
        self._lock = threading.Lock()
        _library.call("gesso_pipeline_load", serialized, len(serialized), device, ctypes.byref(self._pipeline))
        options = InstanceOptions(ctypes.sizeof(InstanceOptions), num_threads, gpu, 1)
        _library.call("gesso_instance_create", self._pipeline, ctypes.byref(options), ctypes.byref(self._instance))
        self.output_count = _library.library().gesso_pipeline_output_count(self._pipeline)

    def __del__(self):
        try:
            library = _library.library()
        except Exception:  # the interpreter is going
            return
        library.gesso_instance_free(self._instance)
        library.gesso_pipeline_free(self._pipeline)

    def run(self, batch_size, inputs):
        """Runs `batch_size` samples of `inputs`: pairs of a name and a `Batch`."""
        given, keep = _inputs(inputs)
        handle = ctypes.c_void_p()
        with self._lock:
            _library.call("gesso_instance_run", self._instance, batch_size, given, len(inputs), ctypes.byref(handle))
        del keep
        owner = Result(handle)
        return outcome_of(owner, batch_size, self.output_count)



def outcome_of(owner, batch_size, output_count):
    """What a result of the library holds."""
    library, message = _library.library(), ctypes.c_char_p()
    errors = {}
    for i in range(batch_size):
        if library.gesso_result_sample_status(owner.handle, i, ctypes.byref(message)) != 0:
            errors[i] = (message.value or b"").decode("utf-8", "replace")
    outputs = [_output(library, owner, k, batch_size, errors) for k in range(output_count)]
    return Outcome(outputs, errors, batch_size)


def _output(library, owner, index, batch_size, errors):
    tensor = Tensor(ctypes.sizeof(Tensor))
    reference = ctypes.byref(tensor)
    arrays, layout = [], b""
    for i in range(batch_size):
        if i in errors:
            arrays.append(None)
            continue
        if library.gesso_result_tensor(owner.handle, index, i, reference) != 0:
            raise _library.GessoError(_library.last_error())
        arrays.append(_array(tensor, owner))
        layout = tensor.layout
    return arrays, (layout or b"").decode(), None


def _inputs(inputs):
    """The inputs as structures, and what must live while the library reads them."""
    structures, keep = (Input * max(len(inputs), 1))(), []
    for structure, (name, batch) in zip(structures, inputs):
        samples = (Sample * max(len(batch.arrays), 1))()
        for sample, array in zip(samples, batch.arrays):
            shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
            sample.struct_size = _SAMPLE_SIZE
            sample.data = array.__array_interface__["data"][0] if array.size else None
            sample.shape, sample.ndim = shape, array.ndim
        structure.struct_size = ctypes.sizeof(Input)
        structure.name = name.encode()
        structure.dtype = int(batch.dtype)
        structure.device = _library.CPU
        structure.samples = samples
        keep.append((samples, batch))
    return structures, keep


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
