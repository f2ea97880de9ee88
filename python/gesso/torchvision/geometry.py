"""Flips, crops and borders."""

from numbers import Number
from typing import Any

from .. import fn
from .._tensors.enums import DALIDataType
from ..math import floor, max, min
from .checks import borders_of, probability, window_of
from .picture import Transform

# torchvision's `padding_mode` > `out_of_bounds_policy`
_POLICIES = {"constant": "pad", "edge": "edge", "reflect": "reflect_101", "symmetric": "reflect"}


def _policy(padding_mode):
    if padding_mode not in _POLICIES:
        raise ValueError(f"Invalid padding mode, expected {list(_POLICIES)}, got {padding_mode}")
    return _POLICIES[padding_mode]


def _fill(fill):
    """`fill_values` of a `fill`: a number, or one for each channel."""
    values = 0 if fill is None else fill
    if isinstance(values, Number):
        return (float(values),)  # type: ignore[arg-type]
    if not isinstance(values, (list, tuple)) or not values or not all(isinstance(value, Number) for value in values):
        raise TypeError(f"`fill` is {fill!r}, expected a number, a sequence of numbers, or None")
    return tuple(map(float, values))


def window(node, picture, start, shape, policy="pad", fill=(0.0,)):
    """A window of each sample, from (top, left) on, of (height, width): numbers or nodes."""
    arguments: dict[str, Any] = {}
    for name, values in (("start", start), ("shape", shape)):
        is_fixed = all(isinstance(value, int) for value in values)
        arguments[name] = list(values) if is_fixed else fn.stack(*(_node(value) for value in values))
    return fn.slice(node, axes=picture.axes, out_of_bounds_policy=policy, fill_values=list(fill), **arguments)


def _node(value):
    return fn.constant(idata=value, shape=[]) if isinstance(value, int) else fn.cast(value, dtype=DALIDataType.INT32)


class RandomHorizontalFlip(Transform):
    """Left and right change places with probability `p`."""

    _side = "horizontal"

    def __init__(self, p=0.5, device="cpu"):
        super().__init__(device)
        self.p = probability(p)

    def _run(self, node, picture):
        flips = int(self.p) if self.p in (0, 1) else fn.random.coin_flip(probability=self.p)
        sides: dict[str, Any] = {"horizontal": 0, "vertical": 0, self._side: flips}
        return fn.flip(node, **sides), picture


class RandomVerticalFlip(RandomHorizontalFlip):
    """Top and bottom change places with probability `p`."""

    _side = "vertical"


class CenterCrop(Transform):
    """The middle of a picture, of `size`; zeros around it where the picture is smaller."""

    def __init__(self, size, device="cpu"):
        super().__init__(device)
        self.size = window_of(size)

    def _run(self, node, picture):
        return fn.crop(node, crop=self.size, rounding="even", out_of_bounds_policy="pad"), picture


class Pad(Transform):
    """Borders around a picture, `padding` wide: filled with `fill`, or with pixels as `padding_mode` says."""

    def __init__(self, padding, fill=0, padding_mode="constant", device="cpu"):
        super().__init__(device)
        self.padding, self.padding_mode, self._policy = borders_of(padding), padding_mode, _policy(padding_mode)
        self.fill = _fill(fill)

    def _run(self, node, picture):
        left, top, right, bottom = self.padding
        height, width = picture.sides(node)
        shape = (height + (top + bottom), width + (left + right))
        return window(node, picture, (-top, -left), shape, self._policy, self.fill), picture


class RandomCrop(Transform):
    """A window of `size` anywhere in a picture, which gets `padding` before; with `pad_if_needed` as much more as the
    window needs."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant", device="cpu"):
        super().__init__(device)
        if not isinstance(pad_if_needed, bool):
            raise TypeError(f"pad_if_needed must be bool, got {type(pad_if_needed)}")
        self.size, self.pad_if_needed = window_of(size), pad_if_needed
        self.padding = borders_of(0 if padding is None else padding)
        self.fill, self.padding_mode = _fill(fill), padding_mode
        pads = pad_if_needed or padding is not None
        self._policy = _policy(padding_mode) if pads else "error"

    def _run(self, node, picture):
        left, top, right, bottom = self.padding
        starts = []
        for side, wanted, before, behind in zip(picture.sides(node), self.size, (top, left), (bottom, right)):
            whole = side + (before + behind)
            if self.pad_if_needed:
                more = max(wanted - whole, 0)
                before, whole = before + more, whole + 2 * more
            last = max(whole - wanted, 0)
            drawn = fn.random.uniform(range=[0.0, 1.0]) * fn.cast(last + 1, dtype=DALIDataType.FLOAT)
            # The product may be rounded up to the number behind the last.
            starts.append(min(fn.cast(floor(drawn), dtype=DALIDataType.INT32), last) - before)
        return window(node, picture, starts, self.size, self._policy, self.fill), picture
