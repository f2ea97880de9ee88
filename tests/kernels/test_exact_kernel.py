"""The kernel that resizes with another library's arithmetic, on the host (emulator.h), against sums in numpy. `src/cpu/exact/device.rs` tests that
such sums make what the CPU makes."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel

ROW = "<5Q8I"
PLACE_WORDS = 3

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """By the types that they read and make."""
    names = {np.uint8: "uint8_t", np.float32: "float"}

    def kernel(source, made, **more):
        return table_kernel(tmp_path_factory.mktemp("exact"), "exact", ROW, SRC=names[source], DST=names[made], **more)

    return {
        "integers": kernel(np.uint8, np.uint8),
        "to floats": kernel(np.uint8, np.float32, FLOATS=1),
        "from floats": kernel(np.float32, np.uint8, FLOATS=1),
    }


def drawn_weights(rng, length, outputs, draw):
    """For each output its first element and its weights; some have none."""
    made = []
    for _ in range(outputs):
        first = int(rng.integers(length))
        made.append((first, draw(int(rng.integers(min(length - first, 12) + 1)))))
    return made


def table(weights):
    """As Pass in src/cpu/exact/device.rs has it."""
    ends = np.cumsum([len(own) for _, own in weights]) + PLACE_WORDS * len(weights)
    places = [[first, end - len(own), end] for (first, own), end in zip(weights, ends)]
    return np.concatenate([np.array(places, np.uint32).ravel(), *(own.view(np.uint32) for _, own in weights)])


def rounded(sums):
    return np.rint(np.clip(sums, 0, 255)).astype(np.uint8)


def products(lines, weights):
    """Of each output the products along the first axis, in the type of the weights."""
    return [lines[first : first + len(own)].astype(own.dtype) * own.reshape(-1, 1, 1) for first, own in weights]


def float_sum(lines, first, own):
    """In order; products of a group of four behind the first are rounded, others are not."""
    plain = max(len(own) - 1, 0) // 4 * 4
    total = np.zeros(lines.shape[1:], np.float32)
    for k, weight in enumerate(own):
        values = lines[first + k].astype(np.float32)
        if k <= plain:
            total = total + values * weight if k else values * weight
        else:
            # A product of two float32 is exact in float64. The sum is not always; which is rounded twice is not drawn here.
            total = (values.astype(np.longdouble) * weight + total).astype(np.float32)
    return total


def of_axis(image, axis, make):
    """`make` of the image with `axis` in front, put back."""
    return np.ascontiguousarray(np.moveaxis(make(np.moveaxis(image, axis, 0)), 0, axis))


def run(kernel, image, weights, axis, dtype, bits=0, multiplies=0, divides=0):
    height, width, channels = image.shape
    outputs = len(weights)
    shape = (outputs, width, channels) if axis == 0 else (height, outputs, channels)
    made = np.full(shape, 77, dtype)
    pitch = width * channels
    sizes = (0, pitch, 1, outputs, pitch) if axis == 0 else (pitch, channels, height, outputs, channels)
    row = (place(0), place(1), place(2), *sizes, channels, bits, multiplies, divides, 0)
    return kernel([row], [made, image, table(weights)])[0]


def drawn_image(rng, channels):
    height, width = rng.integers(1, 30, 2)
    return rng.integers(0, 256, (height, width, channels), np.uint8)


@pytest.mark.parametrize("number", range(12))
def test_integers(kernels, number):
    rng = np.random.default_rng(number)
    axis, bits, channels = number % 2, (22, 15, 1)[number % 3], 1 + number % 5
    image = drawn_image(rng, channels)
    limit = min(1 << bits, 1 << 21)
    weights = drawn_weights(rng, image.shape[axis], 17, lambda n: rng.integers(-limit // 4, limit, n).astype(np.int32) // max(n // 2, 1))

    def make(lines):
        sums = np.array([own.sum(0, dtype=np.int32) for own in products(lines, weights)]) + np.int32(1 << (bits - 1))
        return np.clip(sums >> bits, 0, 255).astype(np.uint8)

    np.testing.assert_array_equal(run(kernels["integers"], image, weights, axis, np.uint8, bits), of_axis(image, axis, make))


@pytest.mark.parametrize("channels", [2, 4])
@pytest.mark.parametrize("axis", [0, 1])
def test_alpha(kernels, axis, channels):
    rng = np.random.default_rng(channels)
    image = drawn_image(rng, channels)
    weights = drawn_weights(rng, image.shape[axis], 9, lambda n: np.full(n, (1 << 22) // max(n, 1), np.int32))
    alpha = image[..., -1:].astype(int)
    product = image[..., :-1] * alpha + 128
    multiplied = np.concatenate([(product + (product >> 8)) >> 8, alpha], 2).astype(np.uint8)
    plain = run(kernels["integers"], multiplied, weights, axis, np.uint8, 22)
    np.testing.assert_array_equal(run(kernels["integers"], image, weights, axis, np.uint8, 22, multiplies=1), plain)

    summed = run(kernels["integers"], image, weights, axis, np.uint8, 22).astype(int)
    alpha = summed[..., -1:]
    divided = np.where((alpha == 0) | (alpha == 255), summed[..., :-1], np.minimum(255 * summed[..., :-1] // np.maximum(alpha, 1), 255))
    found = run(kernels["integers"], image, weights, axis, np.uint8, 22, divides=1)
    np.testing.assert_array_equal(found, np.concatenate([divided, alpha], 2))


@pytest.mark.parametrize("number", range(6))
def test_floats(kernels, number):
    rng = np.random.default_rng(number)
    axis, channels = number % 2, 1 + number % 4
    image = drawn_image(rng, channels)

    def draw(n):
        weights = rng.normal(0.3, 0.3, n)
        return (weights / max(abs(weights.sum()), 0.5)).astype(np.float32)

    weights = drawn_weights(rng, image.shape[axis], 17, draw)

    def make(lines):
        return np.array([float_sum(lines, *own) for own in weights])

    found = run(kernels["to floats"], image, weights, axis, np.float32)
    np.testing.assert_array_equal(found, of_axis(image, axis, make))
    floats = rng.uniform(-20, 280, image.shape).astype(np.float32)
    found = run(kernels["from floats"], floats, weights, axis, np.uint8)
    np.testing.assert_array_equal(found, rounded(of_axis(floats, axis, make)))
