"""The kernels of colours, maps, filters and tables on the host, where one thread does all the work, against numpy."""

import numpy as np
import pytest
from emulator import needs_compiler
from layouts import layout

TYPES = {"uint8_t": np.uint8, "int16_t": np.int16, "int32_t": np.int32, "float": np.float32}

# The numbers of what stands outside of an image, by name, and what numpy calls it.
BORDERS = [
    ("FILL", "constant"),
    ("CLAMP", "edge"),
    ("REFLECT_1001", "symmetric"),
    ("REFLECT_101", "reflect"),
    ("WRAP", "wrap"),
]

pytestmark = needs_compiler


def address(array):
    assert array.flags.c_contiguous
    return array.ctypes.data


def noise(*shape, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    if dtype == np.float32:
        return rng.normal(scale=50, size=shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def stored(values, dtype):
    """Floats as elements of `dtype`, halves to the even neighbour."""
    if dtype == np.float32:
        return values.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.rint(values.astype(np.float64)), info.min, info.max).astype(dtype)


def close(found, expected):
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-3 if found.dtype == np.float32 else 1
    )
    assert np.mean(found != expected) < 0.02 or found.dtype == np.float32


def test_copies(kernel):
    copy = kernel("copy", "to from bytes count pitch")
    for shift in (0, 1, 4):
        for size in (0, 5, 16, 67, 4096):
            given, made = noise(size + 16), np.zeros(size + 16, np.uint8)
            copy((address(made) + shift, address(given) + shift, size, 1, size))
            assert (
                (made[shift : shift + size] == given[shift : shift + size]).all()
                and not made[:shift].any()
                and not made[shift + size :].any()
            )


