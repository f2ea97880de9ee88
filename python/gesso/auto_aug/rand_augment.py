"""RandAugment: `n` augmentations drawn for each sample, all with the same magnitude `m`."""

import warnings
from typing import Any

from .. import _context, fn, types
from . import augmentations as a
from .core._args import forbid_unused_kwargs
from .core._bins import signed_bin
from .core._utils import check_bins, get_translations, select_or_explain, without


def rand_augment(
    data,
    n,
    m,
    num_magnitude_bins=31,
    shape=None,
    fill_value=128,
    interp_type=None,
    max_translate_abs=None,
    max_translate_rel=None,
    seed=None,
    monotonic_mag=True,
    excluded=None,
):
    """Applies `n` random augmentations of the magnitude bin `m` to each image.

    shape: the images' shapes, height first, so that translations are parts of them; else they are pixels.
    monotonic_mag: a higher magnitude is always a stronger change.
    excluded: names of augmentations to leave out.
    """
    options = {"fill_value": fill_value, "interp_type": interp_type}
    use_shape = shape is not None
    if use_shape:
        options["shape"] = shape
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    augmentations = without(suite(use_shape, max_translate_abs, max_translate_rel), excluded, "RandAugment")
    return apply_rand_augment(augmentations, data, n, m, num_magnitude_bins=num_magnitude_bins, seed=seed, **options)


def apply_rand_augment(augmentations, data, n, m, num_magnitude_bins=31, seed=None, **kwargs):
    """RandAugment with augmentations of one's own."""
    if not isinstance(n, int) or n < 0:
        raise Exception(
            _context.add_words(f"`n`, how many augmentations an image gets, is {n}, expected an int of at least 0")
        )
    check_bins(num_magnitude_bins)
    if not isinstance(m, int) or not 0 <= m < num_magnitude_bins:
        raise Exception(f"`m` is {m}, expected an int from 0 to {num_magnitude_bins - 1}")
    if n == 0:
        warnings.warn("`n` is 0: images stay as they are.", Warning, stacklevel=2)
        return data
    if len(augmentations) == 0:
        raise Exception("The `augmentations` list cannot be empty where `n` is above 0")
    drawn = () if n == 1 else (n,)
    chosen = fn.random.uniform(values=list(range(len(augmentations))), seed=seed, shape=drawn, dtype=types.INT32)
    is_signed = any(augmentation.randomly_negate for augmentation in augmentations)
    bins: Any = signed_bin(m, seed=seed, shape=drawn) if is_signed else m
    forbid_unused_kwargs(augmentations, kwargs, "apply_rand_augment")
    for i in range(n):
        level_bin = bins if not is_signed or n == 1 else bins[i]
        options = dict(data=data, magnitude_bin=level_bin, num_magnitude_bins=num_magnitude_bins, **kwargs)
        level = chosen if n == 1 else chosen[i]
        data = select_or_explain(augmentations, level, options, "apply_rand_augment", "get_rand_augment_suite")
    return data


def _translations(use_shape, max_translate_abs, max_translate_rel):
    return get_translations(use_shape, 100, 100 / 224, max_translate_abs, max_translate_rel)


def get_rand_augment_suite(use_shape=False, max_translate_abs=None, max_translate_rel=None):
    """The augmentations of RandAugment, where a higher magnitude is a stronger change."""
    return _translations(use_shape, max_translate_abs, max_translate_rel) + [
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
        a.brightness.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.contrast.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.color.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.sharpness.augmentation((0, 0.9), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(use_shape=False, max_translate_abs=None, max_translate_rel=None):
    """The augmentations of RandAugment with the ranges of AutoAugment."""
    return _translations(use_shape, max_translate_abs, max_translate_rel) + [
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
        a.brightness.augmentation((0.1, 1.9), False, None),
        a.contrast.augmentation((0.1, 1.9), False, None),
        a.color.augmentation((0.1, 1.9), False, None),
        a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((0, 256), False, None),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
