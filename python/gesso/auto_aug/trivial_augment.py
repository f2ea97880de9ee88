"""TrivialAugment: one augmentation with one magnitude, both drawn for each sample."""

from .. import fn, types
from . import augmentations as a
from .core._args import forbid_unused_kwargs
from .core._bins import signed_bin
from .core._utils import check_bins, get_translations, select_or_explain, without


def trivial_augment_wide(
    data,
    num_magnitude_bins=31,
    shape=None,
    fill_value=128,
    interp_type=None,
    max_translate_abs=None,
    max_translate_rel=None,
    seed=None,
    excluded=None,
):
    """Applies one random augmentation to each image. For the arguments see `rand_augment`."""
    options = {"fill_value": fill_value, "interp_type": interp_type}
    use_shape = shape is not None
    if use_shape:
        options["shape"] = shape
    suite = get_trivial_augment_wide_suite(use_shape, max_translate_abs, max_translate_rel)
    augmentations = without(suite, excluded, "TrivialAugmentWide")
    return apply_trivial_augment(augmentations, data, num_magnitude_bins=num_magnitude_bins, seed=seed, **options)


def apply_trivial_augment(augmentations, data, num_magnitude_bins=31, seed=None, **kwargs):
    """TrivialAugment with augmentations of one's own."""
    check_bins(num_magnitude_bins)
    if len(augmentations) == 0:
        raise Exception("The `augmentations` list cannot be empty")
    bins = fn.random.uniform(values=list(range(num_magnitude_bins)), dtype=types.INT32, seed=seed)
    if any(augmentation.randomly_negate for augmentation in augmentations):
        bins = signed_bin(bins, seed=seed)
    forbid_unused_kwargs(augmentations, kwargs, "apply_trivial_augment")
    options = dict(data=data, magnitude_bin=bins, num_magnitude_bins=num_magnitude_bins, **kwargs)
    chosen = fn.random.uniform(values=list(range(len(augmentations))), seed=seed, dtype=types.INT32)
    return select_or_explain(augmentations, chosen, options, "apply_trivial_augment", "get_trivial_augment_wide_suite")


def get_trivial_augment_wide_suite(use_shape=False, max_translate_abs=None, max_translate_rel=None):
    """The augmentations of TrivialAugment Wide."""
    return get_translations(use_shape, 32, 1.0, max_translate_abs, max_translate_rel) + [
        a.shear_x.augmentation((0, 0.99), True),
        a.shear_y.augmentation((0, 0.99), True),
        a.rotate.augmentation((0, 135), True),
        a.brightness.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.contrast.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.color.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.sharpness.augmentation((0.01, 0.99), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 2), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
