"""`fn.gesso.decode_animation` beside Pillow: the pictures of GIF, APNG and WebP, and for how long each is shown."""

import io

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from PIL import Image

SIZE = (37, 23)
TIMES = [40, 100, 250, 70, 30]


def decoded(*files, alpha=True):
    pipe = Pipeline(len(files), 2, None, prefetch_queue_depth=1)
    with pipe:
        given = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
        pipe.set_outputs(*fn.gesso.decode_animation(given, alpha=alpha))
    frames, durations = pipe.run(files=[np.frombuffer(file, np.uint8) for file in files])
    return [(np.asarray(frames.at(i)), np.asarray(durations.at(i))) for i in range(len(files))]


def by_pillow(file):
    """Each picture as RGBA, and its milliseconds."""
    image = Image.open(io.BytesIO(file))
    pictures, times = [], []
    for number in range(image.n_frames):
        image.seek(number)
        pictures.append(np.asarray(image.convert("RGBA")))
        times.append(image.info["duration"])
    return np.stack(pictures), np.array(times, np.float32)


def pictures(kind, seed=1):
    """Pictures with shapes that move, seen, not seen or in part."""
    rng, made = np.random.default_rng(seed), []
    canvas = np.zeros((SIZE[1], SIZE[0], 4), np.uint8)
    for number in range(len(TIMES)):
        top, left = rng.integers(0, 12, 2)
        canvas[top : top + 10, left : left + 20, :3] = rng.integers(0, 256, (1, 20, 3))
        shown = {"whole": 255, "holes": 255 * (number % 2), "part": 51 * (number + 1)}[kind]
        canvas[top : top + 10, left : left + 20, 3] = shown
        if kind == "whole":
            canvas[..., 3] = 255
        made.append(Image.fromarray(canvas.copy()))
    return made


def saved(images, form, **options):
    file = io.BytesIO()
    images[0].save(file, form, save_all=True, append_images=images[1:], duration=TIMES, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", ["whole", "holes"])
# What was before the first picture, Pillow shows as the background.
@pytest.mark.parametrize("disposal", [0, 1, 2, [1, 3, 3, 3, 1]])
def test_gifs_are_those_of_pillow(kind, disposal):
    file = saved(pictures(kind), "GIF", disposal=disposal)
    expected, times = by_pillow(file)
    [(found, durations)] = decoded(file)
    np.testing.assert_array_equal(durations, times)
    seen = expected[..., 3] > 0
    np.testing.assert_array_equal(found[..., 3], expected[..., 3])
    np.testing.assert_array_equal(found[seen], expected[seen])


@pytest.mark.parametrize("kind", ["whole", "holes", "part"])
@pytest.mark.parametrize("disposal", [0, 1, 2])
@pytest.mark.parametrize("blend", [0, 1])
def test_pngs_are_those_of_pillow(kind, disposal, blend):
    file = saved(pictures(kind), "PNG", disposal=disposal, blend=blend)
    expected, times = by_pillow(file)
    [(found, durations)] = decoded(file)
    np.testing.assert_array_equal(durations, times)
    np.testing.assert_array_equal(found[..., 3] > 0, expected[..., 3] > 0)
    if blend:
        # Over a picture Pillow mixes alpha too, and not as PNG's standard says; and colours that nobody sees.
        seen = (expected[..., 3] == 255) & (found[..., 3] == 255)
        found, expected = found[seen], expected[seen]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", ["whole", "holes", "part"])
@pytest.mark.parametrize("lossless", [True, False])
@pytest.mark.parametrize("kmax", [1, 9])
def test_webps_are_those_of_pillow(kind, lossless, kmax):
    file = saved(pictures(kind), "WEBP", lossless=lossless, quality=80, kmin=kmax // 3, kmax=kmax)
    expected, times = by_pillow(file)
    [(found, durations)] = decoded(file)
    np.testing.assert_array_equal(durations, times)
    np.testing.assert_array_equal(found, expected)


def test_half_of_a_colour_over_another_is_as_the_standard_of_png_says():
    """13.4 of the standard: alpha and colours in fractions of 1."""
    under, over = np.array([200, 10, 90, 128]), np.array([20, 250, 30, 64])
    images = [Image.fromarray(np.full((4, 4, 4), pixel, np.uint8)) for pixel in (under, over)]
    file = io.BytesIO()
    images[0].save(file, "PNG", save_all=True, append_images=images[1:], blend=1, duration=40)
    [(found, _)] = decoded(file.getvalue())
    alpha = over[3] / 255 + under[3] / 255 * (1 - over[3] / 255)
    colors = (over[:3] * over[3] / 255 + under[:3] * under[3] / 255 * (1 - over[3] / 255)) / alpha
    np.testing.assert_allclose(found[1, 0, 0], [*colors, alpha * 255], atol=1)


def test_other_files_have_one_picture():
    colors = Image.fromarray(np.random.default_rng(2).integers(0, 256, (9, 7, 4), np.uint8))
    files, expected = [], []
    for mode, form in [("RGBA", "PNG"), ("RGB", "PNG"), ("LA", "PNG"), ("L", "GIF"), ("RGBA", "WEBP"), ("RGB", "BMP")]:
        file, image = io.BytesIO(), colors.convert(mode)
        image.save(file, form, **({"lossless": True, "exact": True} if form == "WEBP" else {}))
        files.append(file.getvalue())
        expected.append(np.asarray(image.convert("RGBA")))
    for alpha in (True, False):
        for (found, durations), picture in zip(decoded(*files, alpha=alpha), expected, strict=True):
            assert durations.shape == (1,) and durations[0] == 0
            np.testing.assert_array_equal(found[0], picture[..., : 4 if alpha else 3])


def refused(file):
    with pytest.raises(RuntimeError) as error:
        decoded(file)
    return str(error.value)


@pytest.mark.parametrize("form", ["GIF", "PNG", "WEBP"])
def test_what_is_cut_off_is_refused_or_has_fewer_pictures(form):
    file = saved(pictures("whole"), form)
    for end in range(len(file) // 3, len(file) - 1, 97):
        try:
            [(found, durations)] = decoded(file[:end])
        except RuntimeError as error:
            assert "image" in str(error)
        else:
            assert len(found) == len(durations) <= len(TIMES)


def test_a_number_of_pictures_that_is_a_lie_is_refused():
    file = bytearray(saved(pictures("whole"), "PNG"))
    at = file.index(b"acTL") + 4
    file[at : at + 4] = (1 << 30).to_bytes(4, "big")
    assert "1073741824 pictures, of which 5 are there" in refused(bytes(file))


def test_small_files_of_large_pictures_are_refused():
    """A thousand frames of a pixel each, in a picture of 20,000 x 5,000."""
    frame = b"\x2c" + bytes(4) + b"\x01\x00\x01\x00\x00" + b"\x02\x02\x44\x01\x00"
    screen = b"GIF89a" + (20_000).to_bytes(2, "little") + (5_000).to_bytes(2, "little") + b"\x80\x00\x00" + bytes(6)
    assert "1000 pictures of 20000 x 5000 pixels are more than the limit" in refused(screen + frame * 1_000 + b"\x3b")
