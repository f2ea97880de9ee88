"""`nvidia.dali.experimental.torchvision.v2.functional`"""

from .....torchvision.functional import *  # noqa: F403
