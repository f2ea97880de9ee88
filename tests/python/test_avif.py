"""AVIFs beside Pillow, which decodes them by libavif: layouts of chroma, ranges, alpha, turned pictures, sequences,
damage."""

import io

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from pictures import decoded, picture
from PIL import Image, ImageOps, features

pytestmark = pytest.mark.skipif(not features.check("avif"), reason="Pillow without libavif")


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "AVIF", speed=8, **options)
    return file.getvalue()


def pillows(file, mode):
    return np.array(Image.open(io.BytesIO(file)).convert(mode))


def close(found, expected, most, usual):
    assert found.shape == expected.shape
    off = np.abs(found.astype(int) - expected)
    assert off.max() <= most and off.mean() <= usual, f"{off.max()} at most, {off.mean():.3f} on average"


SIZES = [(64, 48), (61, 45), (1, 1), (1, 30), (33, 2), (200, 131)]


@pytest.mark.parametrize("range", ["full", "limited"])
@pytest.mark.parametrize(
    # Whole chroma: the same arithmetic but for a rounding. Halved: libavif interpolates it in 8 bits by libyuv, whose
    # factors have 6.
    ("subsampling", "most", "usual"),
    [("4:4:4", 1, 0.3), ("4:2:2", 12, 0.6), ("4:2:0", 12, 0.6)],
)
def test_colours_are_libavifs(range, subsampling, most, usual):
    files = [saved(picture(*size), subsampling=subsampling, range=range, quality=80) for size in SIZES]
    images, shapes = decoded(files, types.RGB)
    for file, image, shape in zip(files, images, shapes):
        close(image, pillows(file, "RGB"), most, usual)
        assert shape == list(image.shape)


@pytest.mark.parametrize("range", ["full", "limited"])
def test_gray_is_one_channel(range):
    files = [saved(picture(*size, channels=1), subsampling="4:0:0", range=range, quality=80) for size in SIZES]
    for output_type in (types.ANY_DATA, types.GRAY):
        images, shapes = decoded(files, output_type)
        for file, image, shape in zip(files, images, shapes):
            assert (image[..., 0] == pillows(file, "RGB")[..., 0]).all()
            assert shape == list(image.shape) and shape[2] == 1
    (image, *_), _ = decoded(files, types.RGB)
    assert (image == pillows(files[0], "RGB")).all()


def test_alpha_is_a_channel():
    plain, multiplied = (
        saved(picture(61, 45, 4), subsampling="4:4:4", alpha_premultiplied=how) for how in (False, True)
    )
    images, shapes = decoded([plain, multiplied], types.ANY_DATA)
    assert shapes == [[45, 61, 4]] * 2
    close(images[0], pillows(plain, "RGBA"), 1, 0.3)
    # Divided by an alpha of 100, a level of a colour becomes 2.55, and libavif does not round there.
    solid = images[1][..., 3] > 100
    close(images[1][solid], pillows(multiplied, "RGBA")[solid], 4, 0.5)
    (image, _), _ = decoded([plain, multiplied], types.RGB)
    close(image, pillows(plain, "RGBA")[..., :3], 1, 0.3)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_pictures_are_turned(orientation):
    exif = Image.Exif()
    exif[0x112] = orientation
    file = saved(picture(61, 45), subsampling="4:4:4", exif=exif.tobytes())
    (image,), (shape,) = decoded([file], types.RGB)
    close(image, np.array(ImageOps.exif_transpose(Image.open(io.BytesIO(file)))), 1, 0.3)
    assert shape == list(image.shape)
    (image,), _ = decoded([file], types.RGB, adjust_orientation=False)
    close(image, pillows(file, "RGB"), 1, 0.3)


def test_of_a_sequence_the_first_picture():
    file = saved(picture(61, 45), subsampling="4:4:4", save_all=True, append_images=[picture(61, 45, seed=8)])
    assert file[4:12] == b"ftypavis"
    (image,), _ = decoded([file], types.RGB)
    close(image, pillows(file, "RGB"), 1, 0.3)


def test_other_types_and_windows():
    file = saved(picture(61, 45), subsampling="4:4:4")
    (bytes_,), _ = decoded([file], types.RGB)
    (floats,), _ = decoded([file], types.RGB, dtype=types.FLOAT)
    assert np.allclose(floats * 255, bytes_, atol=1e-4)
    pipe = Pipeline(1, 1, None)
    with pipe:
        encoded = fn.external_source(source=lambda: [np.frombuffer(file, np.uint8)], dtype=types.UINT8, ndim=1)
        pipe.set_outputs(fn.decoders.image_slice(encoded, start=[7, 5], shape=[20, 30], axes=[0, 1]))
    pipe.build()
    (window,) = pipe.run()
    assert (np.array(window[0]) == bytes_[7:27, 5:35]).all()


@pytest.mark.parametrize("length", [11, 30, 150, 280, -1])
def test_a_file_that_ends_early_is_an_error(length):
    file = saved(picture(61, 45))
    with pytest.raises(RuntimeError, match="image"):
        decoded([file[:length]], types.RGB)
