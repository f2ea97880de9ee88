"""`Stream`: a CUDA stream that work is to be ordered by. What operators return is written already, so that a stream
is only needed for what others do with it."""

import ctypes
import functools
import threading
import weakref

from .._threads.fork import Process
from .._threads.interrupts import uninterrupted
from .device import Device, gpu_count

_NON_BLOCKING = 1


@functools.cache
def _driver():
    if not gpu_count():
        raise RuntimeError("there is no GPU on this host, so there are no CUDA streams")
    return ctypes.CDLL("libcuda.so.1")


def _call(name, *arguments):
    code = getattr(_driver(), name)(*arguments)
    if code != 0:
        raise RuntimeError(f"{name} of CUDA's driver failed with the number {code}")


class _Context:
    """A GPU's context, from now until `release`; without it the GPU's streams are gone. `with` makes it that of this
    thread."""

    def __init__(self, number):
        self._device, self._context, self._process = ctypes.c_int(), ctypes.c_void_p(), Process()
        _call("cuDeviceGet", ctypes.byref(self._device), number)
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)

    def __enter__(self):
        _call("cuCtxPushCurrent_v2", self._context)

    def __exit__(self, *_):
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    @uninterrupted
    def release(self, stream):
        """Gives it back, and before that ends a stream of it, unless that is None. A process that was forked has
        neither."""
        if not self._process.is_here():
            return
        if stream is not None:
            _driver().cuStreamDestroy_v2(ctypes.c_void_p(stream))
        _driver().cuDevicePrimaryCtxRelease_v2(self._device)


def _handle_of(value):
    """The address of somebody else's stream."""
    if isinstance(value, int):
        return value
    if hasattr(value, "__cuda_stream__"):
        protocol = value.__cuda_stream__
        _, handle = protocol() if callable(protocol) else protocol
        return handle
    for name in ("handle", "cuda_stream", "ptr"):
        if hasattr(value, name):
            return int(getattr(value, name))
    raise TypeError(f"expected a CUDA stream or its address, found a `{type(value).__name__}`")


class Stream:
    """A stream of a GPU: a new one, or somebody else's (`stream`), which is kept alive."""

    def __init__(self, *, device_id=None, stream=None):
        device = Device("gpu", device_id) if _driver() else None
        self.device_id, self._kept = device.device_id, stream
        self.handle = None if stream is None else _handle_of(stream)
        self._context, made = _Context(self.device_id), ctypes.c_void_p()
        if stream is None:
            with self._context:
                _call("cuStreamCreate", ctypes.byref(made), _NON_BLOCKING)
            self.handle = made.value
        # Not at the end of the program: others may use the stream until then.
        weakref.finalize(self, self._context.release, made.value).atexit = False

    def synchronize(self):
        """Waits until all work of the stream is done."""
        with self._context:
            _call("cuStreamSynchronize", ctypes.c_void_p(self.handle))

    def __cuda_stream__(self):
        return 0, self.handle

    def __eq__(self, other):
        try:
            return self.handle == _handle_of(other)
        except TypeError:
            return NotImplemented

    def __hash__(self):
        return hash(self.handle)

    def __repr__(self):
        return f"Stream(handle={self.handle:#x}, device_id={self.device_id})"


def stream(*, stream=None, device_id=None):
    """A new stream, or one for `stream`: itself, its address, or an object of another library."""
    return stream if isinstance(stream, Stream) else Stream(device_id=device_id, stream=stream)


class _Thread(threading.local):
    def __init__(self):
        self.stream = None


class _Process:
    stream = None


_thread = _Thread()


def _as_stream(value):
    return None if value is None else stream(stream=value)


def set_default_stream(stream):
    """The stream of all threads that have none of their own; None: a new one for each context."""
    _Process.stream = _as_stream(stream)


def get_default_stream(device_id=None):
    """What `set_default_stream` was told."""
    return _Process.stream


def set_current_stream(stream):
    """The stream of this thread; None: the default one."""
    _thread.stream = _as_stream(stream)


def get_current_stream(device_id=None):
    """The stream of this thread, else the default one, else None."""
    return _thread.stream if _thread.stream is not None else _Process.stream
