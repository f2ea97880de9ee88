"""Arrays in memory of a GPU, as the library makes them: looked at and lent without a copy, brought to the host when
somebody reads them."""

import contextlib
import ctypes
import math
import os
import sys
import time
from collections import deque

import numpy as np

from .._threads.background import Ahead
from .._threads.fork import Process
from .._threads.interrupts import uninterrupted
from . import dlpack


class _Driver:
    """The few functions of CUDA's driver that copy and wait, in the context that all libraries of a process share."""

    def __init__(self):
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise RuntimeError(f"memory of a GPU cannot be read on this host, which has no driver: {error}") from None
        self._contexts = {}
        self._call("cuInit", 0)

    def _call(self, name, *arguments):
        status = getattr(self._library, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{name} of CUDA's driver: {(text.value or b'').decode() or status}")

    def _context(self, device_id):
        if device_id not in self._contexts:
            device, context = ctypes.c_int(), ctypes.c_void_p()
            self._call("cuDeviceGet", ctypes.byref(device), device_id)
            self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self._contexts[device_id] = context
        return self._contexts[device_id]

    def run(self, device_id, name, *arguments):
        """Calls a function with the context of a device."""
        self._call("cuCtxPushCurrent_v2", self._contexts.get(device_id) or self._context(device_id))
        try:
            self._call(name, *arguments)
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


_driver = None


def driver():
    """CUDA's driver, opened when it is first needed."""
    global _driver
    if _driver is None:
        _driver = _Driver()
    return _driver


# CUDA's default stream, for which all others wait.
LEGACY_STREAM = 1


def wait_for(device_id, stream):
    """Waits until what was put into a stream, as `__cuda_array_interface__` names it, is done."""
    if stream is not None:
        driver().run(device_id, "cuStreamSynchronize", ctypes.c_void_p(stream))


def device_of_address(address):
    """The number of the GPU whose memory an address is in."""
    found = ctypes.c_int()
    # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    driver().run(0, "cuPointerGetAttribute", ctypes.byref(found), 9, ctypes.c_uint64(address))
    return found.value


class _Returns:
    """Takes memory back that others may still work on. A thread waits for the GPU, so that a training loop which lets a
    batch go does not; one wait is for all that came meanwhile."""

    # So much may wait there: a loop that is ahead of its GPU by more waits itself, or its batches would fill the GPU's
    # memory.
    MOST = 8
    # Seconds in which more may come before the thread waits for the GPU. To wake it takes longer than all else that
    # is done for a small batch, and it keeps the interpreter from the loop.
    PAUSE = 0.001

    def __init__(self):
        self._waiting, self._thread = deque(), Ahead()
        # Whether the thread will look at what is given now.
        self._is_awake = False
        # Whether its thread is one of this process.
        self.is_here = Process().is_here

    def give(self, owner, device_id):
        """Lets `owner` go when what is under way on its GPU is done."""
        self._waiting.append((owner, device_id))
        # At the end of the program no thread runs any more.
        if len(self._waiting) > self.MOST or sys.is_finalizing():
            self._take()
        elif not self._is_awake:
            self._is_awake = True
            try:
                self._thread.submit(self._take_soon)
            except BaseException:  # a Ctrl-C
                self._is_awake = False
                raise

    def _take_soon(self):
        time.sleep(self.PAUSE)
        # Before it looks: what comes behind that wakes it again.
        self._is_awake = False
        self._take()

    def _take(self):
        taken = []
        # Another thread may take some, too.
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._waiting.popleft())
        for device_id in {device_id for _, device_id in taken}:
            driver().run(device_id, "cuCtxSynchronize")


# Those of this process.
_returns = None


def _make_returns():
    """Makes them before they are needed: where an object goes away is no place to start a thread."""
    global _returns
    _returns = _Returns()
    return _returns


def _forget_returns():
    global _returns
    _returns = None


os.register_at_fork(after_in_child=_forget_returns)


class Memory:
    """What keeps memory of a GPU: `owner`. Whoever got a view of it may have work under way that the owner does not
    know of; then the GPU is waited for before the memory is used again."""

    __slots__ = ("owner", "device_id", "lent", "_returns")

    def __init__(self, owner, device_id):
        self.owner, self.device_id, self.lent, self._returns = owner, device_id, False, _returns or _make_returns()

    def __del__(self):
        if self.lent:
            self._give_back()

    @uninterrupted
    def _give_back(self):
        if self._returns.is_here():
            self._returns.give(self.owner, self.device_id)


