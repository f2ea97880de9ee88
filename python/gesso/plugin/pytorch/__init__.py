"""Batches for PyTorch: iterators over pipelines, a data set for `torch.utils.data`, transforms of an existing one."""

from ... import _extras

_extras.needed("torch", "`gesso.plugin.pytorch`", "torch")

from ..base_iterator import LastBatchPolicy
from . import fn
from .data import Collate, PipelineDataset, Transform
from .fn import TorchPythonFunction
from .iterator import DALIClassificationIterator, DALIGenericIterator, DALIRaggedIterator
from .tensors import feed_ndarray, to_torch_type

Iterator, ClassificationIterator, RaggedIterator = DALIGenericIterator, DALIClassificationIterator, DALIRaggedIterator

__all__ = [
    "ClassificationIterator",
    "Collate",
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "Iterator",
    "LastBatchPolicy",
    "PipelineDataset",
    "RaggedIterator",
    "TorchPythonFunction",
    "Transform",
    "feed_ndarray",
    "fn",
    "to_torch_type",
]
