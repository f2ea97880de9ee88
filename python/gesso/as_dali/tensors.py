"""`nvidia.dali.tensors`"""

from .._tensors.tensor import TensorCPU, TensorGPU  # noqa: F401
from .._tensors.tensor_list import TensorListCPU, TensorListGPU  # noqa: F401
