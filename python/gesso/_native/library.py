"""The shared library: where it is, its functions and structures by ctypes, its errors. Knows nothing of pipelines in
Python."""

import ctypes
import os
import threading
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_void_p

from .._threads import interrupts
from .._threads.interrupts import check_interrupt

NAME = "libtriton_gesso.so"
ABI_VERSION = 1
MAX_NDIM = 16
CPU, GPU = 0, 1


class ErrorText(str):
    """What something failed with, and where: `operator` and `source` are names in the pipeline, of an operator and of a
    reader, `file` is a path; empty where nobody knows. `reason` is the text behind these names, `status` the
    `gesso_status`."""

    operator = source = file = reason = ""
    status = 1

    def behind(self, words):
        """The same behind other words."""
        text = ErrorText(f"{words}: {self}")
        text.__dict__.update(self.__dict__)
        return text


class GessoError(RuntimeError):
    """A call of the library failed. `status` is its `gesso_status`; `text` is the library's, an `ErrorText`."""

    def __init__(self, message, status=1):
        super().__init__(str(message))
        self.text, self.status = message, status


class Sample(ctypes.Structure):
    """gesso_sample"""

    _fields_ = [("struct_size", c_size_t), ("data", c_void_p), ("shape", POINTER(c_int64)), ("ndim", c_size_t)]


class Input(ctypes.Structure):
    """gesso_input"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("dtype", c_int32),
        ("device", c_int32),
        ("samples", POINTER(Sample)),
        ("layout", c_char_p),
        ("origins", POINTER(c_char_p)),
    ]


class TensorInfo(ctypes.Structure):
    """gesso_tensor_info"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("name", c_char_p),
        ("layout", c_char_p),
        ("dtype", c_int32),
        ("device", c_int32),
        ("ndim", c_int32),
        ("shape", c_int64 * MAX_NDIM),
    ]


class InstanceOptions(ctypes.Structure):
    """gesso_instance_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("num_threads", c_size_t),
        ("gpu", c_int32),
        ("outputs_on_host", c_int32),
        ("inputs_may_change", c_int32),
        ("gpu_multiprocessors", c_size_t),
        ("deterministic", c_int32),
        ("formats", ctypes.c_char_p),
    ]


class StreamOptions(ctypes.Structure):
    """gesso_stream_options"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("batch_size", c_size_t),
        ("prefetch", c_size_t),
        ("lanes", c_size_t),
        ("num_threads", c_size_t),
        ("first", ctypes.c_uint64),
        ("gpu", c_int32),
        ("outputs_on_host", c_int32),
        ("next_epoch", c_int32),
        ("read", ctypes.c_uint64),
        ("gpu_multiprocessors", c_size_t),
        ("deterministic", c_int32),
        ("formats", ctypes.c_char_p),
        ("branch_samples", POINTER(ctypes.c_uint64)),
        ("branch_count", c_size_t),
    ]


