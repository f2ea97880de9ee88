"""The little of CUDA's driver that tests and measurements need: is there a GPU, its memory, regions that a server can
map.

Called by ctypes, so that no package is needed. One device, its primary context, one thread.
"""

import base64
import ctypes

import numpy as np

IPC_HANDLE_BYTES = 64
# What the driver hands out in one piece: smaller allocations share one, and mapping one would show the others.
PIECE_BYTES = 2 << 20
NO_GPU = "no GPU"


class CudaError(RuntimeError):
    """A call of the driver failed, or there is no driver."""


def missing():
    """Why nothing can run on a GPU here; None where it can."""
    try:
        Driver()
    except CudaError as error:
        return str(error)
    return None


class Driver:
    """A device, by default the first, with its primary context current in the thread that made this."""

    def __init__(self, ordinal=0):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError(f"{NO_GPU}: {error}") from None
        if status := self._library.cuInit(0):
            raise CudaError(f"{NO_GPU}: cuInit returned {status}")
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if count.value <= ordinal:
            raise CudaError(f"{NO_GPU if ordinal == 0 else f'no GPU {ordinal}'}: the driver knows of {count.value}")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), ordinal)
        self._context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.make_current()

    def make_current(self):
        """For the thread that calls; each of several drivers in one thread before it is used."""
        self._call("cuCtxSetCurrent", self._context)

    def _call(self, name, *arguments):
        if status := getattr(self._library, name)(*arguments):
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(text))
            raise CudaError(f"{name}: {(text.value or b'unknown').decode()} ({status})")

    @property
    def name(self):
        text = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode()

    def used_bytes(self):
        """Memory of the device that is in use, by all processes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return total.value - free.value

    def synchronize(self):
        """Waits for everything that was started in the context."""
        self._call("cuCtxSynchronize")

    def allocate(self, size):
        return Region(self, size)


class Region:
    """Device memory of this process that another one may map; freed by `free` or at the end of a `with` block."""

    def __init__(self, driver, size):
        self.size = size
        self._driver = driver
        self._address = ctypes.c_uint64()
        whole = -(-max(size, 1) // PIECE_BYTES) * PIECE_BYTES
        driver._call("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(whole))

    @property
    def handle(self):
        """What a Triton client hands to `register_cuda_shared_memory`: the IPC handle in base64."""
        raw = (ctypes.c_ubyte * IPC_HANDLE_BYTES)()
        self._driver._call("cuIpcGetMemHandle", raw, self._address)
        return base64.b64encode(bytes(raw))

    def write(self, array, offset=0):
        data = np.ascontiguousarray(array)
        self._inside(offset, data.nbytes)
        place = ctypes.c_uint64(self._address.value + offset)
        self._driver._call("cuMemcpyHtoD_v2", place, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))

    def read(self, dtype, shape, offset=0):
        array = np.empty(shape, dtype)
        self._inside(offset, array.nbytes)
        place = ctypes.c_uint64(self._address.value + offset)
        self._driver._call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), place, ctypes.c_size_t(array.nbytes))
        return array

    def _inside(self, offset, size):
        if offset < 0 or offset + size > self.size:
            raise ValueError(f"bytes {offset} to {offset + size} of a region of {self.size}")

    def free(self):
        if self._address.value:
            self._driver._call("cuMemFree_v2", self._address)
            self._address.value = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()
