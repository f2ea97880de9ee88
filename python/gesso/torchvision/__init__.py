"""Transforms with torchvision's names and arguments, composed into one pipeline: `Compose([Resize(256), Pad(4)])`.

Pillow's images become images, PyTorch's tensors tensors. What is not random has the pixels of torchvision: those of
Pillow for images, those of its tensors for tensors. docs/guides/from-torchvision.md says where they differ."""

from .. import _extras

_extras.needed("torch", "`gesso.torchvision`", "torch")
_extras.needed("PIL", "`gesso.torchvision`", "pillow")

from . import functional
from .color import ColorJitter, Grayscale, RandomGrayscale
from .compose import Compose
from .geometry import CenterCrop, Pad, RandomCrop, RandomHorizontalFlip, RandomVerticalFlip
from .interpolation import InterpolationMode
from .markers import PILToTensor, RandomApply, ToPILImage, ToPureTensor
from .resize import RandomResizedCrop, Resize
from .values import GaussianBlur, Normalize

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToPureTensor",
    "functional",
]
