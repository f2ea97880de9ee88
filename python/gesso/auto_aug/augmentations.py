"""The augmentations that the policies and suites are made of. Images are `uint8` with the layout HWC."""

import numpy as np

from .. import fn, types
from .core.decorator import augmentation

_LUMA = (0.299, 0.587, 0.114)


def warp_x_param(magnitude):
    """The magnitude along x."""
    return [magnitude, 0]


def warp_y_param(magnitude):
    """The magnitude along y."""
    return [0, magnitude]


def _warp(data, matrix, fill_value, interp_type):
    return fn.warp_affine(data, matrix=matrix, fill_value=fill_value, interp_type=interp_type, inverse_map=False)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
def shear_x(data, shear, fill_value=128, interp_type=None):
    """Shears along x."""
    return _warp(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
def shear_y(data, shear, fill_value=128, interp_type=None):
    """Shears along y."""
    return _warp(data, fn.transforms.shear(shear=shear), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
def translate_x(data, rel_offset, shape, fill_value=128, interp_type=None):
    """Moves along x by a part of the width; `shape` is that of the image, height first."""
    offset = rel_offset * shape[1]
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
def translate_x_no_shape(data, offset, fill_value=128, interp_type=None):
    """Moves along x by pixels."""
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
def translate_y(data, rel_offset, shape, fill_value=128, interp_type=None):
    """Moves along y by a part of the height; `shape` is that of the image, height first."""
    offset = rel_offset * shape[0]
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
def translate_y_no_shape(data, offset, fill_value=128, interp_type=None):
    """Moves along y by pixels."""
    return _warp(data, fn.transforms.translation(offset=offset), fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
def rotate(data, angle, fill_value=128, interp_type=None, rotate_keep_size=True):
    """Turns by degrees."""
    return fn.rotate(data, angle=angle, fill_value=fill_value, interp_type=interp_type, keep_size=rotate_keep_size)


def shift_enhance_range(magnitude):
    """1 changes nothing."""
    return 1 + magnitude


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def brightness(data, parameter):
    """Multiplies with the parameter."""
    return fn.brightness(data, brightness=parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def contrast(data, parameter):
    """Stretches away from the mean luma of the image, as Pillow does."""
    mean = fn.reductions.mean(data, axis_names="HW", keep_dims=True)
    weights = types.Constant(np.array(_LUMA, dtype=np.float32))
    center = fn.reductions.sum(mean * weights, axis_names="C", keep_dims=True)
    return fn.cast_like(center + (data - center) * parameter, data)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
def color(data, parameter):
    """Changes the saturation."""
    return fn.saturation(data, saturation=parameter)


def sharpness_kernel(magnitude):
    """A kernel between the image (0) and more than the image minus a blurred one (1)."""
    blurred = np.ones((3, 3), dtype=np.float32)
    blurred[1, 1] = 5
    image = np.zeros((3, 3), dtype=np.float32)
    image[1, 1] = 1
    return -magnitude * (blurred / 13) + (1 + magnitude) * image


def sharpness_kernel_shifted(magnitude):
    """`sharpness_kernel` for magnitudes around 1."""
    return sharpness_kernel(magnitude - 1)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
def sharpness(data, kernel):
    """Blurs or sharpens; the border, too."""
    return fn.experimental.filter(data, kernel)


def poster_mask_uint8(magnitude):
    """A mask that keeps the upper bits: as many as the magnitude says, 1 to 8."""
    bits = int(np.clip(np.round(magnitude), 1, 8))
    return np.array(255 ^ (2 ** (8 - bits) - 1), dtype=np.uint8)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
def posterize(data, mask):
    """Keeps the upper bits."""
    return data & mask


@augmentation(mag_range=(256, 0), param_device="auto")
def solarize(data, threshold):
    """Inverts what is not below the threshold."""
    inverted = types.Constant(255, dtype=types.UINT8) - data
    below = data < threshold
    above = below ^ True
    return below * data + above * inverted


def solarize_add_shift(shift):
    """A shift that cannot overflow."""
    if shift >= 128:
        raise Exception("solarize_add shifts by 0 to 128")
    return np.uint8(shift)


@augmentation(mag_range=(0, 110), param_device="auto", mag_to_param=solarize_add_shift)
def solarize_add(data, shift):
    """Adds to what is below 128."""
    below = data < types.Constant(128, dtype=types.UINT8)
    above = below ^ True
    shifted = data + shift
    return below * shifted + above * data


@augmentation
def invert(data, _):
    """255 minus the image."""
    return types.Constant(255, dtype=types.UINT8) - data


@augmentation
def equalize(data, _):
    """Equalizes the histogram of each channel."""
    return fn.experimental.equalize(data)


@augmentation
def auto_contrast(data, _):
    """Stretches each channel to the whole range; channels of one value stay."""
    lowest = fn.reductions.min(data, axis_names="HW", keep_dims=True)
    highest = fn.reductions.max(data, axis_names="HW", keep_dims=True)
    span = highest - lowest
    has_span = span > 0
    has_none = has_span ^ True
    divisor = span * has_span + types.Constant(255, dtype=types.UINT8) * has_none
    scale = 255 / divisor
    return fn.cast_like((data - lowest * has_span) * scale, data)


@augmentation
def identity(data, _):
    """Nothing."""
    return data
