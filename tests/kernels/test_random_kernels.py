"""The kernels that draw random numbers on the host, against the generator in Python."""

import math

import numpy as np
import pytest
from emulator import needs_compiler
from test_elementwise_kernels import address, noise

KEY, SEQUENCE = 0xFEDCBA9876543210, 2**40 + 65537
TYPES = {
    "uint8_t": np.uint8,
    "int16_t": np.int16,
    "uint32_t": np.uint32,
    "int64_t": np.int64,
    "float": np.float32,
    "double": np.float64,
}

pytestmark = needs_compiler


def block(key, low, high):
    """Philox4x32-10 as in the paper."""
    k, (x, y), (z, w) = [key % 2**32, key >> 32], (low % 2**32, low >> 32), (high % 2**32, high >> 32)
    for _ in range(10):
        first, second = 0xD2511F53 * x, 0xCD9E8D57 * z
        x, y, z, w = second >> 32 ^ y ^ k[0], second % 2**32, first >> 32 ^ w ^ k[1], first % 2**32
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return [x, y, z, w]


def words(elements):
    """The first four words of every element."""

    def of(place):
        return block(KEY, place // 4, SEQUENCE)[place % 4]

    return np.array([[of(257 * e + i) for i in range(4)] for e in range(elements)], np.uint64)


def reals(elements, wide):
    """Numbers from 0 to 1: two for each element."""
    w = words(elements)
    if wide:
        return (
            np.stack([w[:, 0] | w[:, 1] << np.uint64(32), w[:, 2] | w[:, 3] << np.uint64(32)]).astype(np.float64)
            * 2.0**-64
        )
    return w[:, :2].T.astype(np.float32).astype(np.float64) * 2.0**-32


def normals(elements, wide):
    first, second = reals(elements, wide)
    return np.sqrt(-2 * np.log(first)) * np.cos(2 * math.pi * second)


def is_wide(dtype):
    return np.dtype(dtype).itemsize >= 4 and dtype != np.float32


def flags(target):
    return dict(TO=target, REAL="double" if is_wide(TYPES[target]) else "float")


def near(found, expected):
    """Halves may be rounded to either side, and a float64 does not have every large integer."""
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-4)
    else:
        info = np.iinfo(found.dtype)
        expected = np.clip(np.rint(expected), info.min, info.max)
        assert (np.abs(found - expected) <= np.maximum(1, np.spacing(np.abs(expected)))).all()


ROW = "to elements key sequence values count low factor last"


@pytest.mark.parametrize("target", TYPES)
def test_numbers(kernel, target):
    out = np.zeros(67, TYPES[target])
    wide = is_wide(TYPES[target])
    draw = kernel("random", ROW, entry="uniform", **flags(target))
    draw(
        (address(out), 67, KEY, SEQUENCE, 0, 0, -20, 120 * 2.0 ** (-64 if wide else -32), 99.5),
        (0, 0, KEY, SEQUENCE, 0, 0, 0, 0, 0),
    )
    near(out, np.minimum(reals(67, wide)[0] * 120 - 20, 99.5))
    kernel("random", ROW, entry="normal", **flags(target))((address(out), 67, KEY, SEQUENCE, 0, 0, 30, 50, 0))
    near(out, normals(67, wide) * 50 + 30)
    values = np.array([7, 1.5, -3], np.float32)
    kernel("random", ROW, entry="one_of", **flags(target))(
        (address(out), 67, KEY, SEQUENCE, address(values), 3, 0, 0, 0)
    )
    near(out, values[(words(67)[:, 0] * np.uint64(3) >> np.uint64(32)).astype(int)])


@pytest.mark.parametrize("most", [0, 2**30, 2**32 - 1])
def test_coins(kernel, most):
    out = np.full(50, 7, np.uint8)
    kernel("random", ROW, entry="coin_flip", **flags("uint8_t"))((address(out), 50, KEY, SEQUENCE, 0, most, 0, 0, 0))
    np.testing.assert_array_equal(out, words(50)[:, 0] <= most)


NOISE = "to from key sequence pixels channels pixel_step channel_step salt pepper first second"


@pytest.mark.parametrize("target", ["uint8_t", "int64_t", "float"])
def test_gaussian_noise(kernel, target):
    image = noise(5, 7, 3, dtype=TYPES[target])
    out, wide = np.zeros_like(image), is_wide(TYPES[target])
    run = kernel("noise", NOISE, entry="gaussian", ELEMENT=target, REAL="double" if wide else "float")
    run((address(out), address(image), KEY, SEQUENCE, image.size, 1, 1, 1, 0, 0, 2, 30))
    noisy = image.astype(np.float64).ravel() + normals(image.size, wide) * 30 + 2
    if target == "int64_t":
        assert (np.abs(out.ravel().astype(np.float64) - noisy) <= 2048).all()
    else:
        near(out.ravel(), noisy)


@pytest.mark.parametrize("events", [0.5, 11, 13, 900])
def test_shot_noise(kernel, events):
    image = np.full(4000, events * 3, np.float32)
    out = np.zeros_like(image)
    run = kernel("noise", NOISE, entry="shot", ELEMENT="float", REAL="float")
    run((address(out), address(image), KEY, SEQUENCE, image.size, 1, 1, 1, 0, 0, 3, 0))
    counted = out / 3
    np.testing.assert_array_equal(counted, np.rint(counted))
    # A Poisson number's mean is its variance.
    assert abs(counted.mean() - events) < 5 * (events / image.size) ** 0.5
    assert abs(counted.var() - events) < 5 * (events * (1 + 3 * events) / image.size) ** 0.5 + 0.1
    image[:3] = [0, -9, np.nan]
    run((address(out), address(image), KEY, SEQUENCE, image.size, 1, 1, 1, 0, 0, 3, 0))
    np.testing.assert_array_equal(out[:3], 0)


def test_shot_noise_of_bytes(kernel):
    """Bytes have a table of what is known of each mean: the numbers are those of the same image in floats."""
    image = np.tile(np.arange(256, dtype=np.uint8), 4)
    found = {}
    for target in ("uint8_t", "float"):
        values = image.astype(TYPES[target])
        out = np.zeros_like(values)
        run = kernel("noise", NOISE, entry="shot", ELEMENT=target, REAL="float")
        run((address(out), address(values), KEY, SEQUENCE, image.size, 1, 1, 1, 0, 0, 10, 0))
        found[target] = out
    np.testing.assert_array_equal(found["uint8_t"], found["float"].clip(0, 255))


@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize("target", ["int16_t", "float"])
def test_salt_and_pepper(kernel, target, channels_first):
    image = noise(6, 9, 2, dtype=TYPES[target])
    drawn = reals(54, False)[0].reshape(6, 9, 1)
    expected = np.where(drawn < 0.5, np.where(drawn < 0.2, 77, -5), image).astype(image.dtype)
    if channels_first:
        image, expected = np.ascontiguousarray(image.transpose(2, 0, 1)), expected.transpose(2, 0, 1)
    out = np.zeros_like(image)
    bits = [int.from_bytes(np.array(v, image.dtype).tobytes(), "little") for v in (77, -5)]
    run = kernel("noise", NOISE, entry="salt_and_pepper", ELEMENT=target, REAL="float")
    run((address(out), address(image), KEY, SEQUENCE, 54, 2, *((1, 54) if channels_first else (2, 1)), *bits, 0.5, 0.2))
    np.testing.assert_array_equal(out, expected)
