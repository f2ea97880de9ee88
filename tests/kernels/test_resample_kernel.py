"""The kernel that resizes, on the host (emulator.h), against the formula in numpy: every type of source and order of
axes that it has code of its own for, tiles of one part and of many, regions that reach outside of the image, and
mirrored ones."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from emulator import built, needs_compiler, source
from layouts import layout

LAYOUT = layout("resample")
TILE_H, TILE_W, ROWS_AT_ONCE = LAYOUT.TILE_H, LAYOUT.TILE_W, LAYOUT.ROWS_AT_ONCE
NEAREST, TRIANGULAR, CUBIC = LAYOUT.NEAREST, LAYOUT.TRIANGULAR, LAYOUT.CUBIC
# Of the filter: table entries, and how wide it is in source pixels when it is not stretched.
TABLES = {TRIANGULAR: (2, 2.0), CUBIC: (128, 4.0)}
HEADERS = [
    "common.cuh",
    "colors.cuh",
    "planes.cuh",
    "matrix.cuh",
    "resample_axis.cuh",
    "resample_split.cuh",
    "resample_bytes.cuh",
    "pairs.cuh",
    "resample_planes.cuh",
]
pytestmark = needs_compiler


def both(resample):
    """`resample`, the text of that kernel, behind the one that makes its weights."""
    weights = f"namespace weights_of {{\n{source('resample_weights.cu')}\n}}\n"
    return '#include "planes.cuh"\n#include "resample_bytes.cuh"\n#include "resample_split.cuh"\n' + weights + resample


def has_many_rows(y):
    """Whether tiles of rows of bytes are made of more than are multiplied at once, as src/ops/geometry/resize/gpu.rs
    has it."""
    return math.ceil((TILE_H - 1) * abs(y.scale) + 0.01 + 1e-6 * y.length) + y.taps + 1 > ROWS_AT_ONCE


class Programs:
    """The kernel for few rows of bytes a tile, and the one for many, for each of which it is compiled once."""

    def __init__(self, tmp_path_factory, **definitions):
        self.new_folder, self.definitions, self.made = tmp_path_factory.mktemp, definitions, {}

    def of(self, y):
        return self.get(self.definitions["SRC"] == "uint8_t" and has_many_rows(y))

    def get(self, many):
        if many not in self.made:
            definitions = self.definitions | ({"MANY_ROWS": 1} if many else {})
            self.made[many] = built(
                self.new_folder("kernel"), "resample", HEADERS, both(source("resample.cu")), definitions.items()
            )
        return self.made[many]


@pytest.fixture(scope="module")
def bytes_to_floats(tmp_path_factory):
    return Programs(tmp_path_factory, SRC="uint8_t", MID="float", DST="float", CH=3)


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    return Programs(tmp_path_factory, SRC="float", MID="float", DST="float", CH=1)


@pytest.fixture(scope="module")
def normalizing(tmp_path_factory):
    return Programs(tmp_path_factory, SRC="uint8_t", MID="uint8_t", DST="float", CH=3, NORMALIZE=1)


class Axis(NamedTuple):
    """What the host says of an axis; the rest is made on the device."""

    start: float
    scale: float
    table_scale: float
    filter: int
    taps: int
    length: int
    size: int
    origin: int


def described(struct, y, x, channels, **more):
    """A row of `struct` for an image of so many channels, which lie together."""
    row = np.zeros(1, struct)
    row["pitch"], row["step"] = x.length * channels, channels
    for name, own in (("y", y), ("x", x)):
        for field, value in own._asdict().items():
            row[name][field] = value
    for name, value in more.items():
        row[name] = value
    return row


def axis(length, size, region=None, kind=TRIANGULAR, origin=0):
    """As the host describes it: an axis that shows `region` of `length` pixels in `size`, counted from pixel
    `origin`."""
    low, high = (end - origin for end in region or (0, length))
    scale = (high - low) / size
    if kind == NEAREST:
        return Axis(low, scale, 0, kind, 1, length, size, origin)
    entries, width = TABLES[kind]
    support = width * max(1, abs(scale))
    start, taps = low + 0.5 * scale - 0.5 - support / 2, math.ceil(support)
    return Axis(start, scale, entries / support, kind, taps, length, size, origin)


def matrix(axis):
    """What each output pixel is of the source pixels."""
    start, scale, table_scale, kind, taps, length, size, origin, *_ = (
        np.float32(v) if isinstance(v, float) else v for v in axis
    )
    weights = np.zeros((size, length))
    begin = np.float32(start) + np.float32(0.5) * np.float32(scale) if kind == NEAREST else np.float32(start)
    for i in range(size):
        # Rounded once.
        at = np.float32(i * np.float64(np.float32(scale)) + np.float64(begin))
        if kind == NEAREST:
            weights[i, int(np.clip(np.floor(at) + origin, 0, length - 1))] = 1
            continue
        first = math.ceil(at)
        t = (first - at + np.arange(taps)) * table_scale
        if kind == TRIANGULAR:
            window = np.clip(1 - abs(t - 1), 0, None)
        else:
            # A table is looked up, with interpolation.
            x = abs(4 * (np.arange(129) - 64) / 128)
            table = np.where(x < 1, 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2)
            window = np.interp(t, np.arange(129), table, left=0, right=0)
        for k, weight in enumerate(window / window.sum()):
            weights[i, np.clip(first + k + origin, 0, length - 1)] += weight
    return weights


def tiles(height, width, at_once=2):
    """Blocks of threads, and how many tiles each makes."""
    return -(-height // (TILE_H * at_once)) * -(-width // TILE_W), at_once


def resized(programs, image, y, x):
    """By the kernel, one channel after the other when it was compiled for one."""
    channels = image.shape[2]
    row = described(LAYOUT.Resample, y, x, channels)
    height, width = y.size, x.size
    sizes = np.array([*tiles(height, width), height * width * channels * 4], np.uint64)
    made = programs.of(y)([row.tobytes(), image.tobytes(), sizes.tobytes()])
    return np.frombuffer(made, np.float32).reshape(height, width, channels)


def expected(image, y, x):
    return np.einsum("ah,hwc,bw->abc", matrix(y), image.astype(float), matrix(x))


SHAPES = {
    "smaller": (axis(94, 40), axis(125, 57)),
    "larger": (axis(13, 40), axis(17, 70)),
    "as large": (axis(20, 20), axis(33, 33)),
    "one pixel": (axis(1, 5), axis(1, 3)),
    "tiles of many parts": (axis(30, 18), axis(700, 40)),
    "tiles of many rows and parts": (axis(210, 34), axis(300, 40)),
    "as many rows as are multiplied at once": (axis(375, 224), axis(131, 57)),
    "more taps than are kept": (axis(300, 5), axis(260, 4)),
    "a region": (axis(50, 20, (10.5, 40)), axis(60, 33, (-5.0, 33.3))),
    "a region, counted from within": (axis(50, 20, (10.5, 40), origin=10), axis(60, 33, (-5.0, 33.3), origin=-5)),
    "a region's nearest, counted from within": (
        axis(50, 20, (10.5, 40), NEAREST, 10),
        axis(60, 33, (5.0, 33.3), NEAREST, 5),
    ),
    "mirrored regions": (axis(50, 20, (40, 10)), axis(60, 33, (60, 0))),
    "cubic, with weights above 1": (axis(11, 37, kind=CUBIC), axis(17, 70, kind=CUBIC)),
    "cubic": (axis(50, 20, kind=CUBIC), axis(40, 70, kind=CUBIC)),
    "nearest": (axis(50, 20, kind=NEAREST), axis(40, 70, kind=NEAREST)),
    "nearest of a row": (axis(50, 20, (45, 3), kind=NEAREST), axis(40, 24)),
    "far outside": (axis(50, 20, (-4e9, -4e9 + 400)), axis(40, 24, (4e9, 4e9 + 400))),
    "the depth of a volume": (axis(9, 5), axis(300, 300, kind=NEAREST)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_bytes(bytes_to_floats, name):
    y, x = SHAPES[name]
    image = np.random.default_rng(1).integers(0, 256, (y.length, x.length, 3), np.uint8)
    made = resized(bytes_to_floats, image, y, x)
    assert abs(made - expected(image, y, x)).max() < 2e-3
    # Sums along y are exact, so which of the kernels makes them does not show.
    assert np.array_equal(made, resized(SimpleNamespace(of=lambda y: bytes_to_floats.get(True)), image, y, x))


@pytest.mark.parametrize("channels", [1, 2, 4])
def test_bytes_of_other_numbers_of_channels(tmp_path_factory, channels):
    programs = Programs(tmp_path_factory, SRC="uint8_t", MID="float", DST="float", CH=channels)
    for y, x in (SHAPES["larger"], SHAPES["tiles of many rows and parts"]):
        image = np.random.default_rng(5).integers(0, 256, (y.length, x.length, channels), np.uint8)
        assert abs(resized(programs, image, y, x) - expected(image, y, x)).max() < 2e-3


@pytest.mark.parametrize("name", ["smaller", "tiles of many parts", "mirrored regions", "the depth of a volume"])
def test_floats(floats, name):
    y, x = SHAPES[name]
    image = np.random.default_rng(2).normal(0, 1, (y.length, x.length, 1)).astype(np.float32)
    assert abs(resized(floats, image, y, x) - expected(image, y, x)).max() < 1e-5


@pytest.mark.parametrize("mirror", [0, 1])
@pytest.mark.parametrize("anchor", [(3, 5), (-4, -6)])
def test_windows_are_normalized(normalizing, mirror, anchor):
    y, x = axis(94, 40), axis(125, 60)
    image = np.random.default_rng(3).integers(0, 256, (94, 125, 3), np.uint8)
    height, width = 37, 50
    row = described(LAYOUT.Normalized, y, x, 3)
    row["window"], row["anchor"] = (height, width), anchor
    row["mirror"], row["planar"], row["channels"] = mirror, 1, 4
    row["factor"], row["bias"], row["fill"] = (0.5, 2, 1, 0), (-3, 4, 0.25, 0), (-1, -2, -3, -4)
    sizes = np.array([*tiles(height, width), height * width * 4 * 4], np.uint64)
    made = np.frombuffer(normalizing.of(y)([row.tobytes(), image.tobytes(), sizes.tobytes()]), np.float32).reshape(
        4, height, width
    )

    wanted = np.empty((4, height, width))
    wanted[:] = np.array([-1, -2, -3, -4])[:, None, None]
    whole = np.rint(expected(image, y, x)) * [0.5, 2, 1] + [-3, 4, 0.25]
    rows, columns = anchor[0] + np.arange(height), anchor[1] + np.arange(width)
    there_y, there_x = (rows >= 0) & (rows < 40), (columns >= 0) & (columns < 60)
    shown = np.ix_(range(3), np.flatnonzero(there_y), np.flatnonzero(there_x))
    wanted[shown] = whole[rows[there_y]][:, columns[there_x]].transpose(2, 0, 1)
    wanted = wanted[:, :, ::-1] if mirror else wanted
    # A half may be rounded to either side.
    assert np.mean(made != wanted) < 1e-3 and abs(made - wanted).max() <= 2
    assert np.array_equal(made[3], wanted[3])


FACTORS = {"4:4:4": (0, 0), "4:2:2": (1, 0), "4:2:0": (1, 1), "4:1:1": (2, 0), "4:4:0": (0, 1)}


def colors_of(luma, cb, cr):
    """As libjpeg converts."""
    cb, cr = cb.astype(int) - 128, cr.astype(int) - 128
    red = 91881 * cr + 32768 >> 16
    green = -22554 * cb - 46802 * cr + 32768 >> 16
    blue = 116130 * cb + 32768 >> 16
    return (luma[..., None].astype(int) + np.stack([red, green, blue], -1)).clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def of_planes(tmp_path_factory):
    return Programs(tmp_path_factory, SRC="uint8_t", MID="float", DST="float", CH=3, PLANES=1)


def picture_of(color, factors, height, width, blue_first):
    """Samples of each component, as many as whole blocks have; how they are described; and the pixels that they are."""
    rng = np.random.default_rng(4)
    described, data, seen = np.zeros(1, LAYOUT.Planes), b"", []
    described["color"], described["blue_first"] = color, blue_first
    for c in range(3 if color else 1):
        fx, fy = factors if c else (0, 0)
        rows, columns = (-(-side // (8 << f)) * 8 for side, f in ((height, fy), (width, fx)))
        samples = rng.integers(0, 256, (rows, columns), np.uint8)
        described["samples"][0, c], described["stride"][0, c] = len(data), columns
        described["factor_x"][0, c], described["factor_y"][0, c] = fx, fy
        data += samples.tobytes()
        if not color:
            described["stride"] = columns
        seen.append(samples.repeat(1 << fy, 0).repeat(1 << fx, 1)[:height, :width])
    pixels = colors_of(*seen) if color == 1 else np.stack(seen if color else seen * 3, -1)
    return described, data, pixels[..., ::-1] if blue_first and color else pixels


@pytest.mark.parametrize(
    "name",
    [
        "smaller",
        "larger",
        "one pixel",
        "tiles of many parts",
        "tiles of many rows and parts",
        "as many rows as are multiplied at once",
        "more taps than are kept",
        "mirrored regions",
        "a region",
        "far outside",
        "cubic",
        "nearest",
    ],
)
@pytest.mark.parametrize("sampling", FACTORS)
def test_planes_are_what_their_pixels_are(of_planes, bytes_to_floats, name, sampling):
    y, x = SHAPES[name]
    planes_of, data, pixels = picture_of(1, FACTORS[sampling], y.length, x.length, sampling == "4:2:2")
    row = described(LAYOUT.Resample, y, x, 3, planes=1)
    sizes = np.array([*tiles(y.size, x.size), y.size * x.size * 12], np.uint64)
    made = of_planes.of(y)([row.tobytes(), data, sizes.tobytes(), planes_of.tobytes()])
    made = np.frombuffer(made, np.float32).reshape(y.size, x.size, 3)
    assert np.array_equal(made, resized(bytes_to_floats, np.ascontiguousarray(pixels), y, x))


@pytest.mark.parametrize("color, planes", [(0, 1), (2, 1), (1, 0)])
def test_gray_and_rgb_planes_and_pixels_beside_them(of_planes, bytes_to_floats, color, planes):
    y, x = axis(90, 37), axis(120, 50)
    planes_of, data, pixels = picture_of(color, (0, 0), 90, 120, False)
    row = described(LAYOUT.Resample, y, x, 3, planes=planes)
    sizes = np.array([*tiles(37, 50, 3), 37 * 50 * 12], np.uint64)
    made = of_planes.of(y)([row.tobytes(), data if planes else pixels.tobytes(), sizes.tobytes(), planes_of.tobytes()])
    assert np.array_equal(
        np.frombuffer(made, np.float32).reshape(37, 50, 3), resized(bytes_to_floats, np.ascontiguousarray(pixels), y, x)
    )


def test_the_checker_finds_a_missing_barrier(tmp_path):
    y, x = SHAPES["smaller"]
    image = np.ones((y.length, x.length, 1), np.float32)
    text, behind = source("resample.cu"), "      Resized made;"
    barrier = f"      __syncthreads();\n{behind}"
    assert text.count(barrier) == 1

    def run(kernel):
        definitions = {"SRC": "float", "MID": "float", "DST": "float", "CH": 1}
        program = built(tmp_path, "resample", HEADERS, both(kernel), definitions.items(), check="thread")
        resized(SimpleNamespace(of=lambda y: program), image, y, x)

    run(text)
    with pytest.raises(AssertionError, match="data race"):
        run(text.replace(barrier, behind))
