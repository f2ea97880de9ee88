"""Random augmentations under the names and with the arguments of torchvision: `color_jitter`, `random_erasing`,
`mixup`, `cutmix`.

They are made of operators of `gesso.fn`, so a pipeline with them is a file that servers and DALI run. Images are `HWC`,
on the host or the GPU."""

import itertools
import math as _math

import numpy as np

from . import fn, math, types

# What a channel weighs in the gray picture (ITU-R 601), as torchvision has it.
_GRAY = np.array([0.2989, 0.587, 0.114], np.float32)
# Where the hue of a channel begins, in sixths of a circle.
_SECTORS = np.array([5.0, 3.0, 1.0], np.float32)
_BRIGHTNESS, _CONTRAST, _SATURATION, _HUE = range(4)
_ORDERS = np.array(list(itertools.permutations(range(4))), np.int32)
_ATTEMPTS = 10
# More than one way of mixing draws with.
_SEEDS = 8


def color_jitter(images, brightness=0, contrast=0, saturation=0, hue=0, *, value_range=255.0, seed=None):
    """Changes brightness, contrast, saturation and hue of RGB images by random amounts, in random order, as
    torchvision's `ColorJitter`.

    `brightness`, `contrast` and `saturation`: a number `x` for factors of `max(0, 1 - x)` to `1 + x`, or the least and
    the largest factor. `hue`: a number up to 0.5 for shifts of `-hue` to `hue`, or the least and the largest shift; 1
    is the whole circle. `value_range`: white, 255 or, for images of floats, often 1. The result has the type of the
    images; it is rounded once, at the end.

    `fn.color_twist` is faster: one matrix, with another hue and a contrast around gray.
    """
    ranges = [
        _factors("brightness", brightness),
        _factors("contrast", contrast),
        _factors("saturation", saturation),
        _shifts(hue),
    ]
    seeds = _seeds(seed)
    drawn = [None if pair is None else _between(pair[0], pair[1], next(seeds)) for pair in ranges]
    if all(amount is None for amount in drawn):
        return images
    order = types.Constant(_ORDERS)[
        fn.random.uniform(values=list(range(len(_ORDERS))), dtype=types.INT32, seed=next(seeds))
    ]
    return _jittered(images, order, drawn, value_range)


def _factors(name, value):
    """The least and the largest factor; None where nothing changes."""
    pair = (max(0.0, 1.0 - value), 1.0 + value) if isinstance(value, (int, float)) else tuple(value)
    if isinstance(value, (int, float)) and value < 0 or len(pair) != 2 or not 0 <= pair[0] <= pair[1]:
        raise ValueError(f"`{name}` is {value!r}, expected a number from 0 on, or the least and the largest factor")
    return None if pair == (1.0, 1.0) else tuple(map(float, pair))


def _shifts(value):
    pair = (-value, value) if isinstance(value, (int, float)) else tuple(value)
    if len(pair) != 2 or not -0.5 <= pair[0] <= pair[1] <= 0.5:
        raise ValueError(
            f"`hue` is {value!r}, expected a number from 0 to 0.5, or the least and the largest shift from -0.5 to 0.5"
        )
    return None if pair == (0, 0) else tuple(map(float, pair))


def _seeds(seed):
    """A seed for each operator that draws: none, or numbers from `seed` on."""
    return itertools.repeat(None) if seed is None else itertools.count(seed)


def _between(low, high, seed, shape=()):
    """Numbers of each sample between two that may be one."""
    low, high = float(low), float(high)
    if low == high:
        return fn.constant(fdata=[low], shape=list(shape))
    return fn.random.uniform(range=[low, high], shape=list(shape), seed=seed)


def _jittered(images, order, amounts, value_range):
    """The images, changed by `amounts` (None: not at all) in the order of the four numbers of `order`."""
    pixels = fn.cast(images, dtype=types.FLOAT)
    steps = [order[i] for i in range(len(amounts))]
    if amounts[_HUE] is None:
        for step in steps:
            pixels = _blended(pixels, step, amounts, value_range, None)
        return fn.cast_like(pixels, images)
    # Shifting the hue takes longest. So it is done once, and what comes before and behind it is a step or none.
    place = sum((i * (step == _HUE) for i, step in enumerate(steps)), 0)
    for i, step in enumerate(steps[:-1]):
        pixels = _blended(pixels, step, amounts, value_range, place > i)
    pixels = _hue_shifted(pixels, amounts[_HUE])
    for i, step in enumerate(steps[1:], 1):
        pixels = _blended(pixels, step, amounts, value_range, place < i)
    return fn.cast_like(pixels, images)