class DeviceArray:
    """A tensor in memory of a GPU, ready to be read."""

    __slots__ = ("address", "shape", "dtype", "strides", "memory", "_host", "__weakref__")

    def __init__(self, address, shape, dtype, memory, strides=None):
        self.address, self.shape, self.dtype, self.memory = address, tuple(shape), np.dtype(dtype), memory
        # In bytes; None: dense.
        self.strides = strides
        self._host = None

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)

    @property
    def nbytes(self):
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def device_id(self):
        return self.memory.device_id

    def host(self):
        """The same in host memory: copied when it is first asked for."""
        if self._host is None:
            self._host = self._fetched()
        return self._host

    def _fetched(self):
        array = np.empty(self.shape, self.dtype)
        if not self.size:
            return array
        if self.strides is None:
            target = ctypes.byref(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
            size = ctypes.c_size_t(array.nbytes)
            driver().run(self.device_id, "cuMemcpyDtoH_v2", target, ctypes.c_uint64(self.address), size)
            return array
        for i, part in enumerate(self.parts()):
            array[i] = part._fetched()
        return array

    def parts(self):
        """The arrays along the first dimension."""
        step = self.strides[0] if self.strides else self.nbytes // max(self.shape[0], 1)
        return [
            DeviceArray(self.address + i * step, self.shape[1:], self.dtype, self.memory) for i in range(self.shape[0])
        ]

    def view(self, dtype):
        """The same bytes as another type of that size."""
        return DeviceArray(self.address, self.shape, dtype, self.memory, self.strides)

    def reshape(self, *shape):
        """The same elements in another shape; only of a dense array."""
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        if self.strides is not None or int(np.prod(shape, dtype=np.int64)) != self.size:
            raise RuntimeError(f"an array of shape {self.shape} on a GPU cannot be seen as {tuple(shape)}")
        return DeviceArray(self.address, shape, self.dtype, self.memory)

    def squeeze(self, axes):
        """Without these dimensions of extent 1."""
        keep = [i for i in range(self.ndim) if i not in axes]
        strides = self.strides and tuple(self.strides[i] for i in keep)
        return DeviceArray(self.address, [self.shape[i] for i in keep], self.dtype, self.memory, strides)

    def copied_to(self, address):
        """Copies the elements to an address on the host or on a GPU, dense; a copy on a GPU may still be under way
        then."""
        self.memory.lent = True
        if self.strides is not None:
            for i, part in enumerate(self.parts()):
                part.copied_to(address + i * part.nbytes)
        elif self.size:
            driver().run(self.device_id, "cuMemcpy", *_pointers(address, self.address), ctypes.c_size_t(self.nbytes))

    def interface(self):
        """As `__cuda_array_interface__`, for who keeps the array until his work is done."""
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            # A consumer need not wait for any stream: the memory was written when the batch was done.
            "data": (self.address, False),
            "strides": self.strides,
            "stream": None,
        }

    @property
    def __cuda_array_interface__(self):
        self.memory.lent = True
        return self.interface()

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        own = self.__dlpack_device__()
        if dl_device == dlpack.HOST and copy is not False:
            return self._fetched().__dlpack__()
        dlpack.check_device(own, dl_device)
        array = stacked([self]).reshape(self.shape) if copy else self
        array.memory.lent = True
        return dlpack.to_capsule(array, own, array.address, array.shape, array.dtype, array.strides)

    def __dlpack_device__(self):
        return (dlpack.DLDeviceType.kDLCUDA, self.memory.device_id)

    def __array__(self, dtype=None, copy=None):
        array = self.host()
        return array.astype(dtype) if dtype is not None else array


def _pointers(to, start):
    return ctypes.c_uint64(to), ctypes.c_uint64(start)


def side_by_side(arrays):
    """One array with all of them, of one shape, when they lie at even distances; else None."""
    first, nbytes = arrays[0], arrays[0].nbytes
    step = arrays[1].address - first.address if len(arrays) > 1 else nbytes
    if not nbytes or step < nbytes:
        return None
    address = first.address
    for array in arrays:
        if array.address != address or array.strides or array.shape != first.shape or array.memory is not first.memory:
            return None
        address += step
    shape = (len(arrays), *first.shape)
    if step == nbytes:
        return DeviceArray(first.address, shape, first.dtype, first.memory)
    strides, size = [], first.dtype.itemsize
    for extent in reversed(first.shape):
        strides.insert(0, size)
        size *= extent
    return DeviceArray(first.address, shape, first.dtype, first.memory, (step, *strides))


class _Allocation:
    """Memory of a GPU that is freed with this."""

    def __init__(self, device_id, size):
        self._device_id, self._process = device_id, Process()
        address = ctypes.c_uint64()
        driver().run(device_id, "cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.address = address.value

    @uninterrupted
    def __del__(self):
        if hasattr(self, "address") and self._process.is_here():
            driver().run(self._device_id, "cuMemFree_v2", ctypes.c_uint64(self.address))


def stacked(arrays):
    """A copy of all of them, of one shape, as one dense array on the GPU."""
    first, each = arrays[0], arrays[0].nbytes
    allocation = _Allocation(first.device_id, len(arrays) * each)
    for i, array in enumerate(arrays):
        array.copied_to(allocation.address + i * each)
    wait_for(first.device_id, LEGACY_STREAM)
    return DeviceArray(
        allocation.address, (len(arrays), *first.shape), first.dtype, Memory(allocation, first.device_id)
    )


def on_host(array):
    """An array in host memory, wherever it was."""
    return array.host() if isinstance(array, DeviceArray) else array
