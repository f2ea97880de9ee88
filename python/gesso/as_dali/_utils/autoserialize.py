"""`nvidia.dali._utils.autoserialize`"""

from ..._authoring.autoserialize import invoke_autoserialize  # noqa: F401
