"""One loaded file that runs small batches of one size and kind: what ctypes needs is made once, so that a call costs
little."""

import ctypes
import threading

import numpy as np

from . import library as _library
from .declarations import Input, Tensor
from .engine import Engine
from .inputs import SampleTable
from .result import TYPES, Result, array_at, errors_of

_FAILED = -1


class Array(np.ndarray):
    """An array that an operator returned, with its `layout`. What numpy makes of it has none."""

    def __array_finalize__(self, _):
        self.layout = ""

    def __array_wrap__(self, array, _context=None, _return_scalar=False):
        return array[()] if array.ndim == 0 else np.asarray(array)


def with_layout(array, layout):
    """The array, which says its layout."""
    array = array.view(Array)
    array.layout = layout
    return array


class PreparedCall:
    """Runs one file. `inputs`: name, `DALIDataType` and rank of each; `size` samples a batch."""

    def __init__(self, serialized, inputs, size, num_threads=2):
        self._engine = Engine(serialized, num_threads=num_threads)
        self._lock = threading.Lock()
        self._size = size
        self._samples = [SampleTable(size, ndim) for _, _, ndim in inputs]
        self._inputs = (Input * max(len(inputs), 1))()
        for i, (name, dtype, _) in enumerate(inputs):
            table = self._samples[i].table
            self._inputs[i] = Input(ctypes.sizeof(Input), name.encode(), int(dtype), _library.CPU, table)
        self._count = len(inputs)
        self._tensors = (Tensor * size)(*(Tensor(ctypes.sizeof(Tensor)) for _ in range(size)))
        library = _library.library()
        self._run, self._read = library.gesso_instance_run, library.gesso_result_tensors
        self._table = ctypes.addressof(self._tensors)

    def run(self, batches):
        """For each output a list of arrays; `batches`, one for each input, hold dense arrays of the input's type and
        rank."""
        return [
            [with_layout(array, layout) for array in arrays] if layout else arrays
            for arrays, layout in self.run_with_layouts(batches)
        ]

    def run_with_layouts(self, batches, position=None):
        """As `run`; for each output a list of arrays, and their layout. `position`: how many samples there were before,
        from which random numbers follow."""
        with self._lock:
            if position is not None:
                self._engine.go_on(position)
            for samples, arrays in zip(self._samples, batches):
                samples.take(arrays)
            return self._outputs(self.run_as_it_is())

    def run_as_it_is(self):
        """Runs what the structures say; the result. Apart from `run` so that it can be measured."""
        handle = ctypes.c_void_p()
        if self._run(self._engine._instance, self._size, self._inputs, self._count, ctypes.byref(handle)) != 0:
            raise RuntimeError(_library.last_error())
        return Result(handle, self._engine._process)

    def _outputs(self, result):
        outputs = []
        for index in range(self._engine.output_count):
            if self._read(result.handle, index, self._table, self._size) != 0:
                self._fail(result)
            arrays = [self._output(tensor, result) for tensor in self._tensors]
            outputs.append((arrays, (self._tensors[0].layout or b"").decode()))
        return outputs

    def _fail(self, result):
        """Raises what a sample failed with."""
        errors = errors_of(result, range(self._size)) or {0: _library.last_error()}
        index = min(errors)
        raise RuntimeError(f"Sample {index} of the batch failed. {errors[index]}" if self._size > 1 else errors[index])

    def _output(self, tensor, result):
        if tensor.dtype == _FAILED:
            self._fail(result)
        shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
        return array_at(tensor.data, shape, TYPES[tensor.dtype], result)


def is_dense(array):
    """Whether the library can read an array where it is."""
    return array.flags.c_contiguous and array.dtype.isnative


def as_dense(array):
    """The array, or a dense copy of it in the library's byte order."""
    if is_dense(array):
        return array
    return np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(array.shape)
