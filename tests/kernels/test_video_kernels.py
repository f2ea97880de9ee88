"""The kernels of video frames on the host, against the conversion that src/cpu/yuv.rs has, in plain numpy."""

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel

pytestmark = needs_compiler


def stretched(rows, length, bits):
    """Rows between the centres of rows, in parts of `1 << bits`."""
    at = (np.arange(length) + 0.5) * len(rows) / length - 0.5
    first = np.floor(at).astype(int)
    part = np.floor((at - first) * (1 << bits) + 0.5).astype(np.int64)[:, None]
    return rows[first.clip(0)] * ((1 << bits) - part) + rows[(first + 1).clip(max=len(rows) - 1)] * part


def factors(red, blue, full):
    green = 1 - red - blue

    def factor(value):
        limited = int(np.rint(value * 255 / 224 * 65536))
        return ((limited * 224 // 255 if full else limited) + 4) >> 3

    luma = (0, 8192) if full else (8192, (65536 * 255 // 219 + 4) >> 3)
    return (
        *luma,
        factor(2 - 2 * red),
        -factor(2 * red * (1 - red) / green),
        -factor(2 * blue * (1 - blue) / green),
        factor(2 - 2 * blue),
    )


def expected(planes, depth, numbers):
    luma, blue, red = (plane.astype(np.int64) << (15 - depth) for plane in planes)
    height, width = luma.shape
    black, light, red_of_red, green_of_red, green_of_blue, blue_of_blue = numbers

    def whole(plane):
        across = plane if plane.shape[1] == width else (stretched(plane.T, width, 14) >> 14).T
        return (stretched(across, height, 12) + 512 - (128 << 19)) >> 10

    u, v = whole(blue), whole(red)
    y = (luma * 4 - black) * light + (1 << 21)
    channels = y + v * red_of_red, y + v * green_of_red + u * green_of_blue, y + u * blue_of_blue
    return (np.stack(channels, -1) >> 22).clip(0, 255).astype(np.uint8)


PARAMS = (
    "to luma blue red pitch width height depth factors:black,luma,red_of_red,green_of_red,green_of_blue,blue_of_blue"
)
COLORS = [(0.299, 0.114, False), (0.2126, 0.0722, False), (0.2627, 0.0593, True)]


@pytest.mark.parametrize("planar", [False, True])
@pytest.mark.parametrize("depth", [8, 10, 12])
def test_pictures_become_colours(tmp_path, planar, depth):
    rng = np.random.RandomState(depth)
    sample = np.uint8 if depth == 8 else np.uint16
    definitions = dict(SAMPLE="uint8_t" if depth == 8 else "uint16_t", PLANAR=int(planar))
    run = table_kernel(tmp_path, "video", "", params=PARAMS, **definitions)
    # Odd sides, and a part of a larger picture, which stands behind other columns and rows.
    for (width, height), (left, top), (red, blue, full) in zip(
        [(16, 12), (9, 7), (33, 2)], [(0, 0), (2, 4), (4, 0)], COLORS
    ):
        rows, pitch = top + height + 3 & ~1, 64
        stored = rng.randint(0, 1 << depth, (rows * 3, pitch))
        numbers = factors(red, blue, full)
        size = sample().itemsize
        at = (top * pitch + left) * size
        if planar:
            starts = [at, at + rows * pitch * size, at + 2 * rows * pitch * size]
            planes = [stored[i * rows + top :, left:][:height, :width] for i in range(3)]
        else:
            starts = [at, (rows * pitch + top // 2 * pitch + left) * size, 0]
            half = stored[rows + top // 2 :, left:][: (height + 1) // 2, : (width + 1) // 2 * 2]
            planes = [stored[top:, left:][:height, :width], half[:, ::2], half[:, 1::2]]
        memory = [np.full((height, width, 3), 77, np.uint8), (stored << (8 * size - depth)).astype(sample)]
        addresses = [place(0), *(place(1, start) for start in starts)]
        found = run([()], memory, param=(*addresses, pitch * size, width, height, depth, *numbers))[0]
        np.testing.assert_array_equal(found, expected(planes, depth, numbers))


def test_frames_of_one_colour(tmp_path):
    run = table_kernel(tmp_path, "video_fill", "to pixels color")
    frames = [np.zeros((5, 7, 3), np.uint8), np.zeros((1, 1, 3), np.uint8)]
    colors = [(1, 2, 3), (200, 0, 9)]
    rows = [(place(i), frame.size // 3, *color, 0, 0, 0, 0, 0) for i, (frame, color) in enumerate(zip(frames, colors))]
    for found, color in zip(run(rows, frames), colors):
        assert (found == color).all()
