"""Functions that the library calls: operators and sources of a file that run in the interpreter. Knows no graphs."""

import contextlib
import ctypes
from ctypes import CFUNCTYPE, POINTER, c_char_p, c_int32, c_size_t, c_void_p

import numpy as np

from .._tensors.enums import dtype_of
from .._tensors.feeding import Batch
from .._threads.interrupts import uninterrupted
from . import library as _library
from .callback_dataset import CallbackDataset
from .declarations import Input
from .inputs import fill
from .result import Result, output_of

_CALL = CFUNCTYPE(c_int32, c_void_p, c_void_p, POINTER(Input), c_void_p)
_RELEASE = CFUNCTYPE(None, c_void_p)
# What the library is told of an exception. Who runs the batch raises the exception itself.
_FAILED = 1
# What stands around a batch that calls none.
_NOTHING = contextlib.nullcontext()


class Callback(ctypes.Structure):
    """gesso_callback"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("call", _CALL),
        ("release", _RELEASE),
        ("user", c_void_p),
    ]


class Function:
    """A function from batches to batches: `run` is called with a list of `inputs` batches and the number of
    samples."""

    def __init__(self, run, inputs):
        self.run, self.inputs = run, inputs


class Callbacks:
    """The functions of one loaded file, by the names of its operators, and the data sets, by those of its sources. One
    batch runs at a time."""

    def __init__(self, functions, process):
        self._state = state = _State(process)
        release = _RELEASE(uninterrupted(lambda user: state.kept.pop(user, None)))
        self._calls = [
            _CALL((_source if isinstance(function, CallbackDataset) else _caller)(function, state))
            for function in functions.values()
        ]
        self._count, self.are_any = len(functions), bool(functions)
        self._table = (Callback * max(self._count, 1))()
        for number, (name, call) in enumerate(zip(functions, self._calls), start=1):
            self._table[number - 1] = Callback(ctypes.sizeof(Callback), name.encode(), call, release, number)
        self._calls.append(release)

    def load(self, serialized, device, pipeline):
        """Makes `pipeline` that of a file whose operators call these functions."""
        place = ctypes.byref(pipeline)
        _library.call(
            "gesso_pipeline_load_with_callbacks", serialized, len(serialized), device, self._table, self._count, place
        )

    def batch(self, inputs):
        """Inside of it a batch runs of `inputs`, pairs of a name and a `Batch`. What a function raises is raised here,
        too."""
        return self._running([batch for _, batch in inputs]) if self._count else _NOTHING

    @contextlib.contextmanager
    def _running(self, fed):
        state, raised = self._state, None
        state.fed = fed
        try:
            yield
        except _library.GessoError:
            if (raised := state.raised) is None:
                raise
        finally:
            state.fed = state.raised = None
        if raised is not None:
            raise raised


class _State:
    """What the calls of a batch share. Apart from `Callbacks`, so that these have no part in a circle."""

    def __init__(self, process):
        self.process = process
        # By function: what its outputs are in, until the library has copied them.
        self.kept = {}
        self.raised = None
        # The batch's own inputs: a function may keep arrays of them.
        self.fed = None


def _caller(function, state):
    def call(user, handle, outputs, message):
        try:
            inputs, size = _inputs(handle, function.inputs, state)
            results = function.run(inputs, size)
            state.kept[user] = [_answer(outputs[i], batch, size) for i, batch in enumerate(results)]
        except BaseException as error:
            state.raised = error
            return _FAILED
        return 0

    return call


def _source(dataset, state):
    """What calls a data set for its next batch. Whoever takes the batch raises what it failed with."""

    def call(user, handle, outputs, message):
        try:
            asked = Result(handle, state.process)
            size = _library.library().gesso_result_batch_size(asked.handle)
            if not dataset.is_wanted:
                return 0
            batches = dataset.read(size)
            state.kept[user] = [_answer(outputs[i], batch, size) for i, batch in enumerate(batches)]
        except BaseException as error:
            dataset.note(error)
            return _FAILED
        dataset.note([(batch.infos, batch.numbers) for batch in batches])
        return 0

    return call


def _inputs(handle, count, state):
    owner = Result(handle, state.process, state.fed)
    size = _library.library().gesso_result_batch_size(handle)
    found = [output_of(owner, i, size, {}) for i in range(count)]
    constant = {_address(array) for batch in state.fed or () for array in batch.arrays if _is_constant(array)}
    for arrays, _, _ in found if constant else ():
        for array in arrays:
            if array is not None and _address(array) in constant:
                array.flags.writeable = False
    return [_without_gaps(arrays, layout, infos) for arrays, layout, infos in found], size


def _is_constant(array):
    """Whether it is on the host, and nobody may write to it."""
    return isinstance(array, np.ndarray) and not array.flags.writeable


def _address(array):
    return array.__array_interface__["data"][0]


def _without_gaps(arrays, layout, infos):
    """A batch in which others stand for samples that failed, so that a function can go on."""
    present = next(array for array in arrays if array is not None)
    return Batch([present if array is None else array for array in arrays], dtype_of(present), layout, infos)


def _answer(structure, batch, size):
    """Fills an output with a batch; returns what must live until it is copied."""
    if len(batch.arrays) != size:
        raise RuntimeError(f"An output has {len(batch.arrays)} samples, expected {size}, as the batch has.")
    kinds = {array.dtype for array in batch.arrays}
    if len(kinds) > 1:
        names = ", ".join(sorted(map(str, kinds)))
        raise RuntimeError(f"All samples of a batch must have the same type, found {names}.")
    layout = batch.layout.encode()
    structure.layout = layout
    # The structure is the library's: it keeps nothing alive.
    return layout, fill(structure, batch)