@pytest.mark.parametrize("inner", [1, 4, 16, 48])
def test_joins(kernel, inner):
    parts = [noise(7, extent, inner, seed=extent) for extent in (1, 3, 2)]
    out = np.zeros((7, 6, inner), np.uint8)
    starts = np.cumsum([0, 1, 3]) * inner
    kernel("copy", "to from bytes count pitch")(
        *[(address(out) + start, address(part), part[0].size, 7, out[0].size) for start, part in zip(starts, parts)]
    )
    np.testing.assert_array_equal(out, np.concatenate(parts, 1))


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", ["uint8_t", "float"])
def test_colors(kernel, source, target):
    image = noise(7, 9, 3, dtype=TYPES[source])
    row = "to from elements factor addend"
    out = np.zeros(image.shape, TYPES[target])
    factors = [0.3123, 0.5117, 0.1071, -0.2137, 1.1193, 0.4177, 0.9131, -0.3119, 0.2513]
    kernel("color", row, entry="mix_channels", FROM=source, TO=target)(
        (address(out), address(image), image.size // 3, *factors, 5.5171)
    )
    matrix = np.array(factors, np.float32).reshape(3, 3).astype(np.float64)
    close(out, stored(image.astype(np.float64) @ matrix.T + 5.5171, out.dtype))
    kernel("color", row, entry="scale_add", FROM=source, TO=target)(
        (address(out), address(image), image.size, 0.7137, *[0] * 8, -3.2411)
    )
    close(out, stored(image.astype(np.float64) * np.float32(0.7137) - 3.2411, out.dtype))


def test_color_spaces_lead_back(kernel):
    image = noise(40, 50, 3) // 2 + 60
    row, (luma, back) = "to from pixels", (np.zeros_like(image), np.zeros_like(image))
    kernel("color_space", row, FROM=0, TO=3)((address(luma), address(image), 2000))
    kernel("color_space", row, FROM=3, TO=1)((address(back), address(luma), 2000))
    assert np.abs(back[..., ::-1].astype(int) - image).max() <= 4
    gray = np.zeros((40, 50), np.uint8)
    kernel("color_space", row, FROM=0, TO=2)((address(gray), address(image), 2000))
    close(gray, stored(image @ np.array([0.299, 0.587, 0.114]), np.uint8))
    wide = np.zeros_like(image)
    kernel("color_space", row, FROM=2, TO=0)((address(wide), address(gray), 2000))
    assert (wide == gray[..., None]).all()


def test_points(kernel):
    points, out = noise(11, 3, dtype=np.float32), np.zeros((11, 2), np.float32)
    matrix = np.zeros((6, 6), np.float32)
    matrix[:2, :3] = [[1, 2, 3], [-1, 0.5, 0.25]]
    kernel(
        "points", "to from points from_coordinates to_coordinates matrix translation", FROM="float", TO="float", MAX=6
    )((address(out), address(points), 11, 3, 2, *matrix.ravel(), 7, -8, 0, 0, 0, 0))
    close(out, points @ matrix[:2, :3].T + np.array([7, -8], np.float32))


def test_equalize(kernel):
    image = (noise(31, 17, 2) // 5 + [40, 90]).astype(np.uint8)
    image = np.concatenate([image, np.full((31, 17, 1), 9, np.uint8)], -1)
    out = np.zeros_like(image)
    kernel("equalize", "to from pixels step")(*[(address(out) + c, address(image) + c, 31 * 17, 3) for c in range(3)])
    for c in range(2):
        counts = np.bincount(image[..., c].ravel(), minlength=256)
        lowest = counts.nonzero()[0][0]
        table = np.rint((counts.cumsum() - counts[lowest]) * 255 / (31 * 17 - counts[lowest]))
        np.testing.assert_array_equal(out[..., c], table[image[..., c]])
    assert (out[..., 2] == 9).all()


@pytest.mark.parametrize("taps", [1, 5, 41])
def test_convolution(kernel, taps):
    image = noise(13, 8, 3)
    window = np.random.default_rng(1).normal(size=taps).astype(np.float32)
    out = np.zeros(image.shape, np.float32)
    convolve = kernel("convolve", "to from window more elements extent inner taps scale", FROM="uint8_t", TO="float")
    convolve((address(out), address(image), address(window), 0, image.size, 13, 24, taps, 1))
    padded = np.pad(image.astype(np.float64), ((taps // 2, taps // 2), (0, 0), (0, 0)), "reflect")
    expected = sum(w * padded[k : k + 13] for k, w in enumerate(window))
    close(out, expected)
    convolve((address(out), address(image), address(window), address(out), image.size, 13, 24, taps, -0.25))
    close(out, 0.75 * expected)


@pytest.mark.parametrize("border,mode", BORDERS)
def test_filter(kernel, border, mode):
    image, weights = noise(9, 11, 2), np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)
    out, fill = np.zeros(image.shape, np.float32), np.array([7], np.uint8)
    kernel(
        "filter",
        "to from weights fill source target size before channels unused",
        params="border",
        FROM="uint8_t",
        TO="float",
    )(
        (address(out), address(image), address(weights), address(fill), 9, 11, 9, 11, 3, 4, 1, 2, 2, 0),
        param=(layout("filter").constants[border],),
    )
    padded = np.pad(
        image.astype(np.float64),
        ((1, 1), (2, 1), (0, 0)),
        mode,
        **(dict(constant_values=7) if border == "FILL" else {}),
    )
    close(out, sum(weights[j, k] * padded[j : j + 9, k : k + 11] for j in range(3) for k in range(4)))


@pytest.mark.parametrize("ctype", ["uint8_t", "float"])
@pytest.mark.parametrize("smallest", [0, 1])
@pytest.mark.parametrize("border,mode", BORDERS)
def test_morphology(kernel, border, mode, smallest, ctype):
    image = noise(9, 11, 2, dtype=TYPES[ctype])
    out = np.zeros_like(image)
    morphology = kernel(
        "morphology", "to from size mask before channels unused", params="border smallest", ELEMENT=ctype
    )
    morphology(
        (address(out), address(image), 11, 9, 4, 3, 2, 1, 2, 0),
        param=(layout("morphology").constants[border], smallest),
    )
    neutral = image.max() if smallest else image.min()
    padded = np.pad(
        image, ((1, 1), (2, 1), (0, 0)), mode, **(dict(constant_values=neutral) if border == "FILL" else {})
    )
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 4), (0, 1))
    np.testing.assert_array_equal(out, (windows.min if smallest else windows.max)((-2, -1)))


@pytest.mark.parametrize("ctype", TYPES)
@pytest.mark.parametrize("size", [(3, 3), (5, 1), (1, 7)])
def test_median(kernel, size, ctype):
    image = noise(9, 11, 2, dtype=TYPES[ctype])
    out, (width, height) = np.zeros_like(image), size
    kernel("median", "to from size window channels unused", ELEMENT=ctype)(
        (address(out), address(image), 11, 9, width, height, 2, 0)
    )
    padded = np.pad(image, ((height // 2,) * 2, (width // 2,) * 2, (0, 0)), "edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (0, 1))
    np.testing.assert_array_equal(out, np.sort(windows.reshape(*image.shape, -1), -1)[..., width * height // 2])


def cubic_line(part):
    away = np.abs(part + 1 - np.arange(4))
    return np.where(away <= 1, (1.25 * away - 2.25) * away**2 + 1, -0.75 * (away**3 - 5 * away**2 + 8 * away - 4))


def lanczos_line(part):
    away = part + 3 - np.arange(8)
    weights = np.sinc(away) * np.sinc(away / 4)
    return weights / weights.sum()


# Weights of the pixels in a line, of the middle two of which the first is a part of a pixel before the place.
LINES = {1: lambda part: np.array([1 - part, part]), 2: cubic_line, 3: lanczos_line}


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("sampling", [0, 1, 2, 3])
def test_remap(kernel, sampling, shift):
    image = noise(9, 11, 2)
    x, y = (np.random.default_rng(side).uniform(-2, side + 2, (6, 7)).astype(np.float32) for side in (11, 9))
    x[0, 0], y[0, 1], x[0, 2] = np.nan, np.inf, -np.inf
    x[1, 0], y[1, 0], x[1, 1] = 4 - shift + 0.5, 3 - shift + 0.5, 3e38
    out = np.full((6, 7, 2), 9, np.uint8)
    kernel("remap", "to from maps source pixels channels", params="shift", ELEMENT="uint8_t", SAMPLING=sampling)(
        (address(out), address(image), address(x), address(y), 11, 9, 42, 2), param=(shift,)
    )
    assert (out[0, :3] == 0).all() and (out[1, 1] == 0).all()
    framed = np.pad(image.astype(np.float64), ((9, 9), (9, 9), (0, 0)))
    for i, j in np.ndindex(6, 7):
        u, v = float(x[i, j]) + shift + 9, float(y[i, j]) + shift + 9
        if not abs(u + v) < 1e9:
            continue
        if sampling:
            u, v = u - 0.5, v - 0.5
            a, b = int(u), int(v)
            across, down = LINES[sampling](u - a), LINES[sampling](v - b)
            reach = len(across) // 2 - 1
            around = framed[b - reach : b + reach + 2, a - reach : a + reach + 2]
            expected = np.einsum("y,x,yxc->c", down, across, around).clip(0, 255)
        else:
            expected = framed[int(v), int(u)]
        assert np.abs(out[i, j] - expected).max() <= 0.51, (i, j)


@pytest.mark.parametrize("fill", [None, 100.0])
@pytest.mark.parametrize("linear", [0, 1])
@pytest.mark.parametrize("ndim", [2, 3])
def test_warp(kernel, ndim, linear, fill):
    image = noise(*(5, 7, 9)[3 - ndim :], 2)
    size, target = image.shape[:ndim][::-1], (8, 6, 4)[:ndim]
    matrix = np.array([[0.9, 0.1, 0.2, -0.8131], [-0.05, 1.1, 0.1, 1.3173], [0.1, 0.3, 0.8, 0.3311]], np.float32)
    out = np.zeros((*target[::-1], 2), np.float32)
    sizes = [*size, 1][:3], [*target, 1][:3]
    kernel(
        "warp",
        "to from map source target channels has_fill fill unused",
        FROM="uint8_t",
        TO="float",
        LINEAR=linear,
        NDIM=ndim,
    )((address(out), address(image), *matrix.ravel(), *sizes[0], *sizes[1], 2, fill is not None, fill or 0, 0))

    def pixel(at):
        inside = [min(max(i, 0), extent - 1) for i, extent in zip(at, size)]
        return (
            np.full(2, fill)
            if fill is not None and inside != list(at)
            else image[tuple(inside[::-1])].astype(np.float64)
        )

    for index in np.ndindex(*target[::-1]):
        place = np.array([index[ndim - 1 - d] + 0.5 for d in range(ndim)])
        place = matrix[:ndim, :ndim].astype(np.float64) @ place + matrix[:ndim, 3]
        if linear:
            first, q = np.floor(place - 0.5).astype(int), (place - 0.5) % 1
            corners = np.ndindex(*[2] * ndim)
            expected = sum(
                np.prod([q[d] if c[d] else 1 - q[d] for d in range(ndim)])
                * pixel([first[d] + c[d] for d in range(ndim)])
                for c in corners
            )
        else:
            expected = pixel(list(np.floor(place).astype(int)))
        np.testing.assert_allclose(out[index], expected, atol=0.02)


@pytest.mark.parametrize(
    "source,dtype", [("uint8_t", np.uint8), ("int8_t", np.int8), ("uint64_t", np.uint64), ("int64_t", np.int64)]
)
def test_lookup(kernel, source, dtype):
    values, info = np.array([7, -1.5, 2, 9], np.float32), np.iinfo(dtype)
    batch = [np.array([0, 1, 2, 3, 4, info.max, info.min], dtype), np.array([], dtype), np.array([2], dtype)]
    made = [np.zeros(keys.shape, np.float32) for keys in batch]
    rows = [(address(out), address(keys), keys.size) for out, keys in zip(made, batch)]
    kernel("lookup", "to from elements", params="values keys", FROM=source, TO="float")(
        *rows, param=(address(values), 3)
    )
    least = 7 if info.min == 0 else 9
    np.testing.assert_array_equal(np.concatenate(made), [7, -1.5, 2, 9, 9, 9, least, 2])


@pytest.mark.parametrize(
    "source,dtype", [("int32_t", np.int32), ("float", np.float32), ("bool", np.bool_), ("uint64_t", np.uint64)]
)
def test_one_hot(kernel, source, dtype):
    numbers = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    if dtype in (np.int32, np.float32):
        numbers[0, 2] = -1
    if dtype == np.float32:
        numbers[1] = [2.9, 1.1, np.nan]
    if dtype == np.uint64:
        numbers[1, 0] = 2**64 - 1
    row, names = "to from elements classes inner", dict(params="on off", FROM=source, TO="uint16_t")
    whole = np.nan_to_num(numbers.astype(np.float64)).astype(np.int64) if dtype == np.float32 else numbers
    on, off = 0x3C00, 0xFFFF
    for axis in range(3):
        expected = np.where(
            np.expand_dims(whole, axis) == np.arange(3).reshape([3 if a == axis else 1 for a in range(3)]), on, off
        )
        out = np.zeros(expected.shape, np.uint16)
        kernel("one_hot", row, **names)(
            (address(out), address(numbers), out.size, 3, int(np.prod(numbers.shape[axis:]))),
            (address(out), address(numbers), 0, 0, 0),
            param=(on, off),
        )
        np.testing.assert_array_equal(out, expected)


def test_erase(kernel):
    out, fill, one = noise(8, 6, 3).copy(), np.array([5, 6, 7], np.uint8), np.array([9], np.uint8)
    expected = out.copy()
    regions = [
        (fill, 1, slice(2, 5), slice(1, 3), slice(0, 3), [(6, 1), (3, 18)]),
        (fill, 1, slice(7, 8), slice(5, 6), slice(2, 3), []),
        (one, 3, slice(0, 8), slice(0, 1), slice(1, 2), [(8, 18)]),
    ]
    rows = []
    for values, repeat, *slices, axes in regions:
        expected[tuple(slices)] = values[slices[2]] if len(values) > 1 else values[0]
        first = sum(s.start * stride for s, stride in zip(slices, (18, 3, 1)))
        elements = int(np.prod([s.stop - s.start for s in slices]))
        flat = [number for axis in axes for number in axis] + [0] * (12 - 2 * len(axes))
        rows.append((address(out), address(values), len(values), repeat, first, elements, len(axes), *flat))
    kernel("erase", "to fill fill_values fill_repeat first elements axes axis:extent,stride", TO="uint8_t")(*rows)
    np.testing.assert_array_equal(out, expected)


def test_mirrored_points(kernel):
    points, pairs = noise(11, 3, dtype=np.float32), noise(4, 2, dtype=np.float32)
    out, turned = np.zeros_like(points), np.zeros_like(pairs)
    kernel("coord_flip", "to from elements coordinates flipped twice unused")(
        (address(out), address(points), 33, 3, 0b101, 1, 0, 20, 0),
        (address(turned), address(pairs), 8, 2, 0b10, 0, 3, 0, 0),
    )
    np.testing.assert_array_equal(out, points * np.float32([-1, 1, -1]) + np.float32([1, 0, 20]))
    np.testing.assert_array_equal(turned, pairs * np.float32([1, -1]) + np.float32([0, 3]))


@pytest.mark.parametrize("has_ends", [0, 1])
def test_mirrored_boxes(kernel, has_ends):
    boxes = np.random.default_rng(1).random((4, 5, 4)).astype(np.float32)
    out = np.zeros_like(boxes)
    flips = [(0, 0), (1, 0), (0, 1), (1, 1)]
    rows = [(address(out[i]), address(boxes[i]), 5, *flip) for i, flip in enumerate(flips)]
    kernel("bb_flip", "to from boxes flipped", params="has_ends", FROM="float")(*rows, param=(has_ends,))
    start, end = boxes[..., :2], boxes[..., 2:] if has_ends else boxes[..., :2] + boxes[..., 2:]
    flip = np.array(flips, bool)[:, None]
    start, end = np.where(flip, 1 - end, start), np.where(flip, 1 - start, end)
    np.testing.assert_allclose(out, np.concatenate([start, end if has_ends else end - start], -1), atol=1e-6)


NORMALIZE = "from to means scales mean_step scale_step elements axes axis:extent,parameter"


def test_normalize(kernel):
    image = noise(7, 5, 3)
    out, means, scales = (
        np.zeros(image.shape, np.float32),
        np.array([100, 110, 120], np.float32),
        np.array([0.5], np.float32),
    )
    axes = [3, 1, 35, 0] + [0] * 28
    kernel("normalize", NORMALIZE, params="shift", FROM="uint8_t", TO="float")(
        (address(image), address(out), address(means), address(scales), 1, 0, image.size, 2, *axes),
        (address(image), address(out), address(means), address(scales), 0, 0, 0, 0, *axes),
        param=(2,),
    )
    np.testing.assert_array_equal(out, (image - means) * np.float32(0.5) + 2)


FLOW = "to from elements width pitch"


@pytest.mark.parametrize("red", [0, 2])
def test_frames_for_optical_flow(kernel, red):
    frames = [noise(5, 7, 3), noise(1, 1, 3, seed=2), noise(9, 6, 3, seed=3)]
    # Memory of an engine, whose rows have gaps.
    made = [np.full((len(frame), 64), 77, np.uint8) for frame in frames]
    kernel("optical_flow", FLOW, "flow_frame", "red", CHANNELS=3)(
        *((address(to), address(frame), frame.size // 3, frame.shape[1], 64) for to, frame in zip(made, frames)),
        param=(red,),
    )
    for to, frame in zip(made, frames):
        color = frame[..., ::-1] if red else frame
        expected = np.concatenate([color, np.full_like(color[..., :1], 255)], -1).reshape(len(frame), -1)
        np.testing.assert_array_equal(to[:, : expected.shape[1]], expected)
        assert (to[:, expected.shape[1] :] == 77).all()


def test_gray_frames_for_optical_flow(kernel):
    frame, made = noise(5, 7, 1), np.full((5, 16), 77, np.uint8)
    kernel("optical_flow", FLOW, "flow_frame", "red", CHANNELS=1)(
        (address(made), address(frame), 35, 7, 16), param=(0,)
    )
    np.testing.assert_array_equal(made[:, :7], frame[..., 0])
    assert (made[:, 7:] == 77).all()


def test_fields_of_optical_flow(kernel):
    vectors = noise(5, 8, 2, dtype=np.int16)
    made = np.zeros((5, 7, 2), np.float32)
    kernel("optical_flow", FLOW, "flow_field", "red", CHANNELS=3)(
        (address(made), address(vectors), 35, 7, 32), param=(0,)
    )
    np.testing.assert_array_equal(made, vectors[:, :7].astype(np.float32) / 32)


def test_hints_for_optical_flow(kernel):
    field = noise(4, 3, 2, dtype=np.float32)
    field[0, 0] = 1e9, np.nan
    field[1, 1] = -2000, 0.03
    made = np.full((4, 5, 2), 77, np.int16)
    kernel("optical_flow", FLOW, "flow_hints", "red", CHANNELS=3)(
        (address(made), address(field), 12, 3, 20), param=(0,)
    )
    expected = np.clip(np.rint(np.nan_to_num(field * np.float32(32))), -32768, 32767).astype(np.int16)
    np.testing.assert_array_equal(made[:, :3], expected)
    assert (made[:, 3:] == 77).all()
