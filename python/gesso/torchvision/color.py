"""Gray pictures, and colours that vary."""

from collections.abc import Sequence

from .. import exact_augment, fn
from .._conditionals.runtime import if_expression
from .._tensors.enums import DALIDataType
from ..math import floor
from .checks import at_least, in_order, probability
from .picture import Transform

# What red, green and blue count: in Pillow of 65,536, in torchvision's tensors of 1.
_OF_PILLOW, _SHIFT, _HALF = (19595, 38470, 7471), 16, 0x8000
_OF_TENSORS = (0.2989, 0.587, 0.114)


def _channel(node, picture, index):
    return node[:, :, index : index + 1] if picture.is_image else node[index : index + 1]


def _gray(node, picture):
    """One channel of three."""
    red, green, blue = (_channel(node, picture, i) for i in range(3))
    if picture.is_image:
        red, green, blue = (fn.cast(channel, dtype=DALIDataType.INT32) for channel in (red, green, blue))
        r, g, b = _OF_PILLOW
        return fn.cast((red * r + green * g + blue * b + _HALF) >> _SHIFT, dtype=picture.dtype)
    r, g, b = _OF_TENSORS
    gray = red * r + green * g + blue * b
    if picture.dtype == DALIDataType.FLOAT:
        return gray
    # It is cut, not rounded.
    return fn.cast(floor(gray), dtype=picture.dtype)


def _to_gray(node, picture, count):
    """A gray picture of one or three channels."""
    if picture.channels is None:
        raise RuntimeError("gray of pictures whose channels a random transform decides: put it before that one")
    if picture.channels not in ((1, 3, 4) if picture.is_image else (1, 3)):
        raise RuntimeError(f"gray of pictures of {picture.channels} channels, expected 1 or 3")
    gray = node if picture.channels == 1 else _gray(node, picture)
    if count == 3:
        gray = fn.cat(gray, gray, gray, axis_name="C")
    return gray, picture._replace(channels=count)


class Grayscale(Transform):
    """A gray picture with one channel, or with three that are alike."""

    def __init__(self, num_output_channels=1, device="cpu"):
        super().__init__(device)
        if num_output_channels not in (1, 3):
            raise ValueError(f"num_output_channels must be 1 or 3, got {num_output_channels}.")
        self.num_output_channels = num_output_channels

    def _run(self, node, picture):
        return _to_gray(node, picture, self.num_output_channels)


class RandomGrayscale(Transform):
    """Gray with probability `p`, in as many channels as the picture has."""

    def __init__(self, p=0.1, device="cpu"):
        super().__init__(device)
        self.p = probability(p)

    def _run(self, node, picture):
        is_gray = fn.random.coin_flip(probability=self.p, dtype=DALIDataType.BOOL)
        gray = lambda: _to_gray(node, picture, picture.channels)[0]
        return if_expression(is_gray, gray, lambda: node), picture


def _factors(value, name):
    """(min, max) of a factor: those given, or around 1."""
    if value is None:
        raise ValueError(f"{name} must not be None")
    at_least(value, 0, name)
    in_order(value, name)
    if isinstance(value, Sequence):
        if len(value) != 2:
            raise ValueError(f"`{name}` is {value!r}, expected a number or (min, max)")
        return tuple(map(float, value))
    return max(0.0, 1.0 - value), 1.0 + value


def _turns(hue):
    """(min, max) of the turn of hues, in whole turns."""
    if hue is None:
        raise ValueError("hue must not be None")
    low, high = hue if isinstance(hue, Sequence) else (-hue, hue)
    if not -0.5 <= low <= high <= 0.5:
        raise ValueError(f"`hue` is {hue!r}, expected a number from 0 to 0.5, or (min, max) from -0.5 to 0.5")
    return float(low), float(high)


def _drawn(low, high):
    return low if low == high else fn.random.uniform(range=[low, high])


class ColorJitter(Transform):
    """Brightness, contrast, saturation and hue that vary, in random order: each by a factor around 1 or from (min,
    max), the hue by a part of a turn. Of floats, and on a GPU, all are one matrix of colours, as in DALI."""

    def __init__(self, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0, device="cpu"):
        super().__init__(device)
        self.brightness, self.contrast = _factors(brightness, "brightness"), _factors(contrast, "contrast")
        self.saturation, self.hue = _factors(saturation, "saturation"), _turns(hue)

    def _run(self, node, picture):
        node = picture.interleaved(node)
        node = self._exact(node, picture) if picture.is_exact(self.device) else self._twisted(node)
        return picture.restored(node), picture

    def _exact(self, node, picture):
        ranges = {
            "brightness": self.brightness,
            "contrast": self.contrast,
            "saturation": self.saturation,
            "hue": self.hue,
        }
        for name, keeps in (("brightness", 1), ("contrast", 1), ("saturation", 1), ("hue", 0)):
            if ranges[name] == (keeps, keeps):
                del ranges[name]
        arithmetic = "pillow" if picture.is_image else "torchvision-v2"
        return exact_augment.color_jitter(node, **ranges, arithmetic=arithmetic)

    def _twisted(self, node):
        return fn.color_twist(
            node,
            brightness=_drawn(*self.brightness),
            contrast=_drawn(*self.contrast),
            saturation=_drawn(*self.saturation),
            hue=_drawn(*(360 * turn for turn in self.hue)),
        )
