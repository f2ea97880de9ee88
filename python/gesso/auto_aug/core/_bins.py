"""Magnitudes with a random sign."""

import numpy as np

from ... import fn, types
from ...data_node import DataNode


class SignedMagnitudeBin:
    """A bin of magnitudes and a sign for each sample: 0 keeps, 1 negates. `signed_magnitude_idx` counts both: 2 * bin +
    sign."""

    def __init__(self, magnitude_bin, random_sign, signed_magnitude_idx):
        self.bin = magnitude_bin
        self.random_sign = random_sign
        self.signed_magnitude_idx = signed_magnitude_idx

    def __getitem__(self, index):
        chosen = self.bin if isinstance(self.bin, int) else self.bin[index]
        return SignedMagnitudeBin(chosen, self.random_sign[index], self.signed_magnitude_idx[index])


def with_signs(magnitudes):
    """Each magnitude and its negative."""
    return np.array([sign * magnitude for magnitude in magnitudes for sign in (1, -1)])


def signed_bin(magnitude_bin, random_sign=None, seed=None, shape=None):
    """A magnitude bin, a number or one for each sample, with a random sign for each sample."""
    if not isinstance(magnitude_bin, (int, DataNode)):
        raise Exception(
            f"`magnitude_bin` is {magnitude_bin}, expected an int from 0 to `num_magnitude_bins - 1`, or a `DataNode` of such"
        )
    if random_sign is not None and (seed is not None or shape is not None):
        raise Exception("`random_sign` is given, and so are `seed` or `shape`, which are for drawing it")
    if random_sign is None:
        random_sign = fn.random.uniform(values=[0, 1], dtype=types.INT32, seed=seed, shape=shape)
    return SignedMagnitudeBin(magnitude_bin, random_sign, 2 * magnitude_bin + random_sign)