class ErrorInfo(ctypes.Structure):
    """gesso_error_info"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("status", c_int32),
        ("message", c_char_p),
        ("reason", c_char_p),
        ("operator_name", c_char_p),
        ("source_name", c_char_p),
        ("file", c_char_p),
    ]


class Tensor(ctypes.Structure):
    """gesso_tensor"""

    _fields_ = [
        ("struct_size", c_size_t),
        ("data", c_void_p),
        ("bytes", c_size_t),
        ("dtype", c_int32),
        ("device", c_int32),
        ("device_id", c_int32),
        ("ndim", c_int32),
        ("shape", POINTER(c_int64)),
        ("layout", c_char_p),
        ("origin", c_char_p),
    ]


# Every function that is called, with its arguments; all that return a `gesso_status` are checked by `call`.
_SIGNATURES = {
    "gesso_describe": [c_char_p, c_size_t, POINTER(c_void_p)],
    "gesso_pipeline_load": [c_char_p, c_size_t, c_int32, POINTER(c_void_p)],
    "gesso_pipeline_output": [c_void_p, c_size_t, POINTER(TensorInfo)],
    "gesso_pipeline_load_with_callbacks": [c_char_p, c_size_t, c_int32, c_void_p, c_size_t, POINTER(c_void_p)],
    "gesso_instance_go_on": [c_void_p, ctypes.c_uint64],
    "gesso_instance_go_on_in_branches": [c_void_p, POINTER(ctypes.c_uint64), c_size_t],
    "gesso_instance_create": [c_void_p, POINTER(InstanceOptions), POINTER(c_void_p)],
    "gesso_instance_run": [c_void_p, c_size_t, POINTER(Input), c_size_t, POINTER(c_void_p)],
    "gesso_stream_create": [c_void_p, POINTER(StreamOptions), POINTER(c_void_p)],
    "gesso_stream_run": [c_void_p, c_size_t, POINTER(Input), c_size_t, POINTER(c_void_p), POINTER(ctypes.c_uint64)],
    "gesso_stream_feed": [c_void_p, c_size_t, POINTER(Input)],
    "gesso_stream_feed_kept": [c_void_p, POINTER(Input)],
    "gesso_dataset_open": [c_char_p, c_size_t, POINTER(c_void_p)],
    "gesso_dataset_allow": [c_void_p, c_char_p],
    "gesso_dataset_files": [c_void_p, POINTER(ctypes.c_uint64), c_size_t],
    "gesso_dataset_read_with": [c_void_p, c_size_t, POINTER(Input), c_size_t, POINTER(c_void_p)],
    "gesso_set_store": [c_void_p],
    "gesso_stream_next": [c_void_p, POINTER(c_void_p), POINTER(ctypes.c_uint64)],
    "gesso_stream_readers": [c_void_p, POINTER(c_void_p)],
    "gesso_last_error_info": [POINTER(ErrorInfo)],
    "gesso_result_sample_status": [c_void_p, c_size_t, POINTER(c_char_p)],
    "gesso_result_sample_error": [c_void_p, c_size_t, POINTER(ErrorInfo)],
    "gesso_result_tensors": [c_void_p, c_size_t, c_void_p, c_size_t],
    "gesso_load_operators": [c_char_p],
    "gesso_operators_json": [POINTER(c_char_p)],
    "gesso_author": [c_char_p, c_size_t, POINTER(POINTER(c_uint8)), POINTER(c_size_t)],
}
_FREES = (
    "gesso_string_free",
    "gesso_pipeline_free",
    "gesso_instance_free",
    "gesso_stream_free",
    "gesso_dataset_free",
    "gesso_result_free",
)


def path():
    """The library that is loaded: `GESSO_LIBRARY`, else the one inside of the package."""
    given = os.environ.get("GESSO_LIBRARY")
    if given:
        return given
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return os.path.join(package, NAME)


_loaded = None
_lock = threading.Lock()


def library():
    """The loaded library; loads it at the first call."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load():
    file = path()
    try:
        lib = ctypes.CDLL(file)
    except OSError as error:
        raise ImportError(
            f"Cannot load the Gesso library {file}: {error}. A wheel of Gesso contains it; with a source tree, build it with "
            f"`cargo build --release` and let the environment variable GESSO_LIBRARY name it."
        ) from error
    lib.gesso_last_error.restype = c_char_p
    lib.gesso_version.restype = c_char_p
    lib.gesso_abi_version.restype = ctypes.c_uint32
    if lib.gesso_abi_version() != ABI_VERSION:
        raise ImportError(
            f"{file} has version {lib.gesso_abi_version()} of the C interface; this package needs version {ABI_VERSION}."
        )
    for name, arguments in _SIGNATURES.items():
        getattr(lib, name).argtypes = arguments
    for name in _FREES:
        function = getattr(lib, name)
        function.argtypes, function.restype = [c_void_p], None
    lib.gesso_bytes_free.argtypes, lib.gesso_bytes_free.restype = ([c_void_p, c_size_t], None)
    lib.gesso_pipeline_needs_gpu.argtypes = [c_void_p]
    lib.gesso_pipeline_max_batch_size.argtypes = [c_void_p]
    lib.gesso_pipeline_max_batch_size.restype = lib.gesso_dataset_files.restype = c_size_t
    lib.gesso_result_branch_samples.argtypes = [c_void_p, POINTER(c_size_t)]
    lib.gesso_result_branch_samples.restype = POINTER(ctypes.c_uint64)
    for name in (
        "gesso_pipeline_input_count",
        "gesso_pipeline_output_count",
        "gesso_result_batch_size",
        "gesso_dataset_count",
    ):
        function = getattr(lib, name)
        function.argtypes, function.restype = [c_void_p], c_size_t
    return lib


def numbers(values):
    """Whole numbers for C, and how many."""
    return (ctypes.c_uint64 * len(values))(*values), len(values)


def version():
    """The version of the library."""
    return library().gesso_version().decode()


def last_error():
    """Why the last call of this thread failed."""
    return _error_text(library().gesso_last_error_info)


def sample_error(result, sample):
    """Why a sample of a result failed; empty if it did not."""
    return _error_text(library().gesso_result_sample_error, result, sample)


def _error_text(function, *arguments):
    info = ErrorInfo(ctypes.sizeof(ErrorInfo))
    if function(*arguments, ctypes.byref(info)) != 0:
        return ErrorText((library().gesso_last_error() or b"").decode("utf-8", "replace"))
    names = ("message", "reason", "operator_name", "source_name", "file")
    message, reason, operator, source, file = [getattr(info, name).decode("utf-8", "replace") for name in names]
    text = ErrorText(message)
    text.reason, text.operator, text.source, text.file, text.status = reason, operator, source, file, info.status
    return text


def call(name, *arguments):
    """Calls a function that returns a `gesso_status`; raises `GessoError` unless it is 0."""
    if interrupts.later is not None:
        check_interrupt()
    status = getattr(_loaded or library(), name)(*arguments)
    if status != 0:
        # It may be why the call failed.
        if interrupts.later is not None:
            check_interrupt()
        raise GessoError(last_error(), status)


def operators_json():
    """The operators that there are now, as the text of a JSON array. The library keeps the text."""
    text = c_char_p()
    call("gesso_operators_json", ctypes.byref(text))
    return text.value.decode()


def take_string(name, *arguments):
    """Calls a function whose last argument takes a text that the caller owns; returns it."""
    text = c_void_p()
    call(name, *arguments, ctypes.byref(text))
    try:
        return ctypes.string_at(text).decode()
    finally:
        library().gesso_string_free(text)
