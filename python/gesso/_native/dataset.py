"""The samples of a reader that the library has, one by one."""

import ctypes

import numpy as np

from .._tensors.enums import DALIDataType
from .._tensors.feeding import Batch
from .._threads.fork import Process
from .._threads.interrupts import uninterrupted
from . import library as _library
from .inputs import structures
from .result import Result, outcome_of


class Dataset:
    """Samples by their numbers. `serialized`: a file with the reader alone, of so many outputs."""

    def __init__(self, serialized, outputs, formats=None):
        """`formats`: those that may be decoded, as a text; else all."""
        self._handle, self._process, self._outputs = (ctypes.c_void_p(), Process(), outputs)
        _library.call("gesso_dataset_open", serialized, len(serialized), ctypes.byref(self._handle))
        _library.call("gesso_dataset_allow", self._handle, formats)
        self.size = _library.library().gesso_dataset_count(self._handle)
        # The samples of each file, if `shuffle_after_epoch` shuffles files.
        self.groups = self._files()

    def _files(self):
        count = _library.library().gesso_dataset_files(self._handle, None, 0)
        if not count:
            return None
        ends = (ctypes.c_uint64 * count)()
        _library.library().gesso_dataset_files(self._handle, ends, count)
        return [list(range(begin, end)) for begin, end in zip([0, *ends], ends)]

    @uninterrupted
    def __del__(self):
        if not self._handle or not self._process.is_here():
            return
        try:
            library = _library.library()
        except Exception:  # the interpreter is going
            return
        library.gesso_dataset_free(self._handle)

    def read(self, index, fed=None):
        """The arrays of all outputs, their layouts, and where each is from. `fed`: values that arguments have for this
        sample, by their names."""
        self._process.check("A reader")
        handle, fed = ctypes.c_void_p(), fed or {}
        batches = [(name, Batch([np.array(values, np.float64)], DALIDataType.FLOAT64)) for name, values in fed.items()]
        given, keep = structures(batches)
        _library.call("gesso_dataset_read_with", self._handle, index, given, len(batches), ctypes.byref(handle))
        del keep
        outcome = outcome_of(Result(handle, self._process), 1, self._outputs)
        arrays, layouts, infos = zip(*outcome.outputs)
        return ([array[0] for array in arrays], list(layouts), [info[0] for info in infos])
