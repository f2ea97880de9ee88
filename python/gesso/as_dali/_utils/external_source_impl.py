"""`nvidia.dali._utils.external_source_impl`"""

import numpy as np

from ..._callbacks.sources import SourceDescription, SourceKind, accepted_arg_count, get_callback_from_source  # noqa: F401
from ..._tensors.feeding import to_array
from ..._tensors.tensor_list import TensorListCPU

_UNSUPPORTED = "Unsupported callback return type. Got: `{}`."
_UNEVEN = (
    "expected samples of one shape, found {}. DALI says: Uniform input is required (batch of tensors of equal shapes)"
)


def sample_to_numpy(sample, error_str=_UNSUPPORTED):
    """A sample of any framework as an array; TypeError for what is none."""
    array = to_array(sample)
    if array.dtype == object:
        raise TypeError(error_str.format(type(sample)))
    return array


def batch_to_numpy(batch, error_str=_UNSUPPORTED, non_uniform_str=_UNEVEN):
    """A batch as one array, or as a list of arrays if it is one; ValueError if their shapes differ."""
    if not isinstance(batch, (list, TensorListCPU)):
        return sample_to_numpy(batch, error_str)
    arrays = [sample_to_numpy(sample, error_str) for sample in batch]
    if len({array.shape for array in arrays}) > 1:
        raise ValueError(non_uniform_str.format(batch))
    return np.stack(arrays) if isinstance(batch, TensorListCPU) else arrays


def assert_cpu_sample_data_type(sample, error_str=_UNSUPPORTED):
    """True for a sample in host memory; TypeError for others."""
    sample_to_numpy(sample, error_str)
    return True


def assert_cpu_batch_data_type(batch, error_str=_UNSUPPORTED):
    """True for a batch in host memory; TypeError for others."""
    for sample in batch if isinstance(batch, (list, TensorListCPU)) else [batch]:
        sample_to_numpy(sample, error_str)
    return True
