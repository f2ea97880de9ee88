"""`torch_python_function`: a function of PyTorch's tensors as an operator."""

import torch

from ..._authoring import namespaces as _namespaces
from ..._callbacks.python_function import PythonFunction
from . import tensors


class TorchPythonFunction(PythonFunction):
    """As `PythonFunction`, with PyTorch's tensors in place of arrays; on the GPU, where the operator is there and the
    process has one."""

    schema_name = "TorchPythonFunction"
    _by_batch = False

    def _give(self, array):
        tensor = tensors.of_array(array)
        return tensor.cuda() if self.device == "gpu" and torch.cuda.is_available() else tensor


torch_python_function = _namespaces.make_function(TorchPythonFunction, "torch_python_function")
torch_python_function.__module__ = __name__
