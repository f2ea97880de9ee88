"""`nvidia.dali.backend`"""

from .backend_impl import *  # noqa: F403
from .backend_impl import GetSchema, TryGetSchema, __cuda_version__  # noqa: F401


def check_cuda_runtime():
    """Nothing."""
