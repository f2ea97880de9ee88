"""One loaded file that runs batches: the library's pipeline and instance. Knows arrays and names, no Python graphs."""

import ctypes
import threading

from .._threads.fork import Process
from .._threads.interrupts import uninterrupted
from . import library as _library
from .callbacks import Callbacks
from .declarations import InstanceOptions, TensorInfo
from .inputs import ReusedInputs
from .result import Result, outcome_of


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
        functions=None,
    ):
        """`functions`: what the file's operators `Callback` call, by their names."""
        self._pipeline = ctypes.c_void_p()
        self._instance = ctypes.c_void_p()
        self._lock = threading.Lock()
        self._process = Process()
        self._callbacks = Callbacks(functions or {}, self._process)
        self._callbacks.load(serialized, device, self._pipeline)
        size, on_host = ctypes.sizeof(InstanceOptions), int(outputs_on_host)
        options = InstanceOptions(size, num_threads, gpu, on_host, 1, gpu_multiprocessors, deterministic, formats)
        _library.call("gesso_instance_create", self._pipeline, ctypes.byref(options), ctypes.byref(self._instance))
        self.output_count = _library.library().gesso_pipeline_output_count(self._pipeline)
        self._inputs = ReusedInputs(_device_inputs(self._pipeline) if device == _library.GPU else frozenset())

    @uninterrupted
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
        handle = ctypes.c_void_p()
        with self._lock:
            given, keep = self._inputs.structures(inputs)
            arguments = self._instance, batch_size, given, len(inputs), ctypes.byref(handle)
            if self._callbacks.are_any:
                with self._callbacks.batch(inputs):
                    _library.call("gesso_instance_run", *arguments)
            else:
                _library.call("gesso_instance_run", *arguments)
        del keep
        return outcome_of(Result(handle, self._process), batch_size, self.output_count)

    def go_on(self, samples, branch_samples=()):
        """The next batch is one before which there were so many samples: random numbers are those of that batch.
        `branch_samples`: as `Outcome.branch_samples` gives them of the batch before."""
        _library.call("gesso_instance_go_on", self._instance, samples)
        if branch_samples:
            numbers, count = _library.numbers(branch_samples)
            _library.call("gesso_instance_go_on_in_branches", self._instance, numbers, count)


def _device_inputs(pipeline):
    """Names of inputs whose samples may be in memory of the GPU."""
    library, info, names = _library.library(), TensorInfo(), set()
    for i in range(library.gesso_pipeline_input_count(pipeline)):
        info.struct_size = ctypes.sizeof(info)
        _library.call("gesso_pipeline_input", pipeline, i, ctypes.byref(info))
        if info.device == _library.GPU:
            names.add(info.name.decode())
    return frozenset(names)


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
