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


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _DELETER)]


# DLPack's kinds of numbers, by numpy's.
_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
# What capsules keep, by the addresses of their structures.
_kept = {}


@_DELETER
def _release(address):
    _kept.pop(address, None)


# With bare addresses, as a capsule that is being freed must not be counted again.
_is_unused = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _DELETER]


@_DELETER
def _dropped(capsule):
    if _is_unused(capsule, b"dltensor"):
        _kept.pop(_pointer_of(capsule, b"dltensor"), None)


def to_capsule(owner, device, address, shape, dtype, strides=None):
    """A capsule with a tensor at `address`, which keeps `owner` until its consumer lets it go. `strides` are in
    bytes."""
    extents = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    steps = strides and (ctypes.c_int64 * len(shape))(*(stride // dtype.itemsize for stride in strides))
    kind = _Type(_CODES[dtype.kind], 8 * dtype.itemsize, 1)
    tensor = _Tensor(address, _Device(*device), len(shape), kind, extents, steps or None, 0)
    managed = _Managed(tensor, None, _release)
    _kept[ctypes.addressof(managed)] = (managed, extents, steps, owner)
    return _new_capsule(ctypes.addressof(managed), b"dltensor", _dropped)
