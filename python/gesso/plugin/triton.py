"""`nvidia.dali.plugin.triton`"""

from ..triton import autoserialize  # noqa: F401
