"""The kernels that encode JPEGs, on the host: files are those of libjpeg-turbo, byte for byte."""

import io

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from layouts import layout
from PIL import Image

pytestmark = needs_compiler
KERNELS = [
    ("jpeg_encode", "jpeg_coefficients"),
    *(("jpeg_write", f"jpeg_{entry}") for entry in ("lengths", "starts", "stuffed", "sizes", "write")),
]
ROW = "to pixels head steps coefficients present bits starts stuffed size "
ROW += "width height channels across down columns lines blocks pieces head_bytes sides_at"
FACTORS = {"4:4:4": (1, 1), "4:2:2": (2, 1), "4:2:0": (2, 2)}


def written(images, qualities, subsampling):
    """What libjpeg-turbo writes, through Pillow."""
    files = []
    for image, quality in zip(images, qualities, strict=True):
        file, is_gray = io.BytesIO(), image.shape[2] == 1
        options = {} if is_gray else {"subsampling": subsampling}
        Image.fromarray(image[..., 0] if is_gray else image).save(file, "JPEG", quality=int(quality), **options)
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return files


def segments(file):
    """The head of a file: where it ends, where its sides are, its divisors, and its codes by their kind."""
    at, steps, codes = 2, [], {}
    while True:
        marker, length = file[at + 1], int(file[at + 2]) << 8 | int(file[at + 3])
        body = file[at + 4 : at + 2 + length]
        if marker == 0xDB:
            steps.append(8 * body[1:].astype(np.uint64))
        elif marker == 0xC0:
            sides_at = at + 5
        elif marker == 0xC4:
            codes[int(body[0])] = canonical(body[1:17], body[17:])
        at += 2 + length
        if marker == 0xDA:
            return at, sides_at, np.concatenate(steps), codes


def canonical(counts, symbols):
    made, code, symbols = {}, 0, iter(symbols)
    for length, count in enumerate(counts, 1):
        for _ in range(count):
            made[int(next(symbols))] = code << 8 | length
            code += 1
        code *= 2
    return made


def coded(folder, images, expected, subsampling, blocks=2):
    """What the kernels write, in memory as long as the files are expected to be."""
    constants, codes = layout("jpeg_encode"), np.zeros((2, 272), np.uint32)
    memory, rows = [], []
    for image, file in zip(images, expected, strict=True):
        height, width, channels = image.shape
        across, down = FACTORS[subsampling] if channels == 3 else (1, 1)
        columns, lines = -(-width // (8 * across)), -(-height // (8 * down))
        count = columns * lines * (across * down + (2 if channels == 3 else 0))
        pieces = -(-count // constants.PIECE)
        end, sides_at, divisors, own = segments(file)
        for kind, symbols in own.items():
            for symbol, entry in symbols.items():
                codes[kind & 15, symbol + (constants.MEANS if kind >> 4 else 0)] = entry
        steps = np.stack([-(-(1 << 32) // divisors.astype(object)), divisors // 2], 1).astype(np.uint32)
        head = file[:end].copy()
        head[sides_at : sides_at + 4] = 0xEE
        first = len(memory)
        memory += [
            np.full(file.size, 0xAB, np.uint8),
            image,
            head,
            steps,
            np.full((count, 64), 77, np.int16),
            np.full((count, 8), 77, np.uint8),
            np.full(count, 77, np.uint16),
            np.full(pieces + 1, 77, np.uint32),
            np.full(pieces + 1, 77, np.uint32),
            np.full(1, 77, np.uint32),
        ]
        numbers = (width, height, channels, across, down, columns, lines, count, pieces, end, sides_at)
        rows.append((*(place(first + i) for i in range(10)), *numbers))
    param = (place(len(memory)),)
    memory.append(codes)
    for source, entry in KERNELS:
        threads = constants.TRANSFORM_THREADS if source == "jpeg_encode" else constants.PIECE_THREADS
        kernel = table_kernel(folder, source, ROW, entry, "codes", "jpeg_encode")
        # One block sums the numbers of an image.
        memory = kernel(rows, memory, 1 if entry in ("jpeg_starts", "jpeg_sizes") else blocks, threads, param)
    return memory[: 10 * len(images) : 10], [int(size[0]) for size in memory[9 : 10 * len(images) : 10]]


def check(folder, images, qualities, subsampling, **settings):
    expected = written(images, qualities, subsampling)
    made, sizes = coded(folder, images, expected, subsampling, **settings)
    for image, file, found, size in zip(images, expected, made, sizes, strict=True):
        assert size == file.size, (image.shape, size, file.size)
        np.testing.assert_array_equal(found, file, str(image.shape))


def noise(height, width, channels, seed=0):
    return np.random.default_rng([height, width, channels, seed]).integers(0, 256, (height, width, channels), np.uint8)


def smooth(height, width, channels):
    ramp = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)[..., None] * np.arange(1, channels + 1)
    return (127 + 120 * np.sin(ramp / 40)).astype(np.uint8)


def checkers(height, width, channels):
    """The largest steps that there are, of colours that are furthest apart."""
    squares = np.add.outer(np.arange(height) // 8, np.arange(width) // 8)[..., None] + np.arange(channels) // 2
    return (squares % 2 * 255).astype(np.uint8)


SIZES = [(1, 1), (1, 9), (8, 8), (7, 17), (16, 16), (17, 16), (9, 33), (24, 40), (31, 130), (70, 100)]


@pytest.mark.parametrize("subsampling", FACTORS)
@pytest.mark.parametrize("channels", [1, 3])
def test_sizes(tmp_path, subsampling, channels):
    if channels == 1 and subsampling != "4:2:0":
        return
    images = [make(*size, channels) for size in SIZES for make in (noise, smooth)]
    check(tmp_path, images, [90] * len(images), subsampling)


@pytest.mark.parametrize("subsampling", FACTORS)
def test_qualities_and_extremes(tmp_path, subsampling):
    qualities = [1, 2, 25, 50, 75, 95, 99, 100]
    makers = [
        noise,
        smooth,
        checkers,
        lambda *shape: np.zeros(shape, np.uint8),
        lambda *shape: np.full(shape, 255, np.uint8),
    ]
    images = [make(26, 37, 3) for make in makers for _ in qualities]
    images += [np.repeat(np.repeat(noise(4, 4, 3, seed) // 128 * 255, 8, 0), 8, 1) for seed in range(8)]
    check(tmp_path, images, qualities * (len(makers) + 1), subsampling)


def test_every_quality(tmp_path):
    qualities = list(range(1, 101))
    check(tmp_path, [noise(17, 15, 3, quality) for quality in qualities], qualities, "4:2:0")


def test_blocks_of_threads_take_several_pieces_and_tiles(tmp_path):
    images = [noise(120, 300, 3), smooth(150, 270, 3), smooth(90, 300, 1)]
    for blocks in (1, 3):
        check(tmp_path, images, [100, 90, 30], "4:2:0", blocks=blocks)
