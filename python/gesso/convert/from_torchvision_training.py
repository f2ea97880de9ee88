"""torchvision's random transforms, which are for training: a part of the reader of `from_torchvision`."""

import dataclasses
import math
from typing import Any

import numpy as np

from . import description as steps
from .description import CHANNELS, ConversionError
from .fields import is_number
from .from_torchvision_moving import MovingTransforms, short

# Random transforms that are known; others begin with `Random`, too, and are refused.
RANDOM = (
    *("ColorJitter", "RandAugment", "TrivialAugmentWide", "AutoAugment", "AugMix", "GaussianBlur", "GaussianNoise"),
    *("ElasticTransform", "ScaleJitter", "MixUp", "CutMix", "JPEG"),
)
# Why some have no equal in a pipeline.
WITHOUT_EQUAL = {
    "AugMix": "it sums floats of many images in an order of its own",
    "RandomAffine": "its matrix is drawn of six numbers; `RandomRotation` and the operations of `AutoAugment` are known",
    "RandomPerspective": "its coefficients are a least-squares solution of LAPACK's",
    "RandomOrder": "expected the order in which transforms stand",
}
# Sums of grays up to here are exact in float32, in which torch has them.
_LARGEST_MEAN = 2**24 // 255
# Of a random blur: torch's weights cannot be computed while a pipeline runs.
_SIGMAS = 64
_MOST_WEIGHTS = 63


