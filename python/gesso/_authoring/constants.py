"""`Constant`: numbers with a type, and the operators that other constants become."""

import numpy as np

from .. import fn
from .._tensors.arrays import is_compatible_array_type, is_mxnet_array, is_numpy_array, is_scalar_shape
from .._tensors.enums import DALIDataType, DALIImageType, DALIInterpType, to_dali_type

bool_types = [DALIDataType.BOOL]
int_types = [
    DALIDataType.INT8,
    DALIDataType.INT16,
    DALIDataType.INT32,
    DALIDataType.INT64,
    DALIDataType.UINT8,
    DALIDataType.UINT16,
    DALIDataType.UINT32,
    DALIDataType.UINT64,
]
float_types = [DALIDataType.FLOAT16, DALIDataType.FLOAT, DALIDataType.FLOAT64]
int_like_types = bool_types + int_types
all_types = int_like_types + float_types
enum_types = [DALIDataType.IMAGE_TYPE, DALIDataType.DATA_TYPE, DALIDataType.INTERP_TYPE]
CPU_ONLY_DEVICE_ID = -99999


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
            raise TypeError(
                f"Expected scalar value of type 'bool', 'int' or 'float', got {type(value).__module__}.{type(value).__name__}"
            )
        if dtype is None:
            kinds = ((bool, DALIDataType.BOOL), (int, DALIDataType.INT32), (float, DALIDataType.FLOAT))
            dtype = next(kind for python, kind in kinds if isinstance(value, python))
        if dtype not in all_types:
            raise TypeError(f"A scalar constant can only have one of the types {all_types}.")
        self.dtype = dtype
        self.value = bool(value) if dtype in bool_types else int(value) if dtype in int_types else float(value)

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
        return self._cast(bool, int_like_types)

    def __int__(self):
        return self._cast(int, int_like_types)

    def __float__(self):
        return self._cast(float, float_types)

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

    for dtype in all_types:
        name = {"FLOAT": "float32"}.get(dtype.name, dtype.name.lower())
        setattr(ScalarConstant, name, caster(name, dtype))


_add_casts()


def _constant_array(value, dtype):
    """A constant array in the widths that pipeline files have: 32 bits, unless a type was asked for."""
    if is_mxnet_array(value):
        value = value.asnumpy()
    if not is_numpy_array(value):
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
                    raise TypeError(
                        f"a list of `{enum.__name__}` has a `{type(value).__name__}` in it, expected one kind"
                    )
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
    if is_compatible_array_type(value):
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
    is_int = actual in int_like_types or actual in enum_types
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

    A number becomes a `ScalarConstant`, which arithmetic takes as it is. Anything else (lists, arrays, enumerations),
    and a number with `shape`, `layout` or `device`, becomes a `fn.constant` operator: the same tensor for every sample.
    Arrays of 64-bit numbers become 32 bits wide unless `dtype` says otherwise.
    """
    is_enum = isinstance(value, (DALIDataType, DALIImageType, DALIInterpType)) or dtype in enum_types
    is_array = is_compatible_array_type(value) and len(value.shape) > 0
    is_plain = not (is_enum or is_array or isinstance(value, (list, tuple)) or kwargs)
    if is_plain and device is None and layout is None and is_scalar_shape(shape):
        return ScalarConstant(value, dtype)
    return ConstantNode(device, value, dtype, shape, layout, **kwargs)
