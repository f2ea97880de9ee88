"""`Normalize` and `GaussianBlur`."""

import math
from collections.abc import Sequence
from numbers import Number

import numpy as np
import torch

from .. import fn
from .._authoring.constants import Constant
from .._tensors.arrays import is_torch_tensor
from .._tensors.enums import DALIDataType
from .checks import at_least, in_order, numbers_of
from .picture import Transform


def _per_channel(value, name):
    if isinstance(value, str) or not (isinstance(value, (Sequence, np.ndarray)) or is_torch_tensor(value)):
        raise TypeError(f"{name} must be a Sequence, got {type(value)}")
    return tuple(float(number) for number in value)


class Normalize(Transform):
    """`(x - mean) / std` for each channel, in float32 (of float64 in float64), as torchvision computes it."""

    def __init__(self, mean, std, inplace=False, device="cpu"):
        super().__init__(device)
        if inplace:
            raise NotImplementedError("`inplace` is not supported: the result is another tensor")
        self.mean, self.std = _per_channel(mean, "Mean"), _per_channel(std, "Std")
        if 0 in self.std:
            raise ValueError("Std must not be 0")

    def _run(self, node, picture):
        is_double = picture.dtype == DALIDataType.FLOAT64
        dtype = DALIDataType.FLOAT64 if is_double else DALIDataType.FLOAT
        shape = (1, 1, -1) if picture.is_image else (-1, 1, 1)
        mean, std = (
            Constant(np.array(values).reshape(shape), dtype=dtype, layout=picture.layout, device="cpu")
            for values in (self.mean, self.std)
        )
        if node.device == "gpu":
            mean, std = mean.gpu(), std.gpu()
        if dtype != picture.dtype:
            node = fn.cast(node, dtype=dtype)
        return (node - mean) / std, picture._replace(dtype=dtype)


def _checked_kernel(kernel_size):
    """(height, width) of a kernel given as one number, or as (width, height) in torchvision's order."""
    sizes = numbers_of(kernel_size)
    if len(sizes) not in (1, 2) or not all(isinstance(size, int) for size in sizes):
        raise ValueError(f"`kernel_size` is {kernel_size!r}, expected one or two whole numbers")
    if any(size <= 0 or size % 2 == 0 for size in sizes):
        raise ValueError(f"Kernel size values should be odd positive numbers, got {kernel_size}")
    return (sizes * 2)[:2][::-1]


def _weights(size, sigma):
    """A row of a Gaussian, as torchvision computes it."""
    end = (size - 1) / (2 * math.sqrt(2))
    places = torch.linspace(-end, end, steps=size) / sigma
    return torch.softmax(-places.pow(2), dim=0).tolist()


def _blurred(node, picture, sizes, sigmas, device):
    """A blur whose rows and columns have sizes and sigmas of their own, both (height's, width's)."""
    if not picture.is_exact(device):
        return fn.gaussian_blur(node, window_size=sizes, sigma=sigmas)
    along_y, along_x = (np.array(_weights(*each), np.float32) for each in zip(sizes, sigmas))
    weights = {"weights_x": Constant(along_x), "weights_y": Constant(along_y)}
    return picture.restored(fn.gesso.blur(picture.interleaved(node), **weights))


class GaussianBlur(Transform):
    """A blur by a Gaussian of `kernel_size`, one number or (width, height); its `sigma` is a number, or drawn from
    (min, max). Colours of 8 bits with one `sigma` have torchvision's pixels; floats differ in the last bits."""

    def __init__(self, kernel_size, sigma=(0.1, 2.0), device="cpu", seed=-1):
        super().__init__(device)
        self.kernel_size, self.seed = _checked_kernel(kernel_size), seed
        limits = numbers_of(sigma)
        if len(limits) not in (1, 2) or not all(isinstance(value, Number) for value in limits):
            raise ValueError(f"sigma must be a float or a (min, max) sequence, got {sigma!r}")
        at_least(limits, 0, "sigma", is_open=True)
        in_order(limits, "sigma")
        self.sigma = (limits * 2)[:2]

    def _run(self, node, picture):
        low, high = self.sigma
        if low == high:
            return _blurred(node, picture, self.kernel_size, (low, low), self.device), picture
        seed = {"seed": self.seed} if self.seed >= 0 else {}
        sigma = fn.random.uniform(range=[low, high], **seed)
        return fn.gaussian_blur(node, window_size=self.kernel_size, sigma=sigma), picture


class FixedBlur(Transform):
    """A blur whose `sigma` is (height's, width's): what the function `gaussian_blur` does."""

    def __init__(self, kernel_size, sigma, device="cpu"):
        super().__init__(device)
        self.kernel_size = _checked_kernel(kernel_size)
        if sigma is None:
            # torchvision's default.
            sigma = tuple(size * 0.15 + 0.35 for size in self.kernel_size[::-1])
        sigmas = numbers_of(sigma)
        if len(sigmas) not in (1, 2) or not all(isinstance(value, Number) for value in sigmas):
            raise ValueError(f"`sigma` is {sigma!r}, expected one or two numbers")
        at_least(sigmas, 0, "sigma", is_open=True)
        self.sigma = (sigmas * 2)[:2][::-1]

    def _run(self, node, picture):
        return _blurred(node, picture, self.kernel_size, self.sigma, self.device), picture
