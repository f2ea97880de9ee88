"""`Resize` and `RandomResizedCrop`, with the pixels of Pillow or of torchvision."""

import functools
from collections.abc import Sequence
from numbers import Number

import PIL

from .. import fn
from .._tensors.enums import DALIDataType, DALIInterpType
from ..math import max, min
from .checks import at_least, in_order, window_of
from .interpolation import InterpolationMode, interpolation_of
from .picture import Transform

_FILTERS = {
    InterpolationMode.NEAREST: "nearest",
    InterpolationMode.NEAREST_EXACT: "nearest-exact",
    InterpolationMode.BILINEAR: "linear",
    InterpolationMode.BICUBIC: "cubic",
    InterpolationMode.BOX: "box",
    InterpolationMode.HAMMING: "hamming",
    InterpolationMode.LANCZOS: "lanczos",
}
_OF_DALI = {
    "nearest": DALIInterpType.INTERP_NN,
    "linear": DALIInterpType.INTERP_LINEAR,
    "cubic": DALIInterpType.INTERP_CUBIC,
    "lanczos": DALIInterpType.INTERP_LANCZOS3,
}
_OF_TENSORS = ("nearest", "nearest-exact", "linear", "cubic")


@functools.cache
def _of_pillow():
    """The arithmetic of the Pillow that is installed."""
    return "pillow13" if int(PIL.__version__.split(".")[0]) >= 13 else "pillow"


def _is_nearest(name):
    return name in ("nearest", "nearest-exact")


def _exact(picture, name, antialias, device):
    """The arithmetic that has the library's pixels, or None."""
    if picture.is_image:
        return _of_pillow()
    if name not in _OF_TENSORS or not (antialias or _is_nearest(name)):
        return None
    if picture.dtype == DALIDataType.UINT8:
        return "torchvision"
    if picture.dtype == DALIDataType.FLOAT and device == "cpu" and not _is_nearest(name):
        return "torchvision-float"
    return None


def _filters(picture, mode, antialias, device):
    """Arguments of `fn.resize` and `fn.random_resized_crop` that choose the filter."""
    name = _FILTERS[mode]
    if picture.is_image and name == "nearest-exact":
        # Pillow has one.
        name = "nearest"
    arithmetic = _exact(picture, name, antialias, device)
    if arithmetic is not None:
        return {"arithmetic": arithmetic, "filter": name}
    if name not in _OF_DALI:
        raise NotImplementedError(f"Interpolation mode: {mode} is not supported for tensors of {picture.dtype.name}")
    return {"interp_type": _OF_DALI[name], "antialias": bool(antialias)}


def _checked_size(size, max_size):
    """`size` as None, a number, or (height, width)."""
    if size is None:
        if max_size is None:
            raise ValueError("Must provide max_size if size is None.")
    elif isinstance(size, bool) or not isinstance(size, (int, list, tuple)):
        raise ValueError(f"`size` is {size!r}, expected an int, None, or a sequence of one or two ints")
    else:
        sides = window_of(size)
        if isinstance(size, (list, tuple)) and len(size) == 2:
            if max_size is not None:
                raise ValueError(f"`size` {size} has both sides, so `max_size` {max_size} has no meaning")
            return sides
        size = sides[0]
    if max_size is not None:
        at_least(max_size, 0, "max_size", is_open=True)
        if size is not None and size > max_size:
            raise ValueError(f"max_size should not be smaller than the actual size: {max_size}, {size}")
    return size


class Resize(Transform):
    """A picture of `size`: (height, width), or the length of the shorter side, or None and `max_size`, that of the
    longer one. `max_size`: the most that the longer side may have. `antialias`: of tensors; images always are."""

    def __init__(self, size, interpolation=InterpolationMode.BILINEAR, max_size=None, antialias=True, device="cpu"):
        super().__init__(device)
        self.size, self.max_size = _checked_size(size, max_size), max_size
        self.interpolation, self.antialias = interpolation_of(interpolation), antialias

    def _run(self, node, picture):
        name = _FILTERS[self.interpolation]
        if _is_nearest(name) and not picture.is_image and picture.dtype != DALIDataType.UINT8:
            return self._by_bytes(node, picture), picture
        filters = _filters(picture, self.interpolation, self.antialias, self.device)
        if "arithmetic" in filters:
            return fn.resize(node, **filters, **self._sizes()), picture
        return fn.resize(node, size=self._computed(node, picture), **filters), picture

    def _sizes(self):
        """Arguments for the arithmetic of a library, which cuts sides as torchvision does."""
        if isinstance(self.size, tuple):
            return {"size": self.size}
        if self.size is None:
            return {"resize_longer": self.max_size}
        return {"resize_shorter": self.size} | ({"max_size": self.max_size} if self.max_size is not None else {})

    def _computed(self, node, picture):
        """(height, width), cut as torchvision does."""
        if isinstance(self.size, tuple):
            return self.size
        sides = fn.stack(*picture.sides(node))
        height, width = sides[0], sides[1]
        if self.size is None:
            return fn.cast(sides * self.max_size // max(height, width), dtype=DALIDataType.FLOAT)
        sides = sides * self.size // min(height, width)
        if self.max_size is not None:
            longer = max(sides[0], sides[1])
            is_over = fn.cast(longer > self.max_size, dtype=DALIDataType.INT32)
            sides = sides + (sides * self.max_size // longer - sides) * is_over
        return fn.cast(sides, dtype=DALIDataType.FLOAT)

    def _by_bytes(self, node, picture):
        """The nearest pixels, whatever their type: each is moved as its bytes."""
        node = fn.reinterpret(picture.interleaved(node), dtype=DALIDataType.UINT8, layout="HWC")
        node = fn.resize(node, arithmetic="torchvision", filter=_FILTERS[self.interpolation], **self._sizes())
        return picture.restored(fn.reinterpret(node, dtype=picture.dtype, layout="HWC"))


class RandomResizedCrop(Transform):
    """A random window of a picture, resized to `size`. `scale`: least and largest part of the area; `ratio`: least and
    largest width by height."""

    def __init__(
        self,
        size,
        scale=(0.08, 1.0),
        ratio=(3 / 4, 4 / 3),
        interpolation=InterpolationMode.BILINEAR,
        antialias=True,
        device="cpu",
    ):
        super().__init__(device)
        for name, value in (("scale", scale), ("ratio", ratio)):
            if not isinstance(value, Sequence) or len(value) != 2 or not all(isinstance(x, Number) for x in value):
                raise TypeError(f"`{name}` is {value!r}, expected a sequence of two numbers")
            at_least(value, 0, name, is_open=True)
            in_order(value, name)
        self.size, self.scale, self.ratio = window_of(size), tuple(scale), tuple(ratio)
        self.interpolation, self.antialias = interpolation_of(interpolation), antialias

    def _run(self, node, picture):
        filters = _filters(picture, self.interpolation, self.antialias, self.device)
        return (
            fn.random_resized_crop(
                node, size=self.size, random_area=self.scale, random_aspect_ratio=self.ratio, **filters
            ),
            picture,
        )
