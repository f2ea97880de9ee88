"""The kernels of another library's arithmetic, on the host (emulator.h), against the same sums in numpy: random
weights, sizes and regions, to the bit."""

import numpy as np
import pytest
from emulator import needs_compiler, place, source, table_kernel
from layouts import layout

EXACT = layout("exact")
BYTES, INTEGERS, FLOATS, MEANS = EXACT.BYTES, EXACT.INTEGERS, EXACT.FLOATS, EXACT.MEANS
LINEAR, CUBIC, WHOLE = EXACT.LINEAR, EXACT.CUBIC, EXACT.WHOLE
MULTIPLY, DIVIDE = EXACT.MULTIPLY, EXACT.DIVIDE
ROW = "src dst axis outputs length origin lines src_pitch dst_pitch step bits alpha start direction whole share unused"
ONE = 2048

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    made = {}

    def of(name, method, channels=1):
        if (name, method, channels) not in made:
            folder = tmp_path_factory.mktemp("kernel")
            (folder / "exact.cuh").write_text(source("exact.cuh"))
            made[name, method, channels] = table_kernel(folder, name, ROW, header="exact", METHOD=method, CH=channels)
        return made[name, method, channels]

    return of


class Axis:
    """An axis with random weights: for each output its first pixel and its weights."""

    def __init__(self, rng, length, outputs, taps, kind, clamped=False):
        self.length, self.kind = length, kind
        counts = np.full(outputs, taps) if clamped else rng.integers(1, min(taps, length) + 1, outputs)
        self.firsts = [int(rng.integers(-1 if clamped else 0, length if clamped else length - n + 1)) for n in counts]
        if kind is np.float32:
            self.weights = [rng.uniform(-0.2, 1, n).astype(kind) / np.float32(n) for n in counts]
        else:
            self.weights = [rng.integers(-(1 << 12), 1 << 13, n).astype(kind) for n in counts]

    def table(self, origin=0):
        """As the kernels have it, of an axis that has `origin` pixels more in front."""
        weights = np.zeros((max(len(w) for w in self.weights), len(self.firsts)), self.kind)
        for i, own in enumerate(self.weights):
            weights[: len(own), i] = own
        counts = [len(own) for own in self.weights]
        return np.concatenate(
            [
                np.array([[first + origin for first in self.firsts], counts], np.int32).ravel(),
                weights.view(np.int32).ravel(),
            ]
        )

    def taken(self, i):
        return np.clip(self.firsts[i] + np.arange(len(self.weights[i])), 0, self.length - 1)


def fused(product, weight, total):
    """a * b + c, rounded once."""
    return (product.astype(np.float64) * np.float64(weight) + total.astype(np.float64)).astype(np.float32)


def float_sum(values, weights, method):
    """Of values (taps, ...) in float32, as the library adds them. Products of bytes or of sums of few bits are exact in
    float64."""
    total = np.zeros(values.shape[1:], np.float32)
    for k, (value, weight) in enumerate(zip(values.astype(np.float32), weights)):
        rounded = method == MEANS or k <= (len(weights) - 1) // 4 * 4
        total = total + value * weight if rounded else fused(value, weight, total)
    return total


def summed(values, weights, method, bits=0):
    if method in (FLOATS, MEANS):
        return float_sum(values, weights, method)
    total = np.tensordot(weights.astype(np.int64), values.astype(np.int64), 1)
    return ((total + (1 << bits - 1)) >> bits).clip(0, 255) if method == BYTES else total


def multiplied(image):
    made = image.astype(np.int64)
    product = made[..., :-1] * made[..., -1:] + 128
    made[..., :-1] = (product + (product >> 8)) >> 8
    return made


