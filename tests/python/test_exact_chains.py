"""Whole preprocessings with `arithmetic`, file to floats, beside live Pillow. `tests/conformance/exact_chains.py`
compares with torchvision and timm."""

import sys
from pathlib import Path

import gesso
import numpy as np
import pytest
from gesso import Pipeline, fn, types
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import exact_chains

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two of each kind."""
    return exact_chains.draw_files(tmp_path_factory.mktemp("files"), 4 * len(exact_chains.KINDS), seed=2)


@pytest.mark.parametrize(
    ("resize", "crop", "method"), [(256, 224, "linear"), ([97, 90], 90, "cubic"), (64, 63, "lanczos")]
)
def test_all_kinds_of_files(files, resize, crop, method):
    chain = exact_chains.Chain("", None, resize, crop, method, MEAN, STD, exact_chains.pillow_arithmetic())
    found = gesso.compare(
        exact_chains.pipeline(chain), files, "pillow", resize=resize, filter=method, crop=crop, mean=MEAN, std=STD
    )
    assert [file.path for file in found.files if file.differing] == []


def decoded(decoder, path, **arguments):
    """What a decoder makes of a file."""
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(decoder(fn.external_source(name="file", dtype=types.UINT8, ndim=1), **arguments))
    pipe.build()
    pipe.feed_input("file", [np.fromfile(path, np.uint8)])
    return np.asarray(pipe.run()[0].at(0))


@pytest.mark.parametrize("kind", ["png-gray-16", "png-16", "jpeg-cmyk", "tiff-cmyk"])
def test_windows_of_files_that_pillow_converts_otherwise(files, kind):
    path = next(path for path in files if path.name.endswith(kind))
    expected = np.asarray(exact_chains.loaded(path))[3:13, 5:20]
    window = {
        "crop": [10, 15],
        "crop_pos_y": 3 / (exact_chains.loaded(path).height - 10),
        "crop_pos_x": 5 / (exact_chains.loaded(path).width - 15),
    }
    made = decoded(fn.decoders.image_crop, path, arithmetic="pillow", **window)
    np.testing.assert_array_equal(made, expected)
    assert not np.array_equal(decoded(fn.decoders.image_crop, path, **window), expected)


def test_inks_are_always_those_of_adobe(tmp_path):
    pixels = np.random.default_rng(4).integers(0, 256, (16, 16, 4), np.uint8)
    data = exact_chains.saved(Image.fromarray(pixels, "CMYK"), "JPEG", quality=100)
    start = data.index(b"\xff\xee")
    length = int.from_bytes(data[start + 2 : start + 4], "big")
    (tmp_path / "inks.jpg").write_bytes(data[:start] + data[start + 2 + length :])
    expected = np.asarray(exact_chains.loaded(tmp_path / "inks.jpg"))
    np.testing.assert_array_equal(decoded(fn.decoders.image, tmp_path / "inks.jpg", arithmetic="pillow"), expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arithmetic": "opencv"}, "argument `arithmetic` is `opencv`, expected `dali`, `pillow` or `pillow13`"),
        (
            {"arithmetic": "pillow", "output_type": types.GRAY},
            "argument `arithmetic` is `pillow`, which makes uint8 RGB",
        ),
        ({"arithmetic": "pillow", "dtype": types.FLOAT}, "argument `arithmetic` is `pillow`, which makes uint8 RGB"),
    ],
)
def test_what_pillow_does_not_make_is_refused(files, arguments, says):
    with pytest.raises(RuntimeError, match=says):
        decoded(fn.decoders.image, files[0], **arguments)