class TrainingTransforms(MovingTransforms):
    """What `from_torchvision` reads where there is a data set."""

    # What the reader has.
    place: Any
    sides: Any
    resampling: Any
    read: Any
    flat: Any
    floats: Any
    notes: list
    erased: list
    is_tensor: bool
    at: str
    _Pad: Any

    def numbers(self, each, name, most=None):
        pair = getattr(each, name)
        if not (
            isinstance(pair, (list, tuple))
            and len(pair) == 2
            and all(map(is_number, pair))
            and 0 < pair[0] <= pair[1] <= (most or pair[1])
        ):
            self.fail(
                each, name, pair, "expected a smaller and a larger number" + (f", from 0 to {most}" if most else "")
            )
        return tuple(map(float, pair))

    def probability(self, each):
        if not is_number(each.p) or not 0 <= each.p <= 1:
            self.fail(each, "p", each.p, "expected a probability from 0 to 1")
        return float(each.p)

    # Windows and flips

    def _RandomResizedCrop(self, each, is_v2):
        self.place(each)
        area, ratio = self.numbers(each, "scale", 1), self.numbers(each, "ratio")
        (height, width), (method, arithmetic) = self.sides(each, each.size), self.resampling(each, is_v2)
        self.made.append(steps.RandomResizedCrop(height, width, area, ratio, method, arithmetic))

    def _RandomCrop(self, each, is_v2):
        self.place(each)
        if each.pad_if_needed:
            self.fail(each, "pad_if_needed", True, "expected false; resize or pad first")
        if each.padding is not None:
            self._Pad(each, is_v2)
        self.made.append(steps.RandomCrop(*self.sides(each, each.size)))

    def _RandomHorizontalFlip(self, each, _):
        self.made.append(steps.RandomFlip(self.probability(each), False))

    def _RandomVerticalFlip(self, each, _):
        self.made.append(steps.RandomFlip(self.probability(each), True))

    # Colours, one operation

    def arithmetic(self, each, is_v2, moves=False):
        """Whose sums: `fn.gesso.augment` has the names."""
        name = type(each).__name__
        if self.floats is not None:
            raise ConversionError(
                f"transform `{name}` is given floats: expected bytes; put it before what makes floats (`ToTensor`, `ToDtype`)"
            )
        if moves and self.is_tensor:
            raise ConversionError(
                f"transform `{name}` is given a tensor: there torch moves pixels by a matrix product in an order of its own; "
                "expected an image of Pillow, put it before `ToImage` or `PILToTensor`"
            )
        return "pillow" if not self.is_tensor else "torchvision-v2" if is_v2 else "torchvision"

    def augment(self, each, is_v2, function, *given, moves=False, **options):
        options["arithmetic"] = self.arithmetic(each, is_v2, moves)
        if options["arithmetic"] == "pillow":
            del options["arithmetic"]
        self.made.append(steps.Augment(function, given, tuple(options.items())))

    def small(self, each, is_v2):
        """Contrast of tensors needs a mean that is exact in float32."""
        size = steps.static_size(self.made, self.size_before)
        if self.is_tensor and (size is None or size[0] * size[1] > _LARGEST_MEAN):
            found = "of any size" if size is None else f"of {size[0]} x {size[1]} pixels"
            raise ConversionError(
                f"transform `{type(each).__name__}` takes the mean of tensors {found}, which torch sums in float32: expected at most "
                f"{_LARGEST_MEAN} pixels; resize first, or put it before `ToImage` or `PILToTensor`"
            )

    def _ColorJitter(self, each, is_v2):
        ranges = {}
        for name in ("brightness", "contrast", "saturation", "hue"):
            pair = getattr(each, name)
            if pair is None:
                continue
            least, most = (-0.5, 0.5) if name == "hue" else (0, 1000)
            if not (
                isinstance(pair, (list, tuple))
                and len(pair) == 2
                and all(map(is_number, pair))
                and least <= pair[0] <= pair[1] <= most
            ):
                self.fail(each, name, pair, f"expected two numbers from {least} to {most}")
            ranges[name] = tuple(map(float, pair))
        if "contrast" in ranges:
            self.small(each, is_v2)
        if ranges:
            self.augment(each, is_v2, "color_jitter", **ranges)

    def _RandomGrayscale(self, each, is_v2):
        probability = self.probability(each)
        if self.is_tensor:
            self.augment(each, is_v2, "randomly", "grayscale", probability=probability)
        else:
            self.made.append(steps.Grayscale(probability))

    def once(self, each, is_v2, name, amount=0.0):
        """One operation that is always the same."""
        self.augment(each, is_v2, "randomly", name, amount, probability=self.probability(each))

    def _RandomInvert(self, each, is_v2):
        self.once(each, is_v2, "invert")

    def _RandomEqualize(self, each, is_v2):
        self.once(each, is_v2, "equalize")

    def _RandomAutocontrast(self, each, is_v2):
        self.once(each, is_v2, "auto_contrast")

    def _RandomPosterize(self, each, is_v2):
        if isinstance(each.bits, bool) or not isinstance(each.bits, int) or not 1 <= each.bits <= 8:
            self.fail(each, "bits", each.bits, "expected a whole number from 1 to 8")
        self.once(each, is_v2, "posterize", float(each.bits))

    def _RandomSolarize(self, each, is_v2):
        if not is_number(each.threshold) or not 0 <= each.threshold <= 256:
            self.fail(each, "threshold", each.threshold, "expected a number from 0 to 256")
        self.once(each, is_v2, "solarize", float(math.ceil(each.threshold)))

    def _RandomAdjustSharpness(self, each, is_v2):
        if not is_number(each.sharpness_factor) or each.sharpness_factor < 0:
            self.fail(each, "sharpness_factor", each.sharpness_factor, "expected a number from 0 on")
        if self.is_tensor and np.float32(each.sharpness_factor) != each.sharpness_factor:
            self.fail(
                each, "sharpness_factor", each.sharpness_factor, "of tensors expected a number of float32, as 1.5"
            )
        self.once(each, is_v2, "sharpness", float(each.sharpness_factor))

    # Blur

    def _GaussianBlur(self, each, is_v2):
        self.arithmetic(each, is_v2)
        widths, sigma = each.kernel_size, each.sigma
        if not (
            isinstance(widths, (list, tuple))
            and len(widths) == 2
            and all(type(width) is int and width % 2 == 1 and 1 <= width <= _MOST_WEIGHTS for width in widths)
        ):
            self.fail(each, "kernel_size", widths, f"expected odd whole numbers up to {_MOST_WEIGHTS}")
        if not (
            isinstance(sigma, (list, tuple))
            and len(sigma) == 2
            and all(map(is_number, sigma))
            and 0 < sigma[0] <= sigma[1]
        ):
            self.fail(each, "sigma", sigma, "expected a smaller and a larger number above 0")
        sigmas = [sigma[0]] if sigma[0] == sigma[1] else np.linspace(sigma[0], sigma[1], _SIGMAS).tolist()
        rows = [tuple(_weights(width, sigma, is_v2) for sigma in sigmas) for width in widths]
        if len(sigmas) > 1:
            self.notes.append(
                f"`GaussianBlur` draws one of {_SIGMAS} sigmas, evenly from {sigma[0]:g} to {sigma[1]:g}; torchvision draws any between."
            )
        self.made.append(steps.Augment("blur", tuple(rows if rows[0] != rows[1] else rows[:1])))

    # Behind the others

    def _RandomErasing(self, each, is_v2):
        area, ratio = self.numbers(each, "scale", 1), self.numbers(each, "ratio")
        if not self.is_tensor:
            raise ConversionError("transform `RandomErasing` is given an image of Pillow: expected a tensor")
        value: Any = each.value if each.value is not None else "random"
        values: Any = [value] if is_number(value) else list(value) if isinstance(value, (list, tuple)) else None
        if value == "random":
            values = "random"
        elif values is None or len(values) not in (1, CHANNELS) or not all(map(is_number, values)):
            self.fail(each, "value", value, f'expected a number, {CHANNELS} numbers or "random"')
        if self.floats is None and (
            values == "random" or not all(float(level).is_integer() and 0 <= level <= 255 for level in values)
        ):
            self.fail(each, "value", value, "of bytes expected whole numbers from 0 to 255")
        is_normalized = self.floats is not None and self.floats[1] is not None
        step = steps.Erase(
            self.probability(each), area, ratio, values if values == "random" else tuple(map(float, values))
        )
        if self.floats is None:
            self.made.append(step)
        else:
            self.erased.append((step, is_normalized))

    def erasing(self, mean, std):
        """Steps that erase floats: values that are normalized afterwards are normalized here."""
        made = []
        for step, is_normalized in self.erased:
            if is_normalized or mean is None:
                made.append(step)
                continue
            if step.value == "random":
                raise ConversionError(
                    'field `value` of RandomErasing is "random": expected it behind `Normalize`, not before'
                )
            values = np.broadcast_to(np.array(step.value, np.float32), CHANNELS)
            values = (values - np.array(mean, np.float32)) / np.array(std, np.float32)
            made.append(dataclasses.replace(step, value=tuple(float(value) for value in values)))
        return made

    def mix(self, each):
        name = type(each).__name__
        if self.floats is None:
            raise ConversionError(f"transform `{name}` is given bytes: expected floats")
        if type(each.num_classes) is not int or not 2 <= each.num_classes <= 10**6:
            self.fail(each, "num_classes", each.num_classes, "expected a whole number from 2 to 1000000")
        if not is_number(each.alpha) or each.alpha <= 0:
            self.fail(each, "alpha", each.alpha, "expected a number above 0")
        getter = getattr(each, "_labels_getter", None)
        if getattr(getter, "__name__", "") != "_find_labels_default_heuristic" and getter is not None:
            kind = getattr(getattr(getter, "func", getter), "__name__", "")
            if "default" not in kind:
                self.fail(each, "labels_getter", kind, "expected the default")
        self.mixes = [("mixup" if name == "MixUp" else "cutmix", float(each.alpha))]
        self.classes = each.num_classes

    def _MixUp(self, each, _):
        self.mix(each)

    def _CutMix(self, each, _):
        self.mix(each)

    # Some of several

    def several(self, each):
        """The transforms that one has."""
        found = each.transforms
        if not (isinstance(found, (list, tuple)) or type(found).__name__ == "ModuleList") or not len(found):
            self.fail(each, "transforms", found, "expected a list of transforms")
        return list(found)

    def inner(self, transforms, place):
        """The steps of transforms that are done for some images only."""
        outer, state = (self.made, self.size_before), (self.is_tensor, self.floats)
        self.made, self.size_before = [], steps.static_size(*outer)
        for each, inner in self.flat(list(transforms)):
            self.read(each, f"{place}{inner}")
        made, (self.made, self.size_before) = self.made, outer
        if (self.is_tensor, self.floats) != state or self.mixes:
            raise ConversionError(
                f"transforms {place}: for some images only they make tensors or floats; expected that for all, behind them"
            )
        return tuple(made)

    def _RandomApply(self, each, _):
        made = self.inner(self.several(each), f"{self.at}.transforms")
        if made:
            self.made.append(steps.Sometimes(self.probability(each), made))

    def _RandomChoice(self, each, _):
        transforms = self.several(each)
        chances = each.p if each.p is not None else [1] * len(transforms)
        if not (
            isinstance(chances, (list, tuple))
            and len(chances) == len(transforms)
            and all(is_number(chance) and chance >= 0 for chance in chances)
            and sum(chances) > 0
        ):
            self.fail(each, "p", each.p, "expected a number from 0 on for each transform")
        if all(type(inner).__name__ in ("MixUp", "CutMix") for inner in transforms):
            mixes, classes = [], set()
            for inner in transforms:
                self.mix(inner)
                mixes, classes = mixes + self.mixes, classes | {self.classes}
            if len(classes) > 1:
                self.fail(transforms[0], "num_classes", max(classes), "expected the same of all")
            if len(set(chances)) > 1:
                self.fail(each, "p", each.p, "of `MixUp` and `CutMix` expected none")
            self.mixes = mixes
            return
        place = self.at
        branches = tuple(
            self.inner([inner], f"{place}.transforms[{number}]") for number, inner in enumerate(transforms)
        )
        total = float(sum(chances))
        self.made.append(steps.OneOf(tuple(chance / total for chance in chances), branches))


def _weights(width, sigma, is_v2):
    """torchvision's weights of a Gaussian: what it makes of one bright pixel."""
    import torch

    if is_v2:
        from torchvision.transforms.v2.functional import gaussian_blur
    else:
        from torchvision.transforms.functional import gaussian_blur

    point = torch.zeros(1, 1, 2 * _MOST_WEIGHTS + 1)
    point[0, 0, _MOST_WEIGHTS] = 1
    found = gaussian_blur(point, [width, 1], [float(sigma)] * 2)[0, 0]
    first = _MOST_WEIGHTS - width // 2
    return tuple(short(value) for value in found.flip(0)[first : first + width].tolist())
