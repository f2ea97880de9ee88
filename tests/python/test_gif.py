"""GIFs beside Pillow: palettes, transparency, interlacing, animations, frames that leave places of the canvas open."""

import io

import numpy as np
import pytest
from gesso import types
from pictures import decoded
from PIL import Image


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "GIF", **options)
    return file.getvalue()


def pictures():
    rng = np.random.default_rng(7)
    for colors in (2, 3, 16, 200, 256):
        width, height = (int(side) for side in rng.integers(1, 60, 2))
        palette = rng.integers(0, 256, 3 * colors).astype(np.uint8)
        image = Image.fromarray(rng.integers(0, colors, (height, width)).astype(np.uint8), "P")
        image.putpalette(palette.tobytes())
        yield saved(image)
        yield saved(image, interlace=1)
        yield saved(image, save_all=True, append_images=[image.transpose(Image.Transpose.ROTATE_180)])


def test_colours_are_those_of_the_palette():
    files = list(pictures())
    images, shapes = decoded(files, types.RGB)
    for file, image, shape in zip(files, images, shapes):
        expected = np.array(Image.open(io.BytesIO(file)).convert("RGB"))
        assert image.shape == expected.shape and (image == expected).all()
        assert shape == list(expected.shape)


def test_transparent_places_have_no_alpha():
    image = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) % 4, "P")
    image.putpalette(bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9]))
    file = saved(image, transparency=2)
    (found,), _ = decoded([file], types.ANY_DATA)
    expected = np.array(Image.open(io.BytesIO(file)).convert("RGBA"))
    assert found.shape == (8, 8, 4)
    assert (found[..., 3] == expected[..., 3]).all() and (
        found[expected[..., 3] > 0] == expected[expected[..., 3] > 0]
    ).all()


def test_a_frame_that_is_smaller_than_the_canvas_lies_on_black():
    image = Image.fromarray(np.full((2, 3), 1, np.uint8), "P")
    image.putpalette(bytes([1, 2, 3, 40, 50, 60]))
    file = bytearray(saved(image))
    # The canvas becomes 5 x 4; the frame stays where it is.
    file[6:10] = bytes([5, 0, 4, 0])
    (found,), (shape,) = decoded([bytes(file)], types.RGB)
    assert shape == [4, 5, 3] and (found[:2, :3] == [40, 50, 60]).all()
    assert not found[2:].any() and not found[:, 3:].any()


@pytest.mark.parametrize("length", [6, 9, 20, -8])
def test_a_file_that_ends_early_is_an_error(length):
    file = next(pictures())
    with pytest.raises(RuntimeError, match="GIF"):
        decoded([file[:length]], types.RGB)
