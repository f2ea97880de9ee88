"""`nvidia.dali._utils.autoserialize`"""

from ..._serialize import invoke_autoserialize  # noqa: F401
