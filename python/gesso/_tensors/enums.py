"""The enumerations that pipeline files hold, with DALI's names and numbers."""

import enum
import warnings

import numpy as np


class _Numbered(enum.Enum):
    """A named number that is no `int`: an argument that wants an integer does not silently take one."""

    def __int__(self):
        # `value` is looked up by code of `Enum`.
        return self._value_

    __index__ = __int__
    # Members are single objects. That of `Enum` hashes their names, at each look into a table.
    __hash__ = object.__hash__

    def __repr__(self):
        return f"<{type(self).__name__}.{self.name}: {self.value}>"

    def __str__(self):
        return f"{type(self).__name__}.{self.name}"


class DALIDataType(_Numbered):
    """Element types of tensors (0 to 11), and types of arguments."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    _BOOL_VEC = 13
    _INT32_VEC = 14
    _STRING_VEC = 15
    _FLOAT_VEC = 16
    FEATURE = 17
    _FEATURE_VEC = 18
    _FEATURE_DICT = 19
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24
    _TENSOR_LAYOUT_VEC = 25
    _DATA_TYPE_VEC = 26
    _INT64_VEC = 27

    def __call__(self):
        """`tensor.dtype` was a method once."""
        warnings.warn("Calling '.dtype()' is deprecated, please use '.dtype' instead", Warning, stacklevel=2)
        return self


class DALIImageType(_Numbered):
    """Colour spaces of images."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(_Numbered):
    """Ways to interpolate."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class TensorLayout(str):
    """A layout such as `HWC`: one letter for each dimension."""


_NUMPY = {
    DALIDataType.UINT8: np.uint8,
    DALIDataType.UINT16: np.uint16,
    DALIDataType.UINT32: np.uint32,
    DALIDataType.UINT64: np.uint64,
    DALIDataType.INT8: np.int8,
    DALIDataType.INT16: np.int16,
    DALIDataType.INT32: np.int32,
    DALIDataType.INT64: np.int64,
    DALIDataType.FLOAT16: np.float16,
    DALIDataType.FLOAT: np.float32,
    DALIDataType.FLOAT64: np.float64,
    DALIDataType.BOOL: np.bool_,
}
# Enumerations are data, too: a batch of them has 32-bit numbers.
_ENUM_TENSORS = (DALIDataType.DATA_TYPE, DALIDataType.IMAGE_TYPE, DALIDataType.INTERP_TYPE)
_BY_NUMPY = {np.dtype(kind): dtype for dtype, kind in _NUMPY.items()}
_BY_NAME = {
    "bool": DALIDataType.BOOL,
    "bool_": DALIDataType.BOOL,
    "boolean": DALIDataType.BOOL,
    "sbyte": DALIDataType.INT8,
    "byte": DALIDataType.UINT8,
    "ubyte": DALIDataType.UINT8,
    "short": DALIDataType.INT16,
    "ushort": DALIDataType.UINT16,
    "long": DALIDataType.INT64,
    "ulong": DALIDataType.UINT64,
    "half": DALIDataType.FLOAT16,
    "float": DALIDataType.FLOAT,
    "double": DALIDataType.FLOAT64,
    **{kind.__name__: dtype for dtype, kind in _NUMPY.items()},
}


def to_numpy_type(dtype):
    """The numpy type of the elements of a tensor of `dtype`."""
    if dtype in _ENUM_TENSORS:
        return np.int32
    return _NUMPY[dtype]


def to_dali_type(framework_type):
    """The `DALIDataType` for an element type of numpy, PyTorch or another framework."""
    name = framework_type.__qualname__ if isinstance(framework_type, type) else str(framework_type)
    name = name.removeprefix("torch.")
    try:
        return _BY_NAME[name]
    except KeyError:
        raise TypeError(f"`{framework_type}` is no data type that this package knows") from None


def dtype_of(array):
    """The `DALIDataType` of a numpy array's elements, or None."""
    return _BY_NUMPY.get(array.dtype)
