"""Checks of arguments, with the kinds of errors that torchvision and DALI raise."""

from collections.abc import Sequence
from numbers import Number


def numbers_of(value):
    """A number or a sequence as a tuple."""
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)


def at_least(value, low, name, is_open=False):
    """Raises ValueError unless all numbers are at least `low`, or above it if `is_open`."""
    for number in numbers_of(value):
        if isinstance(number, Number) and (number <= low if is_open else number < low):
            raise ValueError(f"`{name}` is {value}, expected numbers {'above' if is_open else 'of at least'} {low}")


def in_order(value, name):
    """Raises ValueError unless (min, max) is in that order."""
    if isinstance(value, Sequence) and len(value) == 2 and value[0] > value[1]:
        raise ValueError(f"`{name}` is {value}, expected (min, max)")


def probability(p):
    """`p`, or ValueError unless it is from 0 to 1."""
    if isinstance(p, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
        raise ValueError(f"p should be a floating point value in the interval [0.0, 1.0]. Got: {p!r}")
    return float(p)


def device_of(device):
    """`device`, or ValueError unless it is `cpu` or `gpu`."""
    if device not in ("cpu", "gpu"):
        raise ValueError(f"`device` is {device!r}, expected `cpu` or `gpu`")
    return device


def window_of(size):
    """(height, width) of a crop's `size`: a number, or a sequence of one or two."""
    if isinstance(size, bool) or not isinstance(size, (int, list, tuple)):
        raise TypeError(f"Size must be int, list, or tuple, got {type(size)}")
    sides = numbers_of(size)
    if len(sides) not in (1, 2):
        raise ValueError(f"`size` has {len(sides)} numbers, expected one or two")
    if not all(isinstance(side, int) for side in sides):
        raise ValueError(f"`size` is {size}, expected whole numbers")
    at_least(sides, 0, "size", is_open=True)
    return sides * 2 if len(sides) == 1 else sides


def borders_of(padding):
    """(left, top, right, bottom) of a `padding`: a number, or a sequence of one, two or four."""
    if isinstance(padding, bool) or not isinstance(padding, (int, list, tuple)):
        raise TypeError(f"`padding` is {padding!r}, expected an int, or a sequence of 1, 2 or 4")
    borders = numbers_of(padding)
    if len(borders) not in (1, 2, 4) or not all(isinstance(border, int) for border in borders):
        raise ValueError(f"`padding` is {padding!r}, expected 1, 2 or 4 whole numbers")
    at_least(borders, 0, "padding")
    return borders * (4 // len(borders))
