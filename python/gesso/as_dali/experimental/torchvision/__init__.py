"""`nvidia.dali.experimental.torchvision`"""

from ....torchvision import *  # noqa: F403
