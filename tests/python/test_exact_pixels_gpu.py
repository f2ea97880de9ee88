"""`arithmetic` on a GPU: every byte is that of the CPU, which `test_exact_pixels.py` compares with the libraries, and
of what was recorded of these. Skipped without a GPU. $GESSO_EXACT_CASES says how many random cases each arithmetic
has."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from gesso._native import engine as _engine

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

import exact_normalization
import exact_pixels

CASES = int(os.environ.get("GESSO_EXACT_CASES", "1000"))
BATCH = 50
ARITHMETICS = [library.name for library in exact_pixels.OF_BYTES]
FILTERS = {library.name: library.filters for library in exact_pixels.OF_BYTES}


def outputs(images, define, inputs=None, devices=("cpu", "gpu")):
    """What `define` makes of a batch of images and other inputs on each device."""
    made = []
    for device in devices:
        pipe = Pipeline(batch_size=len(images), num_threads=4, device_id=0, seed=3)
        with pipe:
            given = fn.external_source(name="images", layout="HWC", dtype=types.UINT8, ndim=3)
            others = {name: fn.external_source(name=name, dtype=types.FLOAT, ndim=1) for name in inputs or {}}
            pipe.set_outputs(define(given.gpu() if device == "gpu" else given, **others))
        pipe.build()
        pipe.feed_input("images", images)
        for name, values in (inputs or {}).items():
            pipe.feed_input(name, [np.array(value, np.float32) for value in values])
        (batch,) = pipe.run()
        batch = batch.as_cpu() if device == "gpu" else batch
        made.append([np.asarray(batch.at(i)) for i in range(len(images))])
    return made


def assert_equal(on_cpu, on_gpu, cases):
    assert len(on_cpu) == len(on_gpu) == len(cases)
    differ = [str(case) for case, a, b in zip(cases, on_cpu, on_gpu) if a.shape != b.shape or not np.array_equal(a, b)]
    assert not differ, f"{len(differ)} of {len(cases)} cases differ: {differ[:5]}"


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_what_was_recorded_of_libraries_is_made(arithmetic):
    recorded = json.loads(exact_pixels.RECORDING.read_text())[arithmetic]["fingerprints"]
    assert (
        exact_pixels.fingerprints(exact_pixels.LIBRARIES[arithmetic], lambda case: exact_pixels.ours(case, "gpu"))
        == recorded
    )


@pytest.mark.parametrize("library", exact_normalization.LIBRARIES)
def test_what_was_recorded_of_normalization_is_made(library):
    recorded = json.loads(exact_normalization.RECORDING.read_text())[library]["fingerprints"]
    assert (
        exact_normalization.fingerprints(
            exact_normalization.ours(exact_normalization.LIBRARIES[library].arithmetic, "gpu")
        )
        == recorded
    )


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_random_resizes(arithmetic):
    """Ragged batches: each image has its own size, channels and region."""
    library = exact_pixels.LIBRARIES[arithmetic]
    filters = {name: [] for name in FILTERS[arithmetic]}
    for number in range(CASES):
        case = exact_pixels.Case(library, 77, number)
        filters[case.filter].append(case)
    for name, cases in filters.items():
        for first in range(0, len(cases), BATCH):
            batch = cases[first : first + BATCH]
            boxes = [case.box or [0, 0, *case.image.shape[:2]] for case in batch]
            inputs = {
                "size": [case.size for case in batch],
                "start": [box[:2] for box in boxes],
                "end": [box[2:] for box in boxes],
            }

            def define(images, size, start, end):
                return fn.resize(images, size=size, roi_start=start, roi_end=end, arithmetic=arithmetic, filter=name)

            assert_equal(*outputs([case.image for case in batch], define, inputs), batch)


def photos(count=12):
    numbers = np.random.default_rng(5)
    return [numbers.integers(0, 256, (*numbers.integers(30, 400, 2), 3), np.uint8) for _ in range(count)]


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("mirror", [0, 1, 3])
def test_mirrored_windows(arithmetic, mirror):
    def define(images):
        return fn.resize_crop_mirror(
            images, resize_shorter=80, crop=[70, 64], mirror=mirror, arithmetic=arithmetic, filter="cubic"
        )

    images = photos()
    assert_equal(*outputs(images, define), [image.shape for image in images])


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_random_windows(arithmetic):
    images = photos()
    made = outputs(images, lambda images: fn.random_resized_crop(images, size=[48, 56], seed=5, arithmetic=arithmetic))
    assert_equal(*made, [image.shape for image in images])


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_planes_and_sequences(arithmetic):
    images = photos(4)
    planes = outputs(
        images, lambda images: fn.resize(fn.transpose(images, perm=[2, 0, 1]), size=[40, 60], arithmetic=arithmetic)
    )
    assert_equal(*planes, [image.shape for image in images])
    frames = outputs(
        images, lambda images: fn.resize(fn.stack(images, images, axis_name="F"), size=[40, 60], arithmetic=arithmetic)
    )
    assert_equal(*frames, [image.shape for image in images])


def test_images_that_do_not_fit_between_the_passes_together():
    """Groups of images (GROUP_BYTES) share memory."""
    images = [np.random.default_rng(i).integers(0, 256, (9000, 300, 3), np.uint8) for i in range(8)]
    made = outputs(images, lambda images: fn.resize(images, size=[20, 4000], arithmetic="pillow"))
    assert_equal(*made, range(len(images)))


def test_behind_a_decoder_the_whole_image_is_resized():
    """The decoder neither makes the image smaller nor leaves its planes."""
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(photos(1)[0]).resize((1200, 1000), image.BICUBIC).save(file, "JPEG")
    made = []
    for shows in (False, True):
        pipe = Pipeline(batch_size=1, num_threads=1, device_id=0)
        with pipe:
            encoded = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
            decoded = fn.decoders.image(encoded, device="mixed")
            resized = fn.resize(decoded, size=[50, 60], arithmetic="pillow")
            pipe.set_outputs(*((resized, decoded) if shows else (resized,)))
        pipe.build()
        pipe.feed_input("files", [np.frombuffer(file.getvalue(), np.uint8)])
        made.append([np.asarray(output.as_cpu().at(0)) for output in pipe.run()])
    (expected,) = outputs(
        [made[1][1]], lambda images: fn.resize(images, size=[50, 60], arithmetic="pillow"), devices=("cpu",)
    )
    np.testing.assert_array_equal(made[1][0], expected[0])
    np.testing.assert_array_equal(made[0][0], expected[0])


@pytest.mark.parametrize(
    "arguments",
    [
        {"mean": [0.4, 0.5, 0.6], "std": [0.2, 0.3, 0.25]},
        {"crop": [70, 300], "out_of_bounds_policy": "pad", "fill_values": 5.0},
    ],
)
@pytest.mark.parametrize("dtype", [types.FLOAT, types.FLOAT16])
@pytest.mark.parametrize("arithmetic", ["torchvision", "torchvision-v2", "transformers-fast"])
def test_normalization(arithmetic, dtype, arguments):
    for layout in ("CHW", "HWC"):
        images = photos(4)

        def define(images):
            return fn.crop_mirror_normalize(
                images, arithmetic=arithmetic, dtype=dtype, output_layout=layout, mirror=1, pad_output=True, **arguments
            )

        assert_equal(*outputs(images, define), [image.shape for image in images])


@pytest.mark.parametrize("decoder", [{}, {"arithmetic": "pillow"}])
@pytest.mark.parametrize("behind", ["nothing", "normalization"])
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_from_file_to_pixels(arithmetic, behind, decoder):
    """A decoder in front decodes as on the CPU, whatever its arguments say of chroma and engines."""
    image = pytest.importorskip("PIL.Image")
    files = []
    for number, photo in enumerate(photos(40)):
        file = io.BytesIO()
        photo = image.fromarray(photo).resize((320 + number, 240), image.BICUBIC)
        photo.save(file, "JPEG", subsampling=number % 3, quality=70 + number % 20, progressive=number % 7 == 0)
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    made = []
    for device in ("cpu", "mixed"):
        pipe = Pipeline(batch_size=len(files), num_threads=2, device_id=0)
        with pipe:
            decoded = fn.decoders.image(
                fn.external_source(name="files", dtype=types.UINT8, ndim=1), device=device, **decoder
            )
            made_of_it = fn.resize(decoded, size=[100, 90], arithmetic=arithmetic)
            if behind == "normalization":
                made_of_it = fn.crop_mirror_normalize(made_of_it, mean=0.5, std=0.25, arithmetic="torchvision")
            pipe.set_outputs(made_of_it)
        pipe.build()
        pipe.feed_input("files", files)
        (batch,) = pipe.run()
        batch = batch.as_cpu() if device == "mixed" else batch
        made.append([np.asarray(batch.at(i)) for i in range(len(files))])
    assert_equal(*made, range(len(files)))