def _blended(pixels, step, amounts, value_range, is_done):
    """One step that is no shift of the hue: a mean of the pixels and black, or the mean gray, or their own gray."""
    factor = 1.0
    for kind in (_BRIGHTNESS, _CONTRAST, _SATURATION):
        if amounts[kind] is not None:
            chosen = step == kind if is_done is None else (step == kind) & is_done
            factor = factor + chosen * (amounts[kind] - 1.0)
    mixed = pixels * factor
    gray = None
    if amounts[_CONTRAST] is not None or amounts[_SATURATION] is not None:
        gray = fn.reductions.sum(pixels * types.Constant(_GRAY, device=pixels.device), axes=[2], keep_dims=True)
    if amounts[_CONTRAST] is not None:
        mixed = mixed + fn.reductions.mean(gray) * _on(pixels, (1.0 - factor) * (step == _CONTRAST))
    if amounts[_SATURATION] is not None:
        mixed = mixed + gray * _on(pixels, (1.0 - factor) * (step == _SATURATION))
    return math.clamp(mixed, 0.0, float(value_range))


def _on(pixels, node):
    """A number for each sample where the pixels are."""
    return node.gpu() if pixels.device == "gpu" and node.device == "cpu" else node


def _hue_shifted(pixels, shift):
    """The pixels with their hue moved by `shift` of the circle: to HSV and back."""
    red, green, blue = (pixels[:, :, i : i + 1] for i in range(3))
    largest = fn.reductions.max(pixels, axes=[2], keep_dims=True)
    chroma = largest - fn.reductions.min(pixels, axes=[2], keep_dims=True)
    divisor = chroma + (chroma == 0.0)
    is_red = largest == red
    is_green = (largest == green) & (is_red ^ True)
    is_blue = (is_red | is_green) ^ True
    hue = (
        is_red * ((green - blue) / divisor)
        + is_green * ((blue - red) / divisor + 2.0)
        + is_blue * ((red - green) / divisor + 4.0)
    )
    turned = hue + types.Constant(_SECTORS, device=pixels.device) + _on(pixels, shift * 6.0 + 6.0)
    turned = turned - math.floor(turned / 6.0) * 6.0
    return largest - chroma * math.clamp(math.min(turned, 4.0 - turned), 0.0, 1.0)


