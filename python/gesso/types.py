"""Types and constants that pipelines are written with. DALI's names."""

import ctypes
from enum import Enum, unique

from ._authoring.constants import CPU_ONLY_DEVICE_ID, Constant, ConstantNode, ScalarConstant  # noqa: F401
from ._tensors.arrays import is_compatible_array_type as _is_compatible_array_type  # noqa: F401
from ._tensors.enums import DALIDataType, DALIImageType, DALIInterpType, TensorLayout, to_dali_type, to_numpy_type  # noqa: F401

for _enum in (DALIDataType, DALIImageType, DALIInterpType):
    for _name, _member in _enum.__members__.items():
        globals()[_name] = _member
del _enum, _name, _member
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
    raise TypeError(f"Cannot interpret the object {stream} as a CUDA stream.")
