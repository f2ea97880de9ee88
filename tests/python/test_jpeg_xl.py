"""JPEG XLs beside libjxl, which writes and reads them for Pillow: lossless and lossy, bare and in boxes, depths, alpha,
damage."""

import io

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from pictures import decoded, picture
from PIL import Image

pytest.importorskip("pillow_jxl", reason="Pillow without libjxl")


def saved(image, **options):
    file = io.BytesIO()
    image.save(file, "JXL", **options)
    return file.getvalue()


def pixels_of(image):
    """Rows, columns and channels."""
    pixels = np.array(image)
    return pixels if pixels.ndim == 3 else pixels[..., None]


def libjxls(file):
    return pixels_of(Image.open(io.BytesIO(file)))


SIZES = [(64, 48), (61, 45), (1, 1), (1, 30), (33, 2), (300, 270)]


@pytest.mark.parametrize("boxes", [False, True])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_lossless_is_what_was_written(channels, boxes):
    pictures = [picture(*size, channels=channels) for size in SIZES]
    images, shapes = decoded([saved(p, lossless=True, use_container=boxes) for p in pictures], types.ANY_DATA)
    for image, shape, written in zip(images, shapes, pictures):
        assert (image == pixels_of(written)).all() and image.shape == pixels_of(written).shape
        assert shape == list(image.shape)


@pytest.mark.parametrize("effort", [1, 4, 7, 9])
@pytest.mark.parametrize("quality", [30, 75, 95])
def test_lossy_is_libjxls(quality, effort):
    files = [saved(picture(*size), quality=quality, effort=effort) for size in SIZES]
    images, _ = decoded(files, types.RGB)
    for file, image in zip(files, images):
        off = image.astype(int) - libjxls(file)
        # Levels are rounded by a pattern, so that ramps have no steps, which not every libjxl does: no level is more
        # than one off, and of many the mean is the same.
        assert np.abs(off).max() <= 1
        assert off.size < 10_000 or abs(off.mean()) < 0.01


def test_alpha_is_a_channel():
    for lossless, most in ((True, 0), (False, 2)):
        rgba = picture(61, 45, 4)
        file = saved(rgba, lossless=lossless)
        (image,), (shape,) = decoded([file], types.ANY_DATA)
        assert shape == [45, 61, 4]
        assert np.abs(image.astype(int) - libjxls(file)).max() <= most
        (opaque,), _ = decoded([file], types.RGB)
        assert (opaque == image[..., :3]).all()


def test_sixteen_bits():
    wide = np.random.default_rng(3).integers(0, 1 << 16, (45, 61), dtype=np.uint16)
    file = saved(Image.fromarray(wide), lossless=True)
    (image,), _ = decoded([file], types.ANY_DATA, dtype=types.UINT16)
    assert (image[..., 0] == wide).all()
    (floats,), _ = decoded([file], types.GRAY, dtype=types.FLOAT)
    assert np.allclose(floats[..., 0], wide / 65535, atol=1e-6)
    (bytes_,), _ = decoded([file], types.GRAY)
    assert np.abs(bytes_[..., 0] - wide / 257).max() <= 0.51


def test_floats():
    levels = np.random.default_rng(3).random((45, 61), dtype=np.float32)
    file = saved(Image.fromarray(levels), lossless=True)
    (image,), _ = decoded([file], types.GRAY, dtype=types.FLOAT)
    assert (image[..., 0] == levels).all()


def test_windows_of_other_decoders():
    file = saved(picture(61, 45))
    (whole,), _ = decoded([file], types.RGB)
    pipe = Pipeline(1, 1, None)
    with pipe:
        encoded = fn.external_source(source=lambda: [np.frombuffer(file, np.uint8)], dtype=types.UINT8, ndim=1)
        pipe.set_outputs(
            fn.decoders.image_slice(encoded, start=[7, 5], shape=[20, 30], axes=[0, 1]),
            fn.decoders.image_crop(encoded, crop=[20, 30], crop_pos_x=0.0, crop_pos_y=0.0),
            fn.decoders.image_random_crop(encoded, random_area=[1.0, 1.0], random_aspect_ratio=[61 / 45, 61 / 45]),
        )
    pipe.build()
    sliced, cropped, drawn = (np.array(output[0]) for output in pipe.run())
    assert (sliced == whole[7:27, 5:35]).all()
    assert (cropped == whole[:20, :30]).all()
    assert drawn.shape == whole.shape and (drawn == whole).all()


@pytest.mark.parametrize("length", [2, 11, 30, 150, 280, -1])
def test_a_file_that_ends_early_is_an_error(length):
    file = saved(picture(61, 45))
    with pytest.raises(RuntimeError, match="image"):
        decoded([file[:length]], types.RGB)


def test_damage_is_an_error_or_another_picture():
    rng = np.random.default_rng(11)
    whole = [
        saved(picture(61, 45, channels), lossless=lossless) for channels in (1, 3, 4) for lossless in (True, False)
    ]
    for _ in range(40):
        for file in whole:
            damaged = bytearray(file)
            for place in rng.integers(2, len(file), 4):
                damaged[place] = rng.integers(256)
            try:
                decoded([bytes(damaged)], types.RGB)
            except RuntimeError as error:
                assert "panic" not in str(error)
