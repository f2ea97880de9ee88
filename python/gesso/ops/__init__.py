"""Operators as classes: made with arguments, called with inputs. The classes come from the library's list of
operators."""

from .._authoring import schema as _schema
from .._authoring.operator import Operator  # noqa: F401
from .._callbacks.python_function import DLTensorPythonFunction, PythonFunction
from .._callbacks.python_function import from_dlpack as _dlpack_to_array  # noqa: F401
from .._callbacks.python_function import to_dlpack as _dlpack_from_array  # noqa: F401
from ..data_node import DataNode as _DataNode  # noqa: F401

_special = {kind.schema_name: kind.schema for kind in (PythonFunction, DLTensorPythonFunction)}


def _on(device):
    return {name for name, schema in (_schema.all_schemas() | _special).items() if device in schema.devices}


def cpu_ops():
    """Names of operators that run on the host."""
    return _on("cpu")


def gpu_ops():
    """Names of operators that run on the GPU."""
    return _on("gpu")


def mixed_ops():
    """Names of operators that read on the host and write on the GPU."""
    return _on("mixed")
