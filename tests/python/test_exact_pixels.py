"""`arithmetic`: the pixels of Pillow, torchvision and OpenCV, to the bit. What the libraries make was recorded;
`tests/conformance/exact_pixels.py` compares with the libraries themselves."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import exact_pixels

RECORDED = json.loads(exact_pixels.RECORDING.read_text())


@pytest.mark.parametrize("arithmetic", exact_pixels.LIBRARIES)
def test_what_was_recorded_is_made(arithmetic):
    library = exact_pixels.LIBRARIES[arithmetic]
    made = exact_pixels.fingerprints(library, exact_pixels.ours)
    recorded = RECORDED[arithmetic]["fingerprints"]
    assert [image for image, _ in made] == [image for image, _ in recorded], "numpy draws other images"
    differ = [number for number, (ours, theirs) in enumerate(zip(made, recorded, strict=True)) if ours != theirs]
    assert not differ, f"cases {differ} are not those of {RECORDED[arithmetic]['library']}"


def test_live_pillow():
    major = int(Image.__version__.split(".")[0])
    library = exact_pixels.LIBRARIES["pillow13" if major >= 13 else "pillow"]()
    assert exact_pixels.compare(library, 60, 7, exact_pixels.ours)


def outputs(images, define, device="cpu"):
    """What `define` makes of a batch of images."""
    pipe = Pipeline(batch_size=len(images), num_threads=2, device_id=None, seed=3)
    with pipe:
        made = define(fn.external_source(name="images", layout="HWC", dtype=types.UINT8, ndim=3))
        pipe.set_outputs(*(made if isinstance(made, tuple) else [made]))
    pipe = Pipeline.deserialize(pipe.serialize())
    pipe.build()
    pipe.feed_input("images", images)
    return [[np.asarray(output.at(i)) for i in range(len(images))] for output in pipe.run()]


def photo(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


def test_shorter_sides_are_cut_and_the_window_in_the_middle_rounds_to_even():
    image = photo(375, 501)
    (made,) = outputs(
        [image],
        lambda images: fn.resize_crop_mirror(
            images, resize_shorter=256, crop=[255, 224], mirror=1, arithmetic="pillow"
        ),
    )
    width = int(256 * 501 / 375)
    whole = Image.fromarray(image).resize((width, 256), Image.BILINEAR)
    top, left = round((256 - 255) / 2), round((width - 224) / 2)
    expected = np.asarray(whole)[top : top + 255, left : left + 224][:, ::-1]
    np.testing.assert_array_equal(made[0], expected)


def test_a_random_window_is_cut_out_before_it_is_resized():
    image = photo(90, 120)
    windows, made = outputs(
        [image],
        lambda images: (
            fn.cat(*fn.random_crop_generator(fn.shapes(images), seed=5)),
            fn.random_resized_crop(images, size=[40, 50], seed=5, arithmetic="pillow", interp_type=types.INTERP_CUBIC),
        ),
    )
    top, left, height, width = windows[0]
    cut = Image.fromarray(image[top : top + height, left : left + width])
    np.testing.assert_array_equal(made[0], np.asarray(cut.resize((50, 40), Image.BICUBIC)))


def test_planes_and_sequences_are_resized_image_by_image():
    image = photo(33, 44)
    planes, frames = outputs(
        [image],
        lambda images: (
            fn.resize(fn.transpose(images, perm=[2, 0, 1]), size=[20, 60], arithmetic="pillow"),
            fn.resize(fn.stack(images, images, axis_name="F"), size=[20, 60], arithmetic="pillow"),
        ),
    )
    expected = np.asarray(Image.fromarray(image).resize((60, 20), Image.BILINEAR))
    np.testing.assert_array_equal(planes[0].transpose(1, 2, 0), expected)
    np.testing.assert_array_equal(frames[0], [expected, expected])


def test_a_decoder_in_front_does_not_make_the_image_smaller():
    file = io.BytesIO()
    Image.fromarray(photo(100, 100)).resize((1200, 1000), Image.BICUBIC).save(file, "JPEG")
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        decoded = fn.decoders.image(fn.external_source(name="files", dtype=types.UINT8, ndim=1))
        pipe.set_outputs(fn.resize(decoded, size=[50, 60], arithmetic="pillow"), fn.copy(decoded))
    alone = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with alone:
        decoded = fn.decoders.image(fn.external_source(name="files", dtype=types.UINT8, ndim=1))
        alone.set_outputs(fn.resize(decoded, size=[50, 60], arithmetic="pillow"))
    made = []
    for each in (pipe, alone):
        each.build()
        each.feed_input("files", [np.frombuffer(file.getvalue(), np.uint8)])
        made.append([np.asarray(output.at(0)) for output in each.run()])
    expected = np.asarray(Image.fromarray(made[0][1]).resize((60, 50), Image.BILINEAR))
    np.testing.assert_array_equal(made[0][0], expected)
    np.testing.assert_array_equal(made[1][0], expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"arithmetic": "pil"}, "argument `arithmetic` is `pil`, expected `dali`, `pillow`"),
        ({"arithmetic": "opencv", "filter": "lanczos"}, "argument `filter` is `lanczos`, which OpenCV"),
        (
            {"arithmetic": "torchvision", "interp_type": types.INTERP_GAUSSIAN},
            "argument `interp_type` is 5 .Gaussian., which torchvision",
        ),
        ({"filter": "box"}, "argument `filter` is for another `arithmetic` than `dali`"),
        ({"arithmetic": "pillow", "antialias": False}, "argument `antialias` is false: Pillow"),
        ({"arithmetic": "pillow", "dtype": types.FLOAT}, "argument `dtype` is float32: with Pillow's arithmetic"),
        ({"arithmetic": "pillow", "min_filter": types.INTERP_NN}, "argument `min_filter` is DALI's"),
        (
            {"arithmetic": "torchvision", "roi_start": [0.5, 0], "roi_end": [9, 9]},
            "torchvision .* resizes whole pixels inside of the image",
        ),
        (
            {"arithmetic": "pillow", "roi_start": [-1, 0], "roi_end": [9, 9]},
            "Pillow .* resizes regions inside of the image only",
        ),
    ],
)
def test_what_a_library_does_not_have_is_refused(arguments, says):
    with pytest.raises(RuntimeError, match=says):
        outputs([photo(20, 30)], lambda images: fn.resize(images, size=[8, 8], **arguments))


def test_sizes_that_would_be_0_are_refused():
    with pytest.raises(RuntimeError, match="torchvision .* has no images of 0 x 4 pixels"):
        outputs([photo(1, 30)], lambda images: fn.resize(images, resize_longer=4, arithmetic="torchvision"))
