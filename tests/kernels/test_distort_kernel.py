"""The kernel that distorts images like JPEG files, on the host (emulator.h), against its formula in numpy and against
real files."""

import io

import numpy as np
import pytest
from emulator import needs_compiler, place, table_kernel
from PIL import Image

# Steps of quantisation at quality 50, of the standard's annex K.
LUMA = np.array(
    [
        [16, 11, 10, 16, 24, 40, 51, 61],
        [12, 12, 14, 19, 26, 58, 60, 55],
        [14, 13, 16, 24, 40, 57, 69, 56],
        [14, 17, 22, 29, 51, 87, 80, 62],
        [18, 22, 37, 56, 68, 109, 103, 77],
        [24, 35, 55, 64, 81, 104, 113, 92],
        [49, 64, 78, 87, 103, 121, 120, 101],
        [72, 92, 95, 98, 112, 100, 103, 99],
    ]
)
CHROMA = np.full((8, 8), 99)
CHROMA[:4, :4] = [[17, 18, 24, 47], [18, 21, 26, 66], [24, 26, 56, 99], [47, 66, 99, 99]]

pytestmark = needs_compiler


@pytest.fixture(scope="module")
def distort(tmp_path_factory):
    run = table_kernel(tmp_path_factory.mktemp("distort"), "distort", "to from steps width height")

    def call(images, steps):
        memory, rows = [np.stack(steps).astype(np.float32)], []
        for image in images:
            rows.append((place(len(memory)), place(len(memory) + 1), place(0), image.shape[1], image.shape[0]))
            memory += [np.zeros_like(image), image]
        return run(rows, memory)[1::2]

    return call


def tables(quality):
    scale = 50 / quality if quality < 50 else 2 - quality / 50
    return [np.clip(np.floor(table * scale + 0.5), 1, 255) for table in (LUMA, CHROMA)]


def rounded(values):
    return np.clip(np.rint(values), 0, 255)


def through(plane, steps):
    """Blocks of 8 by 8 to frequencies, quantised, and back."""
    k, n = np.mgrid[:8, :8]
    basis = np.cos((2 * n + 1) * k * np.pi / 16) * np.where(k == 0, 8**-0.5, 0.5)
    height, width = plane.shape
    blocks = (plane - 128.0).reshape(height // 8, 8, width // 8, 8).transpose(0, 2, 1, 3)
    frequencies = basis @ blocks @ basis.T
    back = basis.T @ (np.rint(frequencies / steps) * steps) @ basis
    return rounded(back.transpose(0, 2, 1, 3).reshape(height, width) + 128)


def expected(image, steps):
    height, width = image.shape[:2]
    padded = np.pad(image, ((0, -height % 16), (0, -width % 16), (0, 0)), "edge").astype(float)
    small = rounded((padded[::2, ::2] + padded[1::2, ::2] + padded[::2, 1::2] + padded[1::2, 1::2]) / 4)
    y = through(rounded(padded @ [0.299, 0.587, 0.114]), steps[0])
    cb = through(rounded(small @ [-0.16873589, -0.33126411, 0.5] + 128), steps[1]).repeat(2, 0).repeat(2, 1) - 128
    cr = through(rounded(small @ [0.5, -0.41868759, -0.08131241] + 128), steps[1]).repeat(2, 0).repeat(2, 1) - 128
    pixels = np.stack([y + 1.402 * cr, y - 0.34413629 * cb - 0.71413629 * cr, y + 1.772 * cb], -1)
    return rounded(pixels)[:height, :width]


def picture(height, width, seed=0):
    y, x = np.mgrid[:height, :width]
    plain = (3 * y + 2 * x)[..., None] + np.array([0, 30, 60])
    return (plain + np.random.default_rng(seed).integers(0, 20, (height, width, 3))).clip(0, 255).astype(np.uint8)


@pytest.mark.parametrize("quality", [1, 50, 95, 100])
def test_images(distort, quality):
    images = [picture(37, 150), picture(16, 16), picture(1, 9), picture(130, 3)]
    for image, found in zip(images, distort(images, tables(quality))):
        difference = np.abs(found - expected(image, tables(quality)))
        # A frequency may be rounded to either side: where steps are small many lie in the middle.
        assert np.mean(difference > 1) < (0.01 if quality < 90 else 0.05) and difference.max() < 16
        file = io.BytesIO()
        Image.fromarray(image).save(file, "jpeg", quality=quality, subsampling="4:2:0")
        # Files have chroma spread smoothly.
        assert np.abs(found.astype(float) - np.asarray(Image.open(file))).mean() < 3


def test_colors_without_detail_stay(distort):
    image = np.zeros((48, 48, 3), np.uint8)
    image[:16], image[16:32], image[32:] = (255, 0, 0), (0, 0, 0), (12, 200, 255)
    found = distort([image], [np.ones((8, 8))] * 2)[0]
    assert np.abs(found.astype(int) - image).max() <= 2