def random_erasing(images, p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, *, axes=(0, 1), seed=None):
    """Fills a random rectangle of an image with probability `p`, as torchvision's `RandomErasing`.

    `scale`: the least and the largest part of the image's area. `ratio`: the least and the largest height by width.
    `value`: one number, a number for each channel, or `"random"` for normally distributed noise, in images of floats. A
    rectangle is drawn up to ten times until it is smaller than the image; else the image stays as it is. `axes` are the
    dimensions of rows and columns: `(1, 2)` for images that are `CHW`.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"`p` is {p!r}, expected a probability from 0 to 1")
    if len(scale) != 2 or not 0 <= scale[0] <= scale[1] <= 1:
        raise ValueError(f"`scale` is {scale!r}, expected two parts of the area from 0 to 1, the smaller one first")
    if len(ratio) != 2 or not 0 < ratio[0] <= ratio[1]:
        raise ValueError(f"`ratio` is {ratio!r}, expected two positive numbers, the smaller one first")
    seeds = _seeds(seed)
    areas = _between(scale[0], scale[1], next(seeds), [_ATTEMPTS])
    ratios = _between(_math.log(ratio[0]), _math.log(ratio[1]), next(seeds), [_ATTEMPTS])
    places = _between(0, 1, next(seeds), [2])
    is_erased = _between(0, 1, next(seeds)) < float(p)
    axes = list(axes)
    anchor, shape = _rectangle(images, axes, areas, math.exp(ratios), places, is_erased)
    if isinstance(value, str):
        if value != "random":
            raise ValueError(f'`value` is {value!r}, expected numbers or "random"')
        noise = fn.random.normal(images, seed=next(seeds), device=images.device)
        kept = fn.erase(
            fn.ones_like(images, dtype=types.FLOAT, device=images.device), anchor=anchor, shape=shape, axes=axes
        )
        return fn.cast_like(images * kept + noise * (1.0 - kept), images)
    fill = [float(number) for number in value] if isinstance(value, (list, tuple)) else float(value)
    return fn.erase(images, anchor=anchor, shape=shape, axes=axes, fill_value=fill, device=images.device)


def _rectangle(images, axes, areas, ratios, places, is_erased):
    """Where the first of several rectangles is that is smaller than the image, and its size; without extent where there
    is none."""
    size = fn.cast(images.shape(), dtype=types.FLOAT)
    height, width = size[axes[0]], size[axes[1]]
    heights = math.floor(math.sqrt(areas * ratios * (height * width)) + 0.5)
    widths = math.floor(math.sqrt(areas / ratios * (height * width)) + 0.5)
    fits = (heights < height) & (widths < width)
    rank = fn.reductions.max(fits * types.Constant(np.arange(_ATTEMPTS, 0, -1, dtype=np.int32)))
    first = math.min(_ATTEMPTS - fn.cast(rank, dtype=types.INT32), _ATTEMPTS - 1)
    is_there = (rank > 0) & is_erased
    h, w = heights[first] * is_there, widths[first] * is_there
    top, left = (math.floor(places[i] * (whole - part + 1.0)) for i, whole, part in ((0, height, h), (1, width, w)))
    return fn.stack(top, left), fn.stack(h, w)


def mixup(images, labels, *, alpha=1.0, num_classes=None, seed=None):
    """Mixes each image of a batch with another one of it, and their labels, as torchvision's `MixUp`.

    One weight for the batch is drawn from the beta distribution of `alpha`. `labels` are numbers of classes, of which
    there are `num_classes`; without `num_classes` they are vectors already. Returns images and labels of floats. The
    images of a batch have one shape. Which images are mixed is drawn, by `fn.batch_permutation` without fixed points;
    torchvision takes the one before."""
    if not alpha > 0:
        raise ValueError(f"`alpha` is {alpha!r}, expected a number above 0")
    seeds = _seeds(seed)
    weight = _for_all(fn.random.beta(alpha=float(alpha), beta=float(alpha), seed=next(seeds)))
    other = fn.batch_permutation(no_fixed_points=True, seed=next(seeds))
    return tuple(_mixed(batch, other, weight, 1.0 - weight) for batch in (images, _vectors(labels, num_classes)))


def cutmix(images, labels, *, alpha=1.0, num_classes=None, axes=(0, 1), seed=None):
    """Puts a rectangle of another image of the batch into each image, and mixes their labels by the area, as
    torchvision's `CutMix`.

    One rectangle for the batch is drawn, whose part of the area is from the beta distribution of `alpha`. The rest is
    as with `mixup`. `axes` are the dimensions of rows and columns: `(1, 2)` for images that are `CHW`."""
    if not alpha > 0:
        raise ValueError(f"`alpha` is {alpha!r}, expected a number above 0")
    seeds = _seeds(seed)
    weight = _for_all(fn.random.beta(alpha=float(alpha), beta=float(alpha), seed=next(seeds)))
    places = _for_all(fn.random.uniform(range=[0, 1], shape=[2], seed=next(seeds)))
    other = fn.batch_permutation(no_fixed_points=True, seed=next(seeds))
    size = fn.cast(images.shape(), dtype=types.FLOAT)
    half, ends = 0.5 * math.sqrt(1.0 - weight), []
    for place, axis in enumerate(axes):
        middle, reach = math.floor(places[place] * size[axis]), math.floor(half * size[axis])
        ends.append((math.max(middle - reach, 0.0), math.min(middle + reach, size[axis])))
    (top, bottom), (left, right) = ends
    anchor, shape = fn.stack(top, left), fn.stack(bottom - top, right - left)
    batch = fn.cast(images, dtype=types.FLOAT)
    kept = fn.erase(
        fn.ones_like(batch, dtype=types.FLOAT, device=batch.device), anchor=anchor, shape=shape, axes=list(axes)
    )
    area = fn.cast(shape[0] * shape[1], dtype=types.FLOAT64) / (size[axes[0]] * size[axes[1]])
    share, rest = fn.cast(1.0 - area, dtype=types.FLOAT), fn.cast(1.0 - (1.0 - area), dtype=types.FLOAT)
    labels = _vectors(labels, num_classes)
    return _mixed(batch, other, kept, 1.0 - kept), _mixed(labels, other, share, rest)


def mixed(images, labels, ways, *, num_classes=None, axes=(0, 1), seed=None):
    """Mixes the images of each batch by one of several ways, all as likely: `ways` are `("mixup", alpha)` and
    `("cutmix", alpha)`."""
    chosen = _for_all(fn.random.uniform(values=list(range(len(ways))), seed=seed))
    own_seeds = itertools.repeat(None) if seed is None else itertools.count(seed + 1, _SEEDS)
    made = [
        mixup(images, labels, alpha=alpha, num_classes=num_classes, seed=own)
        if name == "mixup"
        else cutmix(images, labels, alpha=alpha, num_classes=num_classes, axes=axes, seed=own)
        for (name, alpha), own in zip(ways, own_seeds, strict=False)
    ]
    parts = [fn.cast(chosen == number, dtype=types.FLOAT) for number in range(len(ways))]
    return tuple(
        sum(batch * _on(batch, part) for batch, part in zip(batches, parts, strict=True))
        for batches in zip(*made, strict=True)
    )


def _for_all(node):
    """The first sample's value for the whole batch."""
    return fn.permute_batch(node, indices=fn.constant(idata=[0], shape=[]))


def _vectors(labels, num_classes):
    return labels if num_classes is None else fn.one_hot(labels, num_classes=num_classes, dtype=types.FLOAT)


def _mixed(batch, other, share, rest):
    batch = fn.cast(batch, dtype=types.FLOAT)
    return batch * _on(batch, share) + fn.permute_batch(batch, indices=other) * _on(batch, rest)
