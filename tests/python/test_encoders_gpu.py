"""`fn.gesso.encode_jpeg` on a GPU: files are those of the host, byte for byte. Skipped without a GPU."""

import itertools

import numpy as np
import pytest
from gesso import Pipeline, fn
from gesso._native import engine as _engine

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

SUBSAMPLINGS = ("4:4:4", "4:2:2", "4:2:0")


def noise(height, width, channels, most=256):
    random = np.random.default_rng([height, width, channels])
    return random.integers(0, most, (height, width, channels)).astype(np.uint8)


def photo(height, width, channels):
    """What has few details, as photos do."""
    ramp = np.add.outer(np.arange(height) * 3, np.arange(width) * 2)[..., None] * np.arange(1, channels + 1)
    return (120 + 110 * np.sin(ramp / 60) + noise(height, width, channels, 20)).clip(0, 255).astype(np.uint8)


def files_of(images, qualities, layout="HWC", **settings):
    """Pairs of the files that the host and the GPU make of images."""
    pipe = Pipeline(len(images), 2, 0, prefetch_queue_depth=1)
    with pipe:
        given = fn.external_source(name="images", layout=layout)
        quality = fn.external_source(name="qualities")
        pipe.set_outputs(*(fn.gesso.encode_jpeg(each, quality=quality, **settings) for each in (given, given.gpu())))
    pipe.build()
    pipe.feed_input("images", images)
    pipe.feed_input("qualities", [np.int32(quality) for quality in qualities])
    on_host, on_gpu = pipe.run()
    on_gpu = on_gpu.as_cpu()
    return [(np.asarray(on_host.at(i)), np.asarray(on_gpu.at(i))) for i in range(len(images))]


def assert_equal(images, qualities, **settings):
    for i, (host, device) in enumerate(files_of(images, qualities, **settings)):
        assert host.size > 100
        np.testing.assert_array_equal(device, host, str((images[i].shape, qualities[i], settings)))


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_files_of_all_sizes_and_qualities_are_the_hosts(subsampling):
    sizes = [*itertools.product((1, 7, 8, 9, 16, 17, 31, 70), (1, 8, 15, 33, 100)), (375, 500), (1080, 1919), (3, 4000)]
    images = [make(*size, channels) for size in sizes for channels in (1, 3) for make in (noise, photo)]
    assert_equal(images, [1 + i * 37 % 100 for i in range(len(images))], subsampling=subsampling)


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_every_quality_and_extreme_pixels(subsampling):
    squares = np.add.outer(np.arange(64) // 8, np.arange(80) // 8)[..., None] + np.arange(3) // 2
    kinds = [noise(64, 80, 3), (squares % 2 * 255).astype(np.uint8), np.zeros((64, 80, 3), np.uint8)]
    kinds.append(255 - kinds[-1])
    for image in kinds:
        assert_equal([image] * 100, range(1, 101), subsampling=subsampling)


def test_gray_images_without_channels():
    for host, device in files_of([noise(30, 41, 1)[..., 0], photo(8, 8, 1)[..., 0]], [80, 90], layout="HW"):
        np.testing.assert_array_equal(device, host)


@pytest.mark.parametrize("settings", [{"optimize": True}, {"progressive": True}])
def test_what_the_host_makes_for_a_gpu(settings):
    assert_equal([photo(50, 60, 3), noise(9, 5, 1)], [75, 100], **settings)


def test_batches_one_after_the_other_have_other_sizes():
    pipe = Pipeline(2, 1, 0, prefetch_queue_depth=1)
    with pipe:
        given = fn.external_source(name="images", layout="HWC")
        pipe.set_outputs(fn.gesso.encode_jpeg(given), fn.gesso.encode_jpeg(given.gpu()))
    pipe.build()
    for side in (300, 5, 120):
        pipe.feed_input("images", [photo(side, side + 9, 3), noise(side, side, 3)])
        host, device = pipe.run()
        device = device.as_cpu()
        for i in range(2):
            np.testing.assert_array_equal(np.asarray(device.at(i)), np.asarray(host.at(i)))


def test_files_are_decoded_and_encoded_on_a_gpu():
    files = [host for host, _ in files_of([photo(200, 300, 3), photo(64, 64, 3)], [90, 95])]
    pipe = Pipeline(2, 1, 0, prefetch_queue_depth=1)
    with pipe:
        encoded = fn.external_source(name="files")
        images = fn.decoders.image(encoded, device="mixed")
        pipe.set_outputs(fn.gesso.encode_jpeg(images, quality=85), images)
    pipe.build()
    pipe.feed_input("files", files)
    again, images = (output.as_cpu() for output in pipe.run())
    pixels = [np.asarray(images.at(i)) for i in range(2)]
    for i, (host, _) in enumerate(files_of(pixels, [85, 85])):
        np.testing.assert_array_equal(np.asarray(again.at(i)), host)


def test_what_no_file_can_be_is_an_error_on_a_gpu():
    with pytest.raises(RuntimeError, match="2 channels cannot be a JPEG"):
        files_of([noise(4, 4, 3), noise(4, 4, 2)], [90, 90])
    with pytest.raises(RuntimeError, match="`quality` is 0, expected 1 to 100"):
        files_of([noise(4, 4, 3)] * 2, [90, 0])