def divided(image):
    made = image.astype(np.int64)
    alpha = made[..., -1:]
    whole = (alpha == 0) | (alpha == 255)
    made[..., :-1] = np.where(whole, made[..., :-1], np.minimum(255 * made[..., :-1] // np.where(whole, 1, alpha), 255))
    return made


CASES = [(1, 1, 1), (3, 40, 7), (9, 17, 33), (5, 64, 21)]


@pytest.mark.parametrize("method", [BYTES, INTEGERS, FLOATS, MEANS])
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
def test_across(kernel, method, channels):
    rng = np.random.default_rng([method, channels])
    at_once = channels if channels <= 4 else 1
    for rows, width, outputs in CASES:
        clamped = method == INTEGERS
        axis = Axis(
            rng, width, outputs, 4 if clamped else 9, np.float32 if method in (FLOATS, MEANS) else np.int32, clamped
        )
        image = rng.integers(0, 256, (rows, width, channels), np.uint8)
        dtype = {BYTES: np.uint8, INTEGERS: np.int32}.get(method, np.float32)
        origin = 0 if clamped else 3
        for alpha in (0, MULTIPLY, DIVIDE) if method == BYTES and channels in (2, 4) else (0,):
            row = (
                place(0),
                place(1),
                place(2),
                outputs,
                width + origin,
                origin,
                rows,
                width * channels,
                outputs * channels,
                channels,
                13,
                alpha,
                0,
                0,
                0,
                0,
                0,
            )
            out = np.zeros((rows, outputs, channels), dtype)
            _, made, _ = kernel("exact_across", method, at_once)([row], [image, out, axis.table(origin)])
            seen = multiplied(image) if alpha == MULTIPLY else image
            expected = np.stack(
                [summed(seen[:, axis.taken(i)].swapaxes(0, 1), axis.weights[i], method, 13) for i in range(outputs)], 1
            )
            expected = divided(expected) if alpha == DIVIDE else expected
            np.testing.assert_array_equal(made, expected.astype(dtype))


@pytest.mark.parametrize("method", [BYTES, FLOATS, MEANS, LINEAR, CUBIC, WHOLE])
def test_down(kernel, method):
    rng = np.random.default_rng(method)
    for height, elements, outputs in [(1, 1, 1), (7, 12, 20), (40, 36, 9), (17, 27, 30), (11, 64, 8), (9, 49, 7)]:
        clamped = method in (LINEAR, CUBIC)
        taps = {LINEAR: 2, CUBIC: 4}.get(method, 9)
        axis = Axis(rng, height, outputs, taps, np.float32 if method in (FLOATS, MEANS) else np.int32, clamped)
        if method == WHOLE:
            axis.weights = [np.ones_like(own) for own in axis.weights]
        if method == BYTES:
            image = rng.integers(0, 256, (height, elements), np.uint8)
        elif method in (FLOATS, MEANS):
            # So few bits that products are exact in float64.
            image = rng.integers(0, 256 * 16, (height, elements)).astype(np.float32) / 16
        else:
            image = rng.integers(-9000, 255 * ONE, (height, elements)).astype(np.int32)
        variants = [(0, 1, 0, 1, 0)]
        if method == BYTES and elements % 4 == 0:
            variants += [(alpha, step, 0, 1, 0) for alpha in (MULTIPLY, DIVIDE) for step in (2, 4)]
        if method == CUBIC and elements % 3 == 0:
            variants += [(0, 3, 5, 1, 24), (0, 3, elements // 3 + 1, -1, 16)]
        if method == WHOLE:
            variants += [(0, 1, 0, 1, 0.125)]
        origin = 0 if clamped else 5
        for alpha, step, start, direction, last in variants:
            whole, share = (last, 0.0) if method == CUBIC else (0, last)
            row = (
                place(0),
                place(1),
                place(2),
                outputs,
                height + origin,
                origin,
                elements,
                elements,
                elements,
                step,
                13,
                alpha,
                start,
                direction,
                whole,
                share,
                0,
            )
            out = np.zeros((outputs, elements), np.uint8)
            _, made, _ = kernel("exact_down", method)([row], [image, out, axis.table(origin)])
            seen = multiplied(image.reshape(height, -1, step)).reshape(height, -1) if alpha == MULTIPLY else image
            expected = []
            for i in range(outputs):
                values, weights = seen[axis.taken(i)], axis.weights[i]
                if method == LINEAR:
                    total = sum(
                        (weight * (value >> 4)) >> 16
                        for weight, value in zip(weights.astype(np.int64), values.astype(np.int64))
                    )
                    expected.append((total + 2 >> 2).clip(0, 255))
                elif method == CUBIC:
                    scaled = weights.astype(np.float32) * np.float32(1 / ONE**2)
                    p = values.astype(np.float32) * scaled[:, None]
                    floats = np.rint(p[0] + (p[1] + (p[2] + p[3]))).clip(0, 255)
                    wrapped = (np.tensordot(weights.astype(np.int64), values.astype(np.int64), 1) + (1 << 21)).astype(
                        np.int32
                    )
                    at = np.arange(elements)
                    of_floats = (start + direction * (at // step)) * step + at % step < whole
                    expected.append(np.where(of_floats, floats, (wrapped >> 22).clip(0, 255)))
                elif method == WHOLE:
                    total = values.sum(0, dtype=np.int64)
                    expected.append(
                        np.rint(total.astype(np.float32) * np.float32(share)).clip(0, 255)
                        if share
                        else (total + 2 >> 2) & 255
                    )
                else:
                    total = summed(values, weights, method, 13)
                    expected.append(total if method == BYTES else np.rint(total).clip(0, 255))
            expected = np.stack(expected).astype(np.int64)
            if alpha == DIVIDE:
                expected = divided(expected.reshape(outputs, -1, step)).reshape(outputs, -1)
            np.testing.assert_array_equal(made, expected.astype(np.uint8))


def test_copy(tmp_path):
    rng = np.random.default_rng(1)
    run = table_kernel(tmp_path, "exact_copy", "src dst rows columns height width pitch step")
    for channels in (1, 3, 5):
        image = rng.integers(0, 256, (9, 12, channels), np.uint8)
        rows, columns = rng.integers(-1, 9, 20).astype(np.int32), rng.integers(-1, 12, 31).astype(np.int32)
        out = np.zeros((20, 31, channels), np.uint8)
        row = (place(0), place(1), place(2), place(3), 20, 31, 12 * channels, channels)
        _, made, _, _ = run([row], [image, out, rows, columns])
        expected = image[rows][:, columns] * (rows >= 0)[:, None, None] * (columns >= 0)[None, :, None]
        np.testing.assert_array_equal(made, expected)


NORMALIZE = "to from factor bias fill elements channel channels dimensions:stride,anchor,source,window,mirror,unused"


def test_normalization_by_tables(tmp_path):
    """A window of an image, mirrored, with a pixel outside of it and a channel that the image does not have."""
    rng = np.random.default_rng(2)
    run = table_kernel(tmp_path, "crop_mirror_normalize", NORMALIZE, SRC="uint8_t", DST="float", NDIM=3, TABLES=1)
    image = rng.integers(0, 256, (4, 6, 3), np.uint8)
    tables, fill = rng.normal(size=(3, 256)).astype(np.float32), np.float32([7, 8, 9, 10])
    out = np.zeros((4, 2, 6), np.float32)
    # stride, anchor, source, window, mirror: of channels, rows and columns
    dimensions = [(1, 0, 3, 4, 0, 0), (18, 1, 4, 2, 0, 0), (3, 1, 6, 6, 1, 0), *2 * [(0,) * 6]]
    row = (
        place(0),
        place(1),
        place(2),
        0,
        place(3),
        out.size,
        0,
        3,
        *(value for dimension in dimensions for value in dimension),
    )
    made = run([row], [out, image, tables, fill])[0]
    expected = np.broadcast_to(fill[:, None, None], out.shape).copy()
    for channel in range(3):
        expected[channel, :, 1:] = tables[channel][image[1:3, :0:-1, channel]]
    np.testing.assert_array_equal(made, expected)
