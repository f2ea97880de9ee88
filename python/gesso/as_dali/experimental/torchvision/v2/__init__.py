"""`nvidia.dali.experimental.torchvision.v2`"""

from ...torchvision import *  # noqa: F403
