"""`nvidia.dali.backend`"""

from .backend_impl import *  # noqa: F401, F403
from .backend_impl import GetSchema, TryGetSchema  # noqa: F401


def check_cuda_runtime():
    """Nothing."""
