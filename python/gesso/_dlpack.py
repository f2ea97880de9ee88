"""DLPack without an extension module: numpy exports and imports host memory; here is what numpy does not do."""

import ctypes
import enum

import numpy as np


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
