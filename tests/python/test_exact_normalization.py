"""`arithmetic` of `fn.crop_mirror_normalize`: the values of torchvision and transformers, to the bit. What the
libraries make was recorded; `tests/conformance/exact_normalization.py` compares with the libraries themselves."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, types

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import exact_normalization

RECORDED = json.loads(exact_normalization.RECORDING.read_text())


@pytest.mark.parametrize("library", exact_normalization.LIBRARIES)
def test_what_was_recorded_is_made(library):
    made = exact_normalization.fingerprints(exact_normalization.ours(exact_normalization.LIBRARIES[library].arithmetic))
    assert made == RECORDED[library]["fingerprints"]


def normalized(image, layout="HWC", **arguments):
    """What `fn.crop_mirror_normalize` makes of an image."""
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.crop_mirror_normalize(fn.external_source(name="image", layout=layout), **arguments))
    pipe = Pipeline.deserialize(pipe.serialize())
    pipe.build()
    pipe.feed_input("image", [image])
    return np.asarray(pipe.run()[0].at(0))


@pytest.mark.parametrize("layout", ["HWC", "CHW", "CWH"])
@pytest.mark.parametrize("mirror", [0, 1])
def test_windows_mirrors_and_orders(layout, mirror):
    image = np.random.default_rng(1).integers(0, 256, (9, 12, 3), np.uint8)
    mean, std = np.float32([0.1, 0.2, 0.3]), np.float32([0.4, 0.5, 0.6])
    made = normalized(
        image,
        crop=[4, 5],
        rounding="even",
        mirror=mirror,
        mean=mean.tolist(),
        std=std.tolist(),
        output_layout=layout,
        arithmetic="torchvision",
    )
    expected = ((image.astype(np.float32) / np.float32(255) - mean) / std)[2:6, 4:9][:, :: -1 if mirror else 1]
    np.testing.assert_array_equal(made, expected.transpose(["HWC".index(letter) for letter in layout]))


def test_surplus_channels_and_pixels_outside_are_filled():
    image = np.full((2, 2, 3), 255, np.uint8)
    made = normalized(
        image,
        crop=[2, 5],
        rounding="even",
        out_of_bounds_policy="pad",
        pad_output=True,
        fill_values=7.0,
        arithmetic="transformers-fast",
    )
    expected = np.full((4, 2, 5), 7, np.float32)
    # A window that is three pixels wider begins one pixel before the image, as in torchvision.
    expected[:3, :, 1:3] = 1
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arithmetic": "torch"}, "argument `arithmetic` is `torch`, expected `dali`, `torchvision`, `torchvision-v2`"),
        (
            {"arithmetic": "torchvision", "scale": 2.0},
            "argument `scale` is DALI's: expected none where `arithmetic` is `torchvision`",
        ),
        (
            {"arithmetic": "transformers-fast", "dtype": types.UINT8},
            "argument `dtype` is uint8, expected float32 or float16",
        ),
    ],
)
def test_what_a_library_does_not_have_is_refused(arguments, says):
    with pytest.raises(RuntimeError, match=says):
        normalized(np.zeros((2, 2, 3), np.uint8), **arguments)


def test_only_bytes_are_normalized():
    with pytest.raises(RuntimeError, match="input of type float32, expected uint8 where `arithmetic` is `torchvision`"):
        normalized(np.zeros((2, 2, 3), np.float32), arithmetic="torchvision")
