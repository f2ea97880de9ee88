"""`fn.gesso.encode_jpeg`, `encode_png` and `encode_webp` beside Pillow; `color_management` of decoders; files of
`gesso run`."""

import io

import numpy as np
import pytest
from gesso import fn, pipeline_def
from gesso._native import engine as _engine
from PIL import Image

SHAPES = [(64, 80, 3), (33, 17, 3), (1, 1, 3), (130, 7, 3)]


def pictures(channels=3, dtype=np.uint8):
    random = np.random.default_rng(3)
    top = np.iinfo(dtype).max + 1
    for height, width, _ in SHAPES:
        ramp = np.add.outer(np.arange(height), np.arange(width))[..., None] * np.arange(1, channels + 1)
        yield ((ramp * 3 + random.integers(0, 20, ramp.shape)) % top).astype(dtype)


def encoded(name, images, **arguments):
    @pipeline_def(batch_size=len(images), num_threads=2, device_id=None)
    def pipeline():
        given = {
            key: fn.external_source(name=key, batch=True) if key == "quality" else value
            for key, value in arguments.items()
        }
        return getattr(fn.gesso, name)(fn.external_source(name="images", layout="HWC"), **given)

    built = pipeline()
    built.build()
    built.feed_input("images", list(images))
    if "quality" in arguments:
        built.feed_input("quality", arguments["quality"])
    (files,) = built.run()
    return [np.asarray(files[i]).tobytes() for i in range(len(images))]


def opened(file):
    image = Image.open(io.BytesIO(file))
    image.load()
    return image


@pytest.mark.parametrize("subsampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("settings", [{}, {"optimize": True}, {"progressive": True}])
def test_jpegs_are_what_pillow_writes_too(subsampling, settings):
    images = list(pictures())
    qualities = np.array([5, 50, 90, 100], np.int32)
    for image, quality, file in zip(
        images,
        qualities,
        encoded("encode_jpeg", images, quality=qualities, subsampling=subsampling, **settings),
        strict=True,
    ):
        found = opened(file)
        assert (found.format, found.size) == ("JPEG", image.shape[1::-1])
        assert bool(found.info.get("progressive")) == settings.get("progressive", False)
        expected = io.BytesIO()
        Image.fromarray(image).save(expected, "JPEG", quality=int(quality), subsampling=subsampling, **settings)
        # The same library: equal coefficients, so equal pixels.
        assert np.array_equal(np.asarray(found), np.asarray(opened(expected.getvalue())))


@pytest.mark.parametrize("channels, mode", [(1, "L"), (2, "LA"), (3, "RGB"), (4, "RGBA")])
@pytest.mark.parametrize("level", [0, 1, 9])
def test_pngs_have_every_pixel(channels, mode, level):
    images = list(pictures(channels))
    for image, file in zip(images, encoded("encode_png", images, compression_level=level), strict=True):
        found = opened(file)
        assert (found.format, found.mode) == ("PNG", mode)
        assert np.array_equal(np.asarray(found).reshape(image.shape), image)


def test_wide_grays_stay_wide():
    images = list(pictures(1, np.uint16))
    for image, file in zip(images, encoded("encode_png", images), strict=True):
        assert np.array_equal(np.asarray(opened(file)), image[..., 0])


@pytest.mark.parametrize("channels", [3, 4])
def test_webps_are_read_by_pillow(channels):
    images = list(pictures(channels))
    for image, file in zip(images, encoded("encode_webp", images, lossless=True), strict=True):
        assert np.array_equal(np.asarray(opened(file).convert("RGBA"))[..., :channels], image)
    for image, file in zip(images, encoded("encode_webp", images, quality=[0.0, 50.0, 75.0, 100.0]), strict=True):
        found = opened(file)
        assert (found.format, found.size) == ("WEBP", image.shape[1::-1])


def test_an_image_that_no_file_can_be_is_an_error():
    with pytest.raises(RuntimeError, match="2 channels cannot be a JPEG"):
        encoded("encode_jpeg", list(pictures(2)))
    with pytest.raises(RuntimeError, match="`quality` is 0, expected 1 to 100"):
        encoded("encode_jpeg", list(pictures()), quality=np.array([1, 0, 1, 1], np.int32))


def test_photos_of_another_colour_space_are_converted():
    with np.load(__file__.replace("python/test_encoders.py", "data/decode/profiles.npz")) as archive:
        file, expected = archive["jpeg_p3"], archive["jpeg_p3_srgb"]

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        files = fn.external_source(name="files")
        whole = fn.decoders.image(files, color_management="srgb")
        part = fn.decoders.image_crop(files, crop=(6, 8), crop_pos_x=0.0, crop_pos_y=0.0, color_management="srgb")
        return whole, part, fn.decoders.image(files)

    built = pipeline()
    built.build()
    built.feed_input("files", [file])
    whole, part, own = (np.asarray(output[0]).astype(int) for output in built.run())
    assert abs(whole - expected).max() <= 2 < abs(own - expected).max()
    assert np.array_equal(part, whole[:6, :8])


@pytest.mark.skipif(not _engine.has_gpu(), reason="no GPU")
def test_a_gpu_has_the_colours_of_the_host():
    with np.load(__file__.replace("python/test_encoders.py", "data/decode/profiles.npz")) as archive:
        files = [archive[name] for name in ("jpeg_p3", "png_p3", "jpeg_none", "jpeg_gray", "webp_p3")]

    def pixels(device):
        @pipeline_def(batch_size=len(files), num_threads=2, device_id=0)
        def pipeline():
            encoded = fn.external_source(name="files")
            settings = {"color_management": "srgb", "jpeg_fancy_upsampling": True}
            images = fn.decoders.image(encoded, device=device, **settings)
            return images, fn.resize(images, size=[20, 20])

        built = pipeline()
        built.build()
        built.feed_input("files", files)
        outputs = [batch.as_cpu() if device == "mixed" else batch for batch in built.run()]
        return [np.asarray(batch[i]).astype(int) for batch in outputs for i in range(len(files))]

    for host, device in zip(pixels("cpu"), pixels("mixed"), strict=True):
        assert host.shape == device.shape and abs(host - device).max() <= 2
