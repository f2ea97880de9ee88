"""Stages in front of vision-language models on a GPU (`device="mixed"`): the recorded answers of transformers that
`test_multimodal.py` has on a CPU. Skipped without a GPU."""

import zlib

import numpy as np
import pytest
from gesso import Pipeline, convert, fn, types
from gesso._comparison.compare import runner
from gesso._native import engine as _engine

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

from test_multimodal import ANSWERS, BY, DATA, definitions

# Single pixels, thin images, tiles alone and several, a photo.
SIZES = ("1x1", "150x1", "13x14", "200x300", "448x448", "770x1010", "1080x1920", "4000x60")


@pytest.mark.parametrize(("name", "backend"), BY)
def test_images_become_the_same_on_a_gpu(name, backend):
    made = convert.transformers(definitions.PROCESSORS[name], backend=backend, pillow="pillow", device="mixed")
    run = runner(made())
    answers = ANSWERS[f"{name} {backend}"]
    for size in (size for size in SIZES if "error" not in answers[size]):
        height, width = map(int, size.split("x"))
        file = np.frombuffer(definitions.as_file(definitions.picture(height, width)), np.uint8)
        found = dict(zip((made.stage.output, *made.stage.extras), run(file), strict=True))
        for output, value in found.items():
            checksum = zlib.crc32(np.ascontiguousarray(value).tobytes())
            assert checksum == answers[size][output][2], (size, output)


@pytest.mark.parametrize("name", definitions.VIDEOS)
def test_frames_and_grids_of_videos_are_the_same_on_a_gpu(name):
    made = convert.transformers(definitions.VIDEOS[name], device="mixed")
    run = runner(made())
    for clip in ("h264.mp4", "large_h264.mp4"):
        pixels, grid, times = run(np.fromfile(DATA.parent / "video" / clip, np.uint8))
        answer = ANSWERS[name][clip]
        assert list(pixels.shape) == answer["pixel_values_videos"][1]
        for output, value in (("video_grid_thw", grid), ("timestamps", times)):
            assert zlib.crc32(np.ascontiguousarray(value).tobytes()) == answer[output][2], (clip, output)


@pytest.mark.parametrize("side", ["right", "left"])
def test_batches_are_padded_on_a_gpu_as_on_a_cpu(side):
    given = [np.arange(height * width * 3).reshape(height, width, 3) for height, width in ((2, 5), (4, 1), (3, 3))]
    pipe = Pipeline(3, 1, 0, prefetch_queue_depth=1)
    with pipe:
        images = fn.external_source(name="images", layout="HWC", dtype=types.FLOAT, ndim=3)
        on_both = [fn.gesso.pad_to_batch(each, axis_names="HW", side=side, align=4) for each in (images, images.gpu())]
        pipe.set_outputs(*(output for outputs in on_both for output in outputs))
    pixels, masks, *on_gpu = pipe.run(images=[sample.astype(np.float32) for sample in given])
    for host, device in zip((pixels, masks), on_gpu, strict=True):
        device = device.as_cpu()
        for sample in range(len(given)):
            np.testing.assert_array_equal(np.asarray(host.at(sample)), np.asarray(device.at(sample)))


def of_sounds(function, *sounds):
    """What a function makes of a batch of sounds on the host and on a GPU: pairs, one output after the other."""
    pipe = Pipeline(len(sounds), 1, 0, prefetch_queue_depth=1)
    with pipe:
        given = fn.external_source(name="sounds", dtype=types.FLOAT, ndim=1)
        made = [function(each) for each in (given, given.gpu())]
        made = [each if isinstance(each, (list, tuple)) else [each] for each in made]
        pipe.set_outputs(*(output for pair in zip(*made, strict=True) for output in pair))
    outputs = pipe.run(sounds=[np.asarray(sound, np.float32) for sound in sounds])
    for host, device in zip(outputs[::2], outputs[1::2], strict=True):
        device = device.as_cpu()
        yield from ((np.asarray(host.at(i)), np.asarray(device.at(i))) for i in range(len(sounds)))


# Windows of whole tens, of a prime and of more samples than threads share memory for.
@pytest.mark.parametrize(
    ("nfft", "step", "samples"), [(400, 160, 48_000), (400, 160, 0), (401, 100, 0), (2048, 999, 0)]
)
def test_whispers_features_are_the_same_on_a_gpu(nfft, step, samples):
    sounds = [definitions.sound(length) for length in (1, 1601, 30_000)]
    log_mel = lambda sound: fn.gesso.log_mel(sound, nfft=nfft, window_step=step, samples=samples)
    for host, device in of_sounds(log_mel, *sounds):
        np.testing.assert_allclose(device, host, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["log_mel", "seamless_features"])
@pytest.mark.parametrize("value", [np.nan, np.inf, np.finfo(np.float32).max])
def test_sounds_without_features_are_errors_on_a_gpu(name, value):
    pipe = Pipeline(1, 1, 0, prefetch_queue_depth=1)
    with pipe:
        given = fn.external_source(name="sounds", dtype=types.FLOAT, ndim=1)
        made = getattr(fn.gesso, name)(given.gpu())
        pipe.set_outputs(*(made if isinstance(made, (list, tuple)) else [made]))
    with pytest.raises(RuntimeError, match="no numbers or too large"):
        pipe.run(sounds=[np.full(999, value, np.float32)])


def test_variances_are_the_same_on_a_gpu_to_the_bit():
    for host, device in of_sounds(fn.gesso.unit_variance, *map(definitions.sound, (1, 7, 129, 270, 9001, 100_000))):
        np.testing.assert_array_equal(device, host)


@pytest.mark.parametrize("stride", [2, 3])
def test_features_of_seamless_are_the_same_on_a_gpu(stride):
    seamless = lambda sound: fn.gesso.seamless_features(sound, stride=stride)
    for host, device in of_sounds(seamless, *map(definitions.sound, (560, 720, 30_000))):
        np.testing.assert_allclose(device, host, rtol=0, atol=1e-5)
