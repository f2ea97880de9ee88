"""torchvision's functions of pictures: each transform that is not random, at once."""

import torch
from PIL import Image

from .color import Grayscale
from .compose import at_once
from .conversion import pil_to_tensor, to_pil_image, to_tensor
from .geometry import CenterCrop, Pad, RandomHorizontalFlip, RandomVerticalFlip, window
from .interpolation import InterpolationMode
from .picture import Transform
from .resize import Resize
from .values import FixedBlur, Normalize

__all__ = [
    "center_crop",
    "crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_size",
    "get_size",
    "horizontal_flip",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vertical_flip",
]


class _Crop(Transform):
    """A window, (top, left, height, width); zeros where it leaves the picture; then another transform."""

    def __init__(self, window, then=None, device="cpu"):
        super().__init__(device)
        self.window, self.then = window, then

    def _run(self, node, picture):
        top, left, height, width = self.window
        node = window(node, picture, (top, left), (height, width))
        return (node, picture) if self.then is None else self.then.apply(node, picture)


def _place(inpt, top, left, height, width):
    """A window in whole numbers: those of images are rounded, as Pillow rounds its box."""
    if isinstance(inpt, Image.Image):
        ends = round(top + height), round(left + width)
        top, left = round(top), round(left)
        height, width = ends[0] - top, ends[1] - left
    for name, value in (("top", top), ("left", left), ("height", height), ("width", width)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an integer, got {type(value)}")
    if height <= 0 or width <= 0:
        raise ValueError(f"a window of {height} x {width} pixels, expected at least 1 x 1")
    return top, left, height, width


def horizontal_flip(inpt, device="cpu"):
    """Left and right change places."""
    return at_once(RandomHorizontalFlip(1, device), inpt)


def vertical_flip(inpt, device="cpu"):
    """Top and bottom change places."""
    return at_once(RandomVerticalFlip(1, device), inpt)


def center_crop(inpt, output_size, device="cpu"):
    """As `CenterCrop`."""
    return at_once(CenterCrop(output_size, device), inpt)


def crop(inpt, top, left, height, width, device="cpu"):
    """The window from (`top`, `left`) on; zeros where it leaves the picture."""
    return at_once(_Crop(_place(inpt, top, left, height, width), device=device), inpt)


def resized_crop(
    inpt, top, left, height, width, size, interpolation=InterpolationMode.BILINEAR, antialias=True, device="cpu"
):
    """`crop`, then `resize`."""
    then = Resize(size, interpolation, None, antialias, device)
    return at_once(_Crop(_place(inpt, top, left, height, width), then, device), inpt)


def resize(inpt, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True, device="cpu"):
    """As `Resize`."""
    return at_once(Resize(size, interpolation, max_size, antialias, device), inpt)


def pad(inpt, padding, fill=0, padding_mode="constant", device="cpu"):
    """As `Pad`."""
    return at_once(Pad(padding, fill, padding_mode, device), inpt)


def gaussian_blur(inpt, kernel_size, sigma=None, device="cpu"):
    """A blur by a Gaussian. `kernel_size` and `sigma`: one number, or (width's, height's)."""
    return at_once(FixedBlur(kernel_size, sigma, device), inpt)


def normalize(inpt, mean, std, inplace=False, device="cpu"):
    """As `Normalize`, of tensors."""
    transform = Normalize(mean, std, inplace, device)
    if not isinstance(inpt, torch.Tensor):
        raise TypeError(f"expected a tensor, found a `{type(inpt).__name__}`")
    return at_once(transform, inpt)


def to_grayscale(inpt, num_output_channels=1, device="cpu"):
    """As `Grayscale`."""
    return at_once(Grayscale(num_output_channels, device), inpt)


def rgb_to_grayscale(inpt, num_output_channels=1, device="cpu"):
    """As `Grayscale`."""
    return at_once(Grayscale(num_output_channels, device), inpt)


def get_size(inpt):
    """[height, width]"""
    return get_dimensions(inpt)[1:]


def get_image_size(inpt):
    """[width, height]"""
    return get_dimensions(inpt)[:0:-1]


def get_dimensions(inpt):
    """[channels, height, width]"""
    if isinstance(inpt, Image.Image):
        return [len(inpt.getbands()), inpt.height, inpt.width]
    shape = getattr(inpt, "shape", None)
    if shape is None or len(shape) < 2:
        raise TypeError(f"expected a Pillow image, or a tensor of at least two dimensions, found {type(inpt)}")
    return [1, *shape] if len(shape) == 2 else list(shape[-3:])
