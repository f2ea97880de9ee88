"""The samples of a reader that the library has, one by one."""

import ctypes

from .._threads.fork import Process
from . import library as _library
from .result import Result, outcome_of


class Dataset:
    """Samples by their numbers. `serialized`: a file with the reader alone, of so many outputs."""

    def __init__(self, serialized, outputs):
        self._handle, self._process, self._outputs = (ctypes.c_void_p(), Process(), outputs)
        _library.call("gesso_dataset_open", serialized, len(serialized), ctypes.byref(self._handle))
        self.size = _library.library().gesso_dataset_count(self._handle)

    def __del__(self):
        if not self._handle or not self._process.is_here():
            return
        try:
            library = _library.library()
        except Exception:  # the interpreter is going
            return
        library.gesso_dataset_free(self._handle)

    def read(self, index):
        """The arrays of all outputs, their layouts, and where each is from."""
        self._process.check("A reader")
        handle = ctypes.c_void_p()
        _library.call("gesso_dataset_read", self._handle, index, ctypes.byref(handle))
        outcome = outcome_of(Result(handle, self._process), 1, self._outputs)
        arrays, layouts, infos = zip(*outcome.outputs)
        return ([array[0] for array in arrays], list(layouts), [info[0] for info in infos])
