"""The C interface as ctypes has it: numbers, structures, and the arguments and results of functions. It must not need
the rest of the package: programs that load a library by themselves take it alone."""

import ctypes
from ctypes import POINTER, c_char_p, c_int32, c_int64, c_size_t, c_uint8, c_void_p

ABI_VERSION = 1
MAX_NDIM = 16
CPU, GPU = 0, 1


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
# Those that return a number of things.
_COUNTS = (
    "gesso_pipeline_input_count",
    "gesso_pipeline_output_count",
    "gesso_result_batch_size",
    "gesso_dataset_count",
)


def declare(library):
    """Says what the functions of a loaded library take and return."""
    for name, arguments in _SIGNATURES.items():
        getattr(library, name).argtypes = arguments
    for name in _FREES:
        function = getattr(library, name)
        function.argtypes, function.restype = [c_void_p], None
    for name in _COUNTS:
        function = getattr(library, name)
        function.argtypes, function.restype = [c_void_p], c_size_t
    library.gesso_abi_version.restype = ctypes.c_uint32
    library.gesso_last_error.restype = library.gesso_version.restype = c_char_p
    library.gesso_bytes_free.argtypes, library.gesso_bytes_free.restype = ([c_void_p, c_size_t], None)
    library.gesso_pipeline_needs_gpu.argtypes = [c_void_p]
    library.gesso_pipeline_max_batch_size.argtypes = [c_void_p]
    library.gesso_pipeline_max_batch_size.restype = library.gesso_dataset_files.restype = c_size_t
    library.gesso_result_branch_samples.argtypes = [c_void_p, POINTER(c_size_t)]
    library.gesso_result_branch_samples.restype = POINTER(ctypes.c_uint64)
