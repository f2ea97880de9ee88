"""DLPack without an extension module: numpy exports and imports host memory; here is what numpy does not do."""

import ctypes
import enum
import struct

import numpy as np

from .._threads.interrupts import uninterrupted


class DLDeviceType(enum.IntEnum):
    """Kinds of memory, as DLPack numbers them."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3


class _Capsule:
    """Lends a bare capsule to `numpy.from_dlpack`, which wants an object with methods."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return self.capsule


_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]


def is_capsule(value):
    """Whether `value` is an unused DLPack capsule."""
    return type(value).__name__ == "PyCapsule" and bool(_is_valid(value, b"dltensor"))


def from_capsule(capsule):
    """The host tensor in a capsule, without a copy."""
    return np.from_dlpack(_Capsule(capsule))


def device_of(value):
    """(kind, number) of the memory that a DLPack object is in, or None if it is no such object."""
    method = getattr(value, "__dlpack_device__", None)
    return tuple(int(x) for x in method()) if method is not None else None


def is_host(value):
    """Whether a DLPack object is in memory that the host reads."""
    device = device_of(value)
    return device is not None and device[0] in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost)


HOST = (DLDeviceType.kDLCPU, 0)


def check_device(own, wanted):
    """Raises unless what is in the memory `own` is wanted there. Both are a kind and a number; `wanted` may be None."""
    if wanted is not None and wanted != own:
        raise BufferError(
            f"a tensor for DLPack: it is on the device {_shown(own)}, and was asked for on {_shown(wanted)}, where it "
            "cannot be given"
        )


def _shown(device):
    """A device as messages have it: its numbers, or what stands in its place."""
    is_one = isinstance(device, tuple) and all(isinstance(part, int) for part in device)
    return str(tuple(map(int, device))) if is_one else repr(device)[:80]


# A `DLManagedTensor`: the address of the elements; the kind and number of the device; the number of dimensions; code,
# bits and lanes of the type; the addresses of shape and strides; an offset; a context; the deleter.
_MANAGED = struct.Struct("=QiiiBBHQQQQQ")
_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
# DLPack's kinds of numbers, by numpy's.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
# What capsules keep, by the addresses of their structures.
_kept = {}


# No function of Python's: a Ctrl-C that came in it would be lost.
_release = _DELETER(_kept.pop)
_RELEASE = ctypes.cast(_release, ctypes.c_void_p).value

# With bare addresses, as a capsule that is being freed must not be counted again.
_is_unused = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _DELETER]


@_DELETER
@uninterrupted
def _dropped(capsule):
    if _is_unused(capsule, b"dltensor"):
        _kept.pop(_pointer_of(capsule, b"dltensor"), None)


def to_capsule(owner, device, address, shape, dtype, strides=None):
    """A capsule with a tensor at `address`, which keeps `owner` until its consumer lets it go. `strides` are in
    bytes."""
    size, ndim = dtype.itemsize, len(shape)
    numbers = shape if strides is None else (*shape, *(stride // size for stride in strides))
    # Behind the structure are shape and strides.
    memory = (ctypes.c_char * (_MANAGED.size + 8 * len(numbers)))()
    start = ctypes.addressof(memory)
    extents = start + _MANAGED.size
    steps = 0 if strides is None else extents + 8 * ndim
    kind = _CODES[dtype.kind], 8 * size, 1
    _MANAGED.pack_into(memory, 0, address, *device, ndim, *kind, extents, steps, 0, 0, _RELEASE)
    struct.pack_into(f"{len(numbers)}q", memory, _MANAGED.size, *numbers)
    _kept[start] = (memory, owner)
    return _new_capsule(start, b"dltensor", _dropped)
