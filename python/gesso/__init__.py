"""Gesso: data pipelines, written in Python, run in this process, on servers, or wherever `Pipeline.serialize`'s files
are loaded.

import numpy as np
from gesso import fn, pipeline_def, types

@pipeline_def(batch_size=8, num_threads=4)
def preprocess():
    encoded = fn.external_source(name="images")
    images = fn.decoders.image(encoded, output_type=types.RGB)
    return fn.resize(images, size=[224, 224])

pipeline = preprocess(prefetch_queue_depth=1)
(images,) = pipeline.run(images=[np.fromfile("a.jpg", np.uint8)])
"""

from . import convert, fn, math, ops, types
from ._comparison.compare import compare
from ._comparison.differences import Comparison
from ._native.library import GessoError
from ._native.library import version as _version
from ._peek_video import peek_video_shape
from ._pipeline_def import do_not_convert, pipeline_def
from ._registry import assemble as _assemble
from ._tensors.enums import DALIDataType, DALIImageType, DALIInterpType  # noqa: F401
from ._tensors.tensor import TensorCPU, TensorGPU
from ._tensors.tensor_list import TensorListCPU, TensorListGPU
from .data_node import DataNode, newaxis
from .pipeline import OperatorConcurrency, Pipeline, StreamPolicy

_assemble(ops, fn)
__version__ = _version()
__all__ = [
    "Comparison",
    "DataNode",
    "GessoError",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "compare",
    "convert",
    "do_not_convert",
    "fn",
    "math",
    "newaxis",
    "ops",
    "peek_video_shape",
    "pipeline_def",
    "types",
]
