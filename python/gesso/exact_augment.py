"""Random augmentations of training whose pixels are Pillow's or torchvision's, to the bit: what `gesso.convert` makes
of `ColorJitter`, `RandAugment`, `TrivialAugmentWide`, `AutoAugment` and their like.

Images are RGB of 8 bits, `HWC`, on the host. Numbers are drawn by operators of `fn.random` from torchvision's
distributions; `fn.gesso.augment` computes. An operation is a name of `OPERATIONS`. All functions take that operator's
`arithmetic`, `filter` and `fill`, too."""

import itertools

import numpy as np

from . import fn, types

#: In the order of their numbers.
OPERATIONS = (
    *("keep", "brightness", "contrast", "saturation", "hue", "sharpness", "posterize", "solarize", "auto_contrast"),
    *("equalize", "invert", "grayscale", "shear_x", "shear_y", "translate_x", "translate_y", "rotate"),
)
# Their magnitude is a factor, and what is drawn is its distance to 1.
_FACTORS = ("brightness", "contrast", "saturation", "sharpness")


def number(name):
    """The number of an operation's name."""
    if name not in OPERATIONS:
        raise ValueError(f"operation {name!r}: expected one of {', '.join(OPERATIONS)}")
    return OPERATIONS.index(name)


def _one_of(count):
    return fn.random.uniform(values=list(range(count)), dtype=types.INT32)


def _between(low, high):
    low, high = float(low), float(high)
    return fn.constant(fdata=[low], shape=[]) if low == high else fn.random.uniform(range=[low, high])


def _ints(values):
    return types.Constant(np.array(values, np.int32))


def _floats(values):
    return types.Constant(np.array(values, np.float32))


def _applied(images, operations, magnitudes, options):
    return fn.gesso.augment(
        images, operations=fn.stack(*operations), magnitudes=fn.stack(*magnitudes), device="cpu", **options
    )


def color_jitter(images, *, brightness=None, contrast=None, saturation=None, hue=None, **options):
    """Changes each of the four by an amount between two that are given, in random order, as `ColorJitter`."""
    given = {"brightness": brightness, "contrast": contrast, "saturation": saturation, "hue": hue}
    ranges = {name: pair for name, pair in given.items() if pair is not None}
    if not ranges:
        return images
    orders = list(itertools.permutations(range(len(ranges))))
    order = _ints(orders)[_one_of(len(orders))]
    numbers, amounts = _ints([number(name) for name in ranges]), fn.stack(*itertools.starmap(_between, ranges.values()))
    places = [order[place] for place in range(len(ranges))]
    return _applied(images, [numbers[place] for place in places], [amounts[place] for place in places], options)


def randomly(images, name, low=0.0, high=None, *, probability=1.0, **options):
    """One operation with an amount between two, on some images where the probability is not 1."""
    operation = _ints(number(name))
    if probability != 1:
        operation = operation * fn.random.coin_flip(probability=probability, dtype=types.INT32)
    return _applied(images, [operation], [_between(low, low if high is None else high)], options)


def _signed(chosen, magnitudes, is_signed, offsets, place):
    """The magnitude of a drawn operation: with a random sign where it has one, and a factor beside 1."""
    sign = 1.0 - 2.0 * (fn.random.coin_flip() * _floats(is_signed)[chosen])
    return _floats(offsets)[chosen] + sign * _floats(magnitudes)[place]


def _offsets(names):
    return [float(name in _FACTORS) for name in names]


def rand_augment(images, operations, count=2, **options):
    """As many operations as `count` says, each drawn from all, as `RandAugment`. `operations` are names, magnitudes,
    and whether the sign is random."""
    names, magnitudes, is_signed = zip(*operations, strict=True)
    numbers, found = _ints(list(map(number, names))), []
    for _ in range(count):
        chosen = _one_of(len(names))
        found.append((numbers[chosen], _signed(chosen, magnitudes, is_signed, _offsets(names), chosen)))
    if not found:
        return images
    chosen, values = zip(*found, strict=True)
    return _applied(images, chosen, values, options)


def trivial_augment(images, operations, **options):
    """One operation of all with one of its magnitudes, as `TrivialAugmentWide`. `operations` are names, magnitudes
    (lists that are all as long, or one number), and whether the sign is random."""
    names, magnitudes, is_signed = zip(*operations, strict=True)
    bins = max(len(each) for each in magnitudes if isinstance(each, (list, tuple)))
    magnitudes = [each if isinstance(each, (list, tuple)) else [each] * bins for each in magnitudes]
    chosen = _one_of(len(names))
    place = chosen * bins + _one_of(bins)
    magnitude = _signed(chosen, list(itertools.chain(*magnitudes)), is_signed, _offsets(names), place)
    return _applied(images, [_ints(list(map(number, names)))[chosen]], [magnitude], options)


def auto_augment(images, policies, **options):
    """One policy of all, as `AutoAugment`. A policy is operations in their order: name, probability, magnitude, and
    whether the sign is random."""
    length = len(policies[0])
    names, chances, magnitudes, is_signed = zip(*itertools.chain(*policies), strict=True)
    numbers, first, found = _ints(list(map(number, names))), _one_of(len(policies)) * length, []
    for step in range(length):
        chosen = first + step
        is_applied = fn.random.uniform(range=[0, 1]) <= _floats(chances)[chosen]
        found.append((numbers[chosen] * is_applied, _signed(chosen, magnitudes, is_signed, _offsets(names), chosen)))
    chosen, values = zip(*found, strict=True)
    return _applied(images, chosen, values, options)


def blur(images, weights_x, weights_y=None):
    """Blurs by the product of two rows of weights, drawn from several of each at the same place, as `GaussianBlur`.
    Without `weights_y` both are the same."""
    weights_y = weights_x if weights_y is None else weights_y
    chosen = _one_of(len(weights_x))
    along_x, along_y = _floats(weights_x)[chosen], _floats(weights_y)[chosen]
    return fn.gesso.blur(images, weights_x=along_x, weights_y=along_y, device="cpu")
