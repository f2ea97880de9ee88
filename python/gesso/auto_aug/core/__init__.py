"""What automatic augmentations are made of: `@augmentation`, `select`, `signed_bin`, `Policy`."""

from ._augmentation import Augmentation as _Augmentation
from ._bins import signed_bin
from ._select import select
from .decorator import augmentation
from .policy import Policy

__all__ = ("signed_bin", "augmentation", "select", "Policy", "_Augmentation")
