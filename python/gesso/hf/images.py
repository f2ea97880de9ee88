"""What users give to an image processor, as files and pixels."""

import inspect
import os
import sys
from typing import NamedTuple

import numpy as np

from .._tensors.arrays import is_torch_tensor
from .._tensors.feeding import to_array
from ..convert.description import CHANNELS

# Channels of images that have them first or last, as transformers finds them.
_CHANNELS = (1, CHANNELS, CHANNELS + 1)
_FORMATS = ("channels_first", "channels_last")
_IMAGE, _IMAGES = 3, 4


class Image(NamedTuple):
    """One image: the bytes of a file, or pixels (height, width, RGB)."""

    data: np.ndarray
    is_file: bool


class Reader:
    """Makes images of what a processor is given, as transformers does: `makes_rgb` is its `do_convert_rgb`, `backend`
    its backend, `order` the argument `input_data_format`."""

    def __init__(self, makes_rgb, backend, order=None):
        order = getattr(order, "value", order)
        if order not in (None, *_FORMATS):
            raise ValueError(f"argument `input_data_format` is {order!r}: expected {' or '.join(_FORMATS)}")
        self._makes_rgb, self._by_torch, self._order = makes_rgb, backend == "torchvision", order

    def read(self, given):
        """All images, in their order: of one, a list, a list of lists, or an array of several."""
        found = []
        for value in _each(given):
            try:
                found.append(self._read_one(value))
            except ValueError as error:
                raise ValueError(f"image {len(found)}: {error}") from error
        if not found:
            raise ValueError("argument `images` has no image: expected one or more")
        return found

    def _read_one(self, value):
        if isinstance(value, (str, os.PathLike)):
            return _file(os.fspath(value))
        if isinstance(value, (bytes, bytearray, memoryview)):
            return Image(np.frombuffer(value, np.uint8), True)
        if is_pil(value):
            return Image(self._of_pil(value), False)
        if isinstance(value, np.ndarray) or is_torch_tensor(value):
            array = to_array(value)
            is_file = array.ndim == 1 and array.dtype == np.uint8
            return Image(array if is_file else self._of_array(array), is_file)
        raise ValueError(
            f"a `{type(value).__module__}.{type(value).__name__}`, expected an image of Pillow, an array, a tensor, the bytes of a file or a path"
        )

    def _of_pil(self, image):
        if image.mode == "RGB" and "transparency" not in image.info:
            return np.asarray(image)
        if self._makes_rgb:
            return _rgb_of_transformers(image)
        if image.mode != "RGB":
            raise ValueError(
                f"an image of mode `{image.mode}`, and `do_convert_rgb` of the processor is false: expected `RGB`, as of `image.convert('RGB')`"
            )
        return np.asarray(image)

    def _of_array(self, array):
        if array.dtype != np.uint8:
            raise ValueError(f"an array of {array.dtype}, expected uint8")
        if array.ndim == _IMAGE - 1:
            array = array[..., None]
        elif array.ndim != _IMAGE:
            raise ValueError(
                f"an array of shape {array.shape}, expected height, width and channels, or the bytes of a file"
            )
        elif self._is_channels_first(array.shape):
            array = np.moveaxis(array, 0, -1)
        if 0 in array.shape:
            raise ValueError(f"an array of shape {array.shape}, expected at least one pixel")
        if array.shape[-1] != CHANNELS and not self._makes_rgb:
            raise ValueError(
                f"{array.shape[-1]} channels, and `do_convert_rgb` of the processor is false: expected {CHANNELS}"
            )
        return np.ascontiguousarray(self._rgb(array))

    def _is_channels_first(self, shape):
        if self._order is not None:
            return self._order == "channels_first"
        # Of both transformers takes the first.
        if shape[0] in _CHANNELS:
            return True
        if shape[-1] in _CHANNELS:
            return False
        raise ValueError(f"an array of shape {shape}, expected channels first or last: 1, 3 or 4")

    def _rgb(self, array):
        channels = array.shape[-1]
        if channels == CHANNELS:
            return array
        if channels == 1:
            return np.repeat(array, CHANNELS, -1)
        if channels != CHANNELS + 1:
            raise ValueError(f"{channels} channels, expected 1, 3 or 4")
        return _on_white_by_torch(array) if self._by_torch else _on_white(array)


def is_pil(value):
    """Whether it is an image of Pillow; Pillow is not imported for that."""
    pil = sys.modules.get("PIL.Image")
    return pil is not None and isinstance(value, pil.Image)


def _each(given):
    if isinstance(given, (list, tuple)):
        for value in given:
            yield from _each(value)
    elif _is_several(given):
        yield from given
    else:
        yield given


def counts_of(given):
    """How many images each list has: of a list of lists, or of several arrays of several images; else there is one
    list with all of them."""
    if isinstance(given, (list, tuple)) and given:
        if all(isinstance(each, (list, tuple)) or _is_several(each) for each in given):
            return [sum(1 for _ in _each(each)) for each in given]
    return [sum(1 for _ in _each(given))]


def _is_several(value):
    return (isinstance(value, np.ndarray) or is_torch_tensor(value)) and value.ndim == _IMAGES


def _file(path):
    if isinstance(path, str) and path.startswith(("http://", "https://", "data:")):
        raise ValueError("an address, expected a path: fetch the file and give its bytes")
    return Image(np.fromfile(path, np.uint8), True)


def _rgb_of_transformers(image):
    """Pillow's image by the function of the transformers that is installed: versions differ in what they make of
    transparent pixels."""
    from transformers.image_transforms import convert_to_rgb

    options = {"return_numpy": True} if "return_numpy" in inspect.signature(convert_to_rgb).parameters else {}
    return np.asarray(convert_to_rgb(image, **options))


def _on_white(array):
    """Pixels with an alpha channel on white, in the arithmetic of the classes by Pillow: float64."""
    alpha = array[..., CHANNELS:] / 255
    return np.round(alpha * array[..., :CHANNELS] + (1 - alpha) * 255).astype(np.uint8)


def _on_white_by_torch(array):
    """The same in that of the classes by torchvision: float32, and fractions are cut."""
    values = array.astype(np.float32) * np.float32(1 / 255)
    alpha = values[..., CHANNELS:]
    blended = values[..., :CHANNELS] * alpha + (1 - alpha)
    return (blended * np.float32(255 + 1 - 1e-3)).astype(np.uint8)
