"""torchvision's random transforms that move pixels, automatic augmentation among them: a part of the reader of
`from_torchvision`."""

from typing import Any

import numpy as np

from . import description as steps
from .description import CHANNELS, ConversionError
from .fields import is_number

# torchvision's names of the operations of automatic augmentation, in gesso's.
_OPERATIONS = {
    "Identity": "keep",
    "ShearX": "shear_x",
    "ShearY": "shear_y",
    "TranslateX": "translate_x",
    "TranslateY": "translate_y",
    "Rotate": "rotate",
    "Brightness": "brightness",
    "Color": "saturation",
    "Contrast": "contrast",
    "Sharpness": "sharpness",
    "Posterize": "posterize",
    "Solarize": "solarize",
    "AutoContrast": "auto_contrast",
    "Equalize": "equalize",
    "Invert": "invert",
}
_MOVING_FILTERS = {"nearest": "nearest", "bilinear": "linear"}
_BINS_OF_AUTO_AUGMENT = 10
_LARGEST_COUNT = 16


def short(value):
    """A number of float32 with as few digits as say it."""
    return float(str(np.float32(value)))


class MovingTransforms:
    """What `from_torchvision` reads of them."""

    # What the reader has.
    fail: Any
    augment: Any
    made: list
    size_before: Any

    def _RandomRotation(self, each, is_v2):
        self.bare(each, expand=False, center=None)
        degrees = each.degrees
        if not (
            isinstance(degrees, (list, tuple))
            and len(degrees) == 2
            and all(map(is_number, degrees))
            and degrees[0] <= degrees[1]
        ):
            self.fail(each, "degrees", degrees, "expected a smaller and a larger number")
        self.augment(
            each, is_v2, "randomly", "rotate", *map(float, degrees), moves=True, **self.moving(each, each.interpolation)
        )

    def bare(self, each, **expected):
        """Options that must be left as they are."""
        for name, value in expected.items():
            if getattr(each, name) not in (value, None):
                self.fail(each, name, getattr(each, name), f"expected {value}")

    def moving(self, each, interpolation):
        """Filter and fill of what moves pixels."""
        word = getattr(interpolation, "value", interpolation)
        if not isinstance(word, str) or word not in _MOVING_FILTERS:
            self.fail(each, "interpolation", word, f"expected one of {', '.join(_MOVING_FILTERS)}")
        fill: Any = each.fill
        if isinstance(fill, dict):
            fill = next(iter(fill.values())) if len(fill) == 1 else fill
        colours: list[Any] = [0] if fill is None else list(fill) if isinstance(fill, (list, tuple)) else [fill]
        if len(colours) not in (1, CHANNELS) or not all(
            is_number(colour) and 0 <= colour <= 255 and colour == int(colour) for colour in colours
        ):
            self.fail(each, "fill", each.fill, f"expected one or {CHANNELS} whole numbers from 0 to 255")
        made = {} if _MOVING_FILTERS[word] == "nearest" else {"filter": _MOVING_FILTERS[word]}
        return made | ({"fill": [int(colour) for colour in colours]} if any(colours) else {})

    # Automatic augmentation

    def space(self, each, bins, is_v2):
        """The operations of a class: magnitudes, a number or one for each of `bins`, and whether they have a sign."""
        if type(bins) is not int or not 2 <= bins <= 1000:
            self.fail(each, "num_magnitude_bins", bins, "expected a whole number from 2 to 1000")

        def of(height, width):
            if is_v2:
                return {
                    name: (make(bins, height, width), signed)
                    for name, (make, signed) in each._AUGMENTATION_SPACE.items()
                }
            made = (
                each._augmentation_space(bins)
                if type(each).__name__ == "TrivialAugmentWide"
                else each._augmentation_space(bins, (height, width))
            )
            return {name: (amounts if amounts.ndim else None, signed) for name, (amounts, signed) in made.items()}

        def plain(found):
            made = {}
            for name, (amounts, signed) in found.items():
                values = np.zeros(bins) if amounts is None else amounts.numpy().astype(np.float64)
                if name == "Solarize":
                    # Levels are whole: so is what they are compared with.
                    values = np.ceil(255.0 * values if is_v2 else values)
                made[name] = (values, bool(signed))
            return made

        size = steps.static_size(self.made, self.size_before)
        found = plain(of(*(size or (1, 1))))
        other = plain(of(7, 9)) if size is None else found
        if any((found[name][0] != other[name][0]).any() for name in found):
            raise ConversionError(
                f"transform `{type(each).__name__}` moves images by parts of their size, which varies: expected one size; "
                "put it behind `RandomResizedCrop`, `CenterCrop` or a `Resize` to height and width"
            )
        if unknown := set(found) - set(_OPERATIONS):
            raise ConversionError(f"transform `{type(each).__name__}` has operation `{min(unknown)}`: it is not known")
        return found

    def _RandAugment(self, each, is_v2):
        if type(each.num_ops) is not int or not 0 <= each.num_ops <= _LARGEST_COUNT:
            self.fail(each, "num_ops", each.num_ops, f"expected a whole number from 0 to {_LARGEST_COUNT}")
        found = self.space(each, each.num_magnitude_bins, is_v2)
        if type(each.magnitude) is not int or not 0 <= each.magnitude < each.num_magnitude_bins:
            self.fail(
                each, "magnitude", each.magnitude, f"expected a whole number from 0 to {each.num_magnitude_bins - 1}"
            )
        operations = [
            (_OPERATIONS[name], short(values[each.magnitude]), signed) for name, (values, signed) in found.items()
        ]
        self.automatic(each, is_v2, "rand_augment", operations, count=each.num_ops)

    def _TrivialAugmentWide(self, each, is_v2):
        found = self.space(each, each.num_magnitude_bins, is_v2)
        operations = [
            (_OPERATIONS[name], tuple(map(short, values)) if values.any() else 0.0, signed)
            for name, (values, signed) in found.items()
        ]
        self.automatic(each, is_v2, "trivial_augment", operations)

    def _AutoAugment(self, each, is_v2):
        found, policies = self.space(each, _BINS_OF_AUTO_AUGMENT, is_v2), []
        field = "_policies" if is_v2 else "policies"
        given = getattr(each, field)
        try:
            for policy in given:
                made = []
                for name, probability, place in policy:
                    values, signed = found[name]
                    made.append((_OPERATIONS[name], float(probability), short(values[place or 0]), signed))
                policies.append(tuple(made))
        except (TypeError, ValueError, KeyError, IndexError):
            policies = []
        if not policies or len(set(map(len, policies))) > 1 or not policies[0]:
            self.fail(each, field, given, "expected policies as torchvision's, all with as many operations")
        self.automatic(each, is_v2, "auto_augment", policies)

    def automatic(self, each, is_v2, function, operations, **options):
        options |= self.moving(each, each.interpolation)
        self.augment(each, is_v2, function, tuple(operations), moves=True, **options)
