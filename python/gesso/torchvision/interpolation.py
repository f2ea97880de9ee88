"""`InterpolationMode`: torchvision's names of filters."""

from enum import Enum


class InterpolationMode(Enum):
    """Filters, with torchvision's values."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


# Pillow's numbers of filters.
_NUMBERS = ("NEAREST", "LANCZOS", "BILINEAR", "BICUBIC", "BOX", "HAMMING")


def interpolation_of(value):
    """An `InterpolationMode`, of one, of torchvision's own, or of a number of Pillow's."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(_NUMBERS):
        return InterpolationMode[_NUMBERS[value]]
    name = getattr(value, "name", None)
    if name not in InterpolationMode.__members__:
        raise ValueError(
            f"Argument interpolation should be an `InterpolationMode` or a number of Pillow's from 0 to {len(_NUMBERS) - 1}, found {value!r}"
        )
    return InterpolationMode[name]
