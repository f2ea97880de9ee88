"""Types and constants that pipelines are written with. DALI's names."""

import ctypes
from enum import Enum, unique

# Those that begin with `_` are DALI's, which its own programs use.
from ._authoring.constants import CPU_ONLY_DEVICE_ID, Constant, ConstantNode, ScalarConstant
from ._authoring.constants import all_types as _all_types
from ._authoring.constants import bool_types as _bool_types
from ._authoring.constants import enum_types as _enum_types
from ._authoring.constants import float_types as _float_types
from ._authoring.constants import int_like_types as _int_like_types
from ._authoring.constants import int_types as _int_types
from ._tensors.arrays import is_compatible_array_type as _is_compatible_array_type
from ._tensors.arrays import is_cupy_array as _is_cupy_array
from ._tensors.arrays import is_mxnet_array as _is_mxnet_array
from ._tensors.arrays import is_numpy_array as _is_numpy_array
from ._tensors.arrays import is_scalar_shape as _is_scalar_shape
from ._tensors.arrays import is_scalar_value as _is_scalar_value
from ._tensors.arrays import is_torch_tensor as _is_torch_tensor
from ._tensors.enums import DALIDataType, DALIImageType, DALIInterpType, TensorLayout, to_dali_type, to_numpy_type

# The members, each by its name alone. Written out, so that a type checker sees them.
NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
STRING = DALIDataType.STRING
_BOOL_VEC = DALIDataType._BOOL_VEC
_INT32_VEC = DALIDataType._INT32_VEC
_STRING_VEC = DALIDataType._STRING_VEC
_FLOAT_VEC = DALIDataType._FLOAT_VEC
FEATURE = DALIDataType.FEATURE
_FEATURE_VEC = DALIDataType._FEATURE_VEC
_FEATURE_DICT = DALIDataType._FEATURE_DICT
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT
_TENSOR_LAYOUT_VEC = DALIDataType._TENSOR_LAYOUT_VEC
_DATA_TYPE_VEC = DALIDataType._DATA_TYPE_VEC
_INT64_VEC = DALIDataType._INT64_VEC
RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA
INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN
# Their home, for messages and pickles.
Constant.__module__ = ConstantNode.__module__ = ScalarConstant.__module__ = __name__

_DALIDataType = DALIDataType
NCHW, NHWC, NFHWC, NFCHW, SAME = (TensorLayout(name) for name in ("CHW", "HWC", "FHWC", "FCHW", ""))


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
    """Which batch a source of `fn.external_source` is asked for: number `iteration` of the epoch `epoch_idx`, both from
    0."""

    def __init__(self, iteration, epoch_idx):
        self.iteration = iteration
        self.epoch_idx = epoch_idx


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
    raise TypeError(
        "expected a CUDA stream: its address, or an object with `__cuda_stream__`, `cuda_stream`, `ptr` or `handle`; "
        f"found a `{type(stream).__name__}`"
    )
