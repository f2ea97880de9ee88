"""`nvidia.dali.pipeline`"""

import sys
import types as _types

from .._pipeline_def import do_not_convert, pipeline_def  # noqa: F401
from ..data_node import DataNode  # noqa: F401
from ..pipeline import OperatorConcurrency, Pipeline, StreamPolicy  # noqa: F401

experimental = _types.ModuleType("nvidia.dali.pipeline.experimental", "`pipeline_def` as it is elsewhere.")
experimental.pipeline_def = pipeline_def
sys.modules["nvidia.dali.pipeline.experimental"] = experimental
