"""Types and constants that pipelines are written with. DALI's names."""

import ctypes
from enum import Enum, unique

import numpy as np

from ._enums import (  # noqa: F401
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    TensorLayout,
    to_dali_type,
    to_numpy_type,
)

for _enum in (DALIDataType, DALIImageType, DALIInterpType):
    for _name, _member in _enum.__members__.items():
        globals()[_name] = _member
del _enum, _name, _member

_DALIDataType = DALIDataType
NCHW, NHWC, NFHWC, NFCHW, SAME = (TensorLayout(name) for name in ("CHW", "HWC", "FHWC", "FCHW", ""))
CPU_ONLY_DEVICE_ID = -99999

_bool_types = [DALIDataType.BOOL]
_int_types = [
    DALIDataType.INT8,
    DALIDataType.INT16,
    DALIDataType.INT32,
    DALIDataType.INT64,
    DALIDataType.UINT8,
    DALIDataType.UINT16,
    DALIDataType.UINT32,
    DALIDataType.UINT64,
]
_float_types = [DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64]
_int_like_types = _bool_types + _int_types
_all_types = _int_like_types + _float_types
_enum_types = [DALIDataType.IMAGE_TYPE, DALIDataType.DATA_TYPE, DALIDataType.INTERP_TYPE]


@unique
class PipelineAPIType(Enum):
    """How a pipeline is run: by `run`, by an iterator, or by `schedule_run` and its companions."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


class CUDAStream:
    """A CUDA stream by its address."""

    def __init__(self, ptr=0):
        self._ptr = ptr

    @property
    def ptr(self):
        """The address."""
        return self._ptr


class SampleInfo:
    """Which sample a source of `fn.external_source` is asked for.

    `idx_in_epoch` and `idx_in_batch` count samples, `iteration` batches of the epoch `epoch_idx`, all from 0.
    """

    def __init__(self, idx_in_epoch, idx_in_batch, iteration, epoch_idx):
        self.idx_in_epoch = idx_in_epoch
        self.idx_in_batch = idx_in_batch
        self.iteration = iteration
        self.epoch_idx = epoch_idx


class BatchInfo:
    """Which batch a source of `fn.external_source` is asked for: number `iteration` of the epoch `epoch_idx`, both from 0."""

    def __init__(self, iteration, epoch_idx):
        self.iteration = iteration
        self.epoch_idx = epoch_idx


class ScalarConstant:
    """A number with a type, for arithmetic with operators' results. Made by `Constant`.

    `Constant(5).uint8()` takes part in type promotion as a `uint8`.
    """

    def __init__(self, value, dtype=None):
        self.shape = []
        own = getattr(value, "dtype", None)
        if own is not None:
            value = value.item()
            dtype = to_dali_type(own) if dtype is None else dtype
        if not isinstance(value, (bool, int, float)):
            raise TypeError(f"Expected scalar value of type 'bool', 'int' or 'float', got {type(value).__module__}.{type(value).__name__}")
        if dtype is None:
            kinds = ((bool, DALIDataType.BOOL), (int, DALIDataType.INT32), (float, DALIDataType.FLOAT))
            dtype = next(kind for python, kind in kinds if isinstance(value, python))
        if dtype not in _all_types:
            raise TypeError(f"A scalar constant can only have one of the types {_all_types}.")
        self.dtype = dtype
        self.value = bool(value) if dtype in _bool_types else int(value) if dtype in _int_types else float(value)

    def __eq__(self, other):
        if isinstance(other, ScalarConstant):
            return self.value == other.value and self.dtype == other.dtype
        return other.__eq__(self)

    def __ne__(self, other):
        if isinstance(other, ScalarConstant):
            return self.value != other.value or self.dtype != other.dtype
        return other.__ne__(self)

    __hash__ = None

    def _cast(self, target, allowed):
        if self.dtype in allowed:
            return target(self.value)
        raise TypeError(
            f"A scalar constant of type {self.dtype} must be converted to one of {allowed} before it becomes a Python `{target.__name__}`."
        )

    def __bool__(self):
        return self._cast(bool, _int_like_types)

    def __int__(self):
        return self._cast(int, _int_like_types)

    def __float__(self):
        return self._cast(float, _float_types)

    def __str__(self):
        return f"{self.value}:{self.dtype}"

    def __repr__(self):
        return f"{self.value}"


def _add_casts():
    def caster(name, dtype):
        def cast(self):
            return ScalarConstant(self.value, dtype)

        cast.__name__, cast.__doc__ = name, f"The same number as {dtype}."
        return cast

    for dtype in _all_types:
        name = {"FLOAT": "float32"}.get(dtype.name, dtype.name.lower())
        setattr(ScalarConstant, name, caster(name, dtype))


_add_casts()


def _is_numpy_array(value):
    return isinstance(value, (np.ndarray, np.generic))


def _is_torch_tensor(value):
    return "torch.Tensor" in str(type(value))


def _is_mxnet_array(value):
    return "mxnet.ndarray.ndarray.NDArray" in str(type(value))


def _is_cupy_array(value):
    return "cupy" in str(type(value)) and "ndarray" in str(type(value))


def _is_compatible_array_type(value):
    return _is_numpy_array(value) or _is_torch_tensor(value) or _is_mxnet_array(value)


def _is_scalar_shape(shape):
    return shape is None or shape == 1 or tuple(shape) in ((), (1,))


def _is_scalar_value(value):
    if value is None or isinstance(value, (bool, int, float)):
        return True
    return not _is_compatible_array_type(value) or _is_scalar_shape(value.shape)


def _raw_cuda_stream(stream):
    """The address of a stream, whichever framework's it is."""
    if stream is None or isinstance(stream, int):
        return stream
    if isinstance(stream, ctypes.c_void_p):
        return stream.value
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        return protocol()[1]
    for name in ("cuda_stream", "ptr", "handle"):
        address = getattr(stream, name, None)
        if address is not None:
            return address
    raise TypeError(f"Cannot interpret the object {stream} as a CUDA stream.")


