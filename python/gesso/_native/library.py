"""The shared library: where it is, calls of its functions, its errors. Knows nothing of pipelines in Python."""

import ctypes
import os
import threading
from ctypes import c_char_p, c_void_p

from .._threads import interrupts
from .._threads.interrupts import check_interrupt
from .declarations import ABI_VERSION, ErrorInfo, declare
from .declarations import CPU as CPU
from .declarations import GPU as GPU

NAME = "libtriton_gesso.so"


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
    lib.gesso_abi_version.restype = ctypes.c_uint32
    if lib.gesso_abi_version() != ABI_VERSION:
        raise ImportError(
            f"{file} has version {lib.gesso_abi_version()} of the C interface; this package needs version {ABI_VERSION}."
        )
    declare(lib)
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
