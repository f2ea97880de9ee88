"""`nvidia.dali.tensors`"""

from .._tensor import TensorCPU, TensorGPU  # noqa: F401
from .._tensor_list import TensorListCPU, TensorListGPU  # noqa: F401