def _constant_array(value, dtype):
    """A constant array in the widths that pipeline files have: 32 bits, unless a type was asked for."""
    if _is_mxnet_array(value):
        value = value.asnumpy()
    if not _is_numpy_array(value):
        return value
    if value.dtype == np.float64:
        return value.astype(np.float32)
    if dtype is None and value.dtype in (np.int64, np.uint64):
        limits = np.iinfo(np.int32 if value.dtype == np.int64 else np.uint32)
        if value.size and (value.min() < limits.min or value.max() > limits.max):
            wrong = value.min() if value.min() < limits.min else value.max()
            raise OverflowError(f"Integer {wrong} out of range for {limits.dtype}")
        return value.astype(limits.dtype)
    return value


_ENUM_KINDS = (
    (DALIDataType, DALIDataType.DATA_TYPE),
    (DALIImageType, DALIDataType.IMAGE_TYPE),
    (DALIInterpType, DALIDataType.INTERP_TYPE),
)


def _type_of_values(values):
    """The type of a constant made of these Python values."""
    for enum, dtype in _ENUM_KINDS:
        if any(isinstance(value, enum) for value in values):
            for value in values:
                if not isinstance(value, enum):
                    raise TypeError(f"a list of `{enum.__name__}` has a `{type(value).__name__}` in it, expected one kind")
            return dtype
    for value in values:
        if not isinstance(value, (bool, int, float)):
            raise TypeError(f"Unexpected type: {type(value)}")
    if not values or any(isinstance(value, float) for value in values):
        return DALIDataType.FLOAT
    if all(isinstance(value, bool) for value in values):
        return DALIDataType.BOOL
    return DALIDataType.INT32


def ConstantNode(device, value, dtype, shape, layout, **kwargs):
    """A `fn.constant` operator that makes `value` for every sample."""
    from . import fn

    if _is_compatible_array_type(value):
        value = _constant_array(value, dtype)
        actual = to_dali_type(value.dtype)
        if shape is not None:
            value = value.reshape(shape)
        shape = list(value.shape) if shape is None else shape
        data = value.flatten().tolist()
    else:
        is_list = isinstance(value, (list, tuple))
        data = list(value) if is_list else [value]
        actual = _type_of_values(data)
        if shape is None:
            shape = (len(value),) if is_list else ()
    is_int = actual in _int_like_types or actual in _enum_types
    data = [int(number) for number in data] if is_int else data
    return fn.constant(
        device=device or "cpu",
        fdata=None if is_int else data,
        idata=data if is_int else None,
        shape=shape,
        dtype=actual if dtype is None else dtype,
        layout=layout,
        **kwargs,
    )


def Constant(value, dtype=None, shape=None, layout=None, device=None, **kwargs):
    """A constant for use in a pipeline.

    A number becomes a `ScalarConstant`, which arithmetic takes as it is. Anything else (lists, arrays, enumerations), and a number with
    `shape`, `layout` or `device`, becomes a `fn.constant` operator: the same tensor for every sample. Arrays of 64-bit numbers become
    32 bits wide unless `dtype` says otherwise.
    """
    is_enum = isinstance(value, (DALIDataType, DALIImageType, DALIInterpType)) or dtype in _enum_types
    is_array = _is_compatible_array_type(value) and len(value.shape) > 0
    is_plain = not (is_enum or is_array or isinstance(value, (list, tuple)) or kwargs)
    if is_plain and device is None and layout is None and _is_scalar_shape(shape):
        return ScalarConstant(value, dtype)
    return ConstantNode(device, value, dtype, shape, layout, **kwargs)
