"""`nvidia.dali.backend_impl`: tensors, schemas, and calls about memory and libraries that have nothing to do here."""

import ctypes

from .. import types  # noqa: F401
from .._authoring import schema as _schema
from .._native import library as _library
from .._tensors import dlpack as _dlpack
from .._tensors.dlpack import DLDeviceType  # noqa: F401
from .._tensors.tensor import TensorCPU, TensorGPU  # noqa: F401
from .._tensors.tensor_list import TensorListCPU, TensorListGPU  # noqa: F401
from ..pipeline import Pipeline  # noqa: F401


class OpSchema:
    """What DALI's schemas answer, of Gesso's."""

    def __init__(self, schema):
        self._schema = schema

    def Name(self):
        """Its name in files."""
        return self._schema.name

    def MinNumInput(self):
        """Fewest inputs."""
        return self._schema.min_inputs

    def MaxNumInput(self):
        """Most inputs."""
        return self._schema.max_inputs

    def GetArgumentNames(self):
        """Names of the arguments."""
        return list(self._schema.arguments)

    def HasArgument(self, name):
        """Whether there is an argument of that name."""
        return name in self._schema.arguments

    def IsTensorArgument(self, name):
        """Whether it may be a tensor."""
        return self._schema.arguments[name].tensor

    def IsArgumentOptional(self, name):
        """Whether it may be left out."""
        return self._schema.arguments[name].optional

    def IsStateful(self):
        """Whether one batch depends on those before."""
        names = ("ExternalSource", "PythonFunction", "DLTensorPythonFunction")
        return self._schema.random or self._schema.name in names or "readers" in self._schema.modules

    def IsNoPrune(self):
        """Whether it stays where nothing reads it."""
        return self._schema.keep

    def IsDocHidden(self):
        """Whether it is not listed."""
        return self._schema.hidden

    def IsDocPartiallyHidden(self):
        """Whether it is listed without its arguments."""
        return False

    def IsInternal(self):
        """Whether only the package itself uses it."""
        return self._schema.name.startswith("_")

    def IsAbstract(self):
        """Whether it is a part of others."""
        return False

    def IsDeprecated(self):
        """Whether there is something newer."""
        return bool(self._schema.deprecation)

    def ModulePath(self):
        """Its modules."""
        return list(self._schema.modules)

    def OperatorName(self):
        """Its class."""
        return self._schema.class_name

    def GetInputDevice(self, index, actual, operator):
        """Where an operator reads an input: the place that it is made for, if it matters."""
        if self._schema.name in ("Shapes", "_Shape", "Copy"):
            return actual or operator
        if operator is None:
            return actual if index > 0 else None
        return actual if index > 0 and operator == "gpu" and actual else operator


def TryGetSchema(name, follow_aliases=False):
    """The schema of an operator, or None."""
    from .._readers.registry import READERS
    from ..ops import _special

    if name in READERS:
        return OpSchema(READERS[name].schema)
    schema = _special.get(name) or (_schema.find(name) if follow_aliases else _schema.all_schemas().get(name))
    return None if schema is None else OpSchema(schema)


def GetSchema(name, follow_aliases=False):
    """The schema of an operator; raises if there is none."""
    schema = TryGetSchema(name, follow_aliases)
    if schema is None:
        raise RuntimeError(f"Schema for operator '{name}' not registered")
    return schema


def _registered(device):
    return [name for name, schema in _schema.all_schemas().items() if device in schema.devices]


def RegisteredCPUOps():
    """Names of operators on the host."""
    return _registered("cpu")


def RegisteredGPUOps():
    """Names of operators on the GPU."""
    return _registered("gpu")


def RegisteredMixedOps():
    """Names of operators that read on the host and write on the GPU."""
    return _registered("mixed")


def CheckDLPackCapsule(value):
    """(is it a DLPack capsule, is it on a GPU)"""
    return (_dlpack.is_capsule(value), False)


def LoadLibrary(path, *_, **__):
    """Loads a library with operators."""
    _library.call("gesso_load_operators", str(path).encode())


def LoadDirectory(*_, **__):
    """Nothing: libraries are loaded by name."""


def Init(*_, **__):
    """Nothing."""


def IsDriverInitialized():
    """Whether there is a GPU."""
    from .._native.engine import has_gpu

    return has_gpu()


def GetCUDADeviceCount():
    """How many GPUs there are."""
    count = ctypes.c_int()
    if IsDriverInitialized():
        ctypes.CDLL("libcuda.so.1").cuDeviceGetCount(ctypes.byref(count))
    return count.value


def PreallocateDeviceMemory(*_, **__):
    """Nothing."""


PreallocatePinnedMemory = RestrictPinnedMemUsage = ReleaseUnusedMemory = PreallocateDeviceMemory


class _Growth:
    """Factors that change nothing; they are checked and kept."""

    values = {"host": 1.1, "device": 1.1, "shrink": 0.9}


def _checked(value, low, high, what):
    if not low <= value <= high:
        raise RuntimeError(f"{what} must be between {low} and {high}, got {value}.")
    return value


def SetHostBufferGrowthFactor(value):
    """Kept, not used."""
    _Growth.values["host"] = _checked(value, 1.0, 4.0, "The growth factor")


def SetDeviceBufferGrowthFactor(value):
    """Kept, not used."""
    _Growth.values["device"] = _checked(value, 1.0, 4.0, "The growth factor")


def SetBufferGrowthFactor(value):
    """Kept, not used."""
    SetHostBufferGrowthFactor(value)
    SetDeviceBufferGrowthFactor(value)


def SetHostBufferShrinkThreshold(value):
    """Kept, not used."""
    _Growth.values["shrink"] = _checked(value, 0.0, 1.0, "The shrink threshold")


def GetHostBufferGrowthFactor():
    """What was set."""
    return _Growth.values["host"]


def GetDeviceBufferGrowthFactor():
    """What was set."""
    return _Growth.values["device"]


def GetHostBufferShrinkThreshold():
    """What was set."""
    return _Growth.values["shrink"]


# Versions of CUDA that the library was made with: it loads what is there.
__cuda_version__ = 0
