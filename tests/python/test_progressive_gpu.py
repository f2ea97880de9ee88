"""Progressive JPEGs on a GPU, alone and beside others, whole and damaged: every pixel is the CPU's. Skipped without a
GPU."""

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types
from gesso._native import engine as _engine

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

SIDES = [(1, 1), (8, 9), (17, 33), (64, 48), (121, 90), (200, 150), (375, 500)]
QUALITIES = [1, 20, 50, 75, 85, 90, 95, 100]
# The host has those of smaller batches, with so many threads.
THREADS = 2
# How often each file of a batch is in one in which images share warps.
MANY = 8


def picture(height, width, channels, seed):
    """A wave, edges and grain."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    wave = np.stack([np.sin(x / 17 + y / 23), np.sin(x / 31 - y / 13), np.cos(x / 41 + y / 7)][:channels], -1)
    edges = ((x // 9 + y // 5) % 7 == 0) * 60
    noise = rng.normal(0, rng.uniform(0, 14), (height, width, channels))
    return (128 + 70 * wave + edges[..., None] + noise).clip(0, 255).astype(np.uint8)


def encoded(images, **options):
    """Files of images, made on the host."""

    @pipeline_def(batch_size=len(images), num_threads=THREADS, device_id=None)
    def pipeline():
        return fn.gesso.encode_jpeg(fn.external_source(name="images", layout="HWC"), **options)

    built = pipeline()
    built.build()
    built.feed_input("images", images)
    (files,) = built.run()
    return [np.array(files[i]) for i in range(len(images))]


def progressive(channels=3, seeds=range(2)):
    """Files of every side, quality and sampling."""
    files = []
    for number, quality in enumerate(QUALITIES):
        for seed in seeds:
            images = [picture(*sides, channels, 10 * seed + number) for sides in SIDES]
            options = {} if channels == 1 else {"subsampling": ("4:4:4", "4:2:0", "4:2:2")[(number + seed) % 3]}
            files += encoded(images, quality=quality, progressive=True, **options)
    return files


def baseline():
    return encoded([picture(*sides, 3, 99) for sides in SIDES], quality=88, subsampling="4:2:0")


def decoded(device, files, resize=False, **options):
    """Images of a batch, with smooth chroma as the CPU has it."""
    pipe = Pipeline(batch_size=len(files), num_threads=THREADS, device_id=0)
    with pipe:
        given = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
        options = {"jpeg_fancy_upsampling": True, **options}
        images = fn.decoders.image(given, device="mixed" if device == "gpu" else "cpu", **options)
        pipe.set_outputs(fn.resize(images, size=[56, 56]) if resize else images)
    pipe.build()
    pipe.feed_input("files", files)
    (batch,) = pipe.run()
    batch = batch.as_cpu() if device == "gpu" else batch
    return [np.array(batch.at(i)) for i in range(len(files))]


def assert_equal(files, times=1, **options):
    """Each file is in the GPU's batch so many times, side by side with any other."""
    expected = decoded("cpu", files, **options)
    order = (
        np.random.default_rng(times).permutation(np.tile(np.arange(len(files)), times))
        if times > 1
        else range(len(files))
    )
    pairs = zip(order, decoded("gpu", [files[i] for i in order], **options), strict=True)
    # The JPEG engines, which the tests leave out, have other pixels.
    differ = [i for i, gpu in pairs if expected[i].shape != gpu.shape or not np.array_equal(expected[i], gpu)]
    assert not differ, f"{len(differ)} of {len(order)} files differ: {differ[:10]}"


@pytest.mark.parametrize("kind", [types.RGB, types.BGR, types.GRAY])
def test_pixels_are_those_of_the_cpu(kind):
    assert_equal(progressive(), output_type=kind)


def test_many_share_warps():
    """So many that several have the instructions of a warp, also with the largest GPUs."""
    assert_equal([*progressive(), *progressive(channels=1, seeds=range(1))], times=MANY)


def test_gray_files_are_those_of_the_cpu():
    assert_equal(progressive(channels=1, seeds=range(1)))


def test_chroma_that_is_repeated_is_that_of_files_that_come_in_one_scan():
    images = [picture(*sides, 3, 8) for sides in SIDES]
    for subsampling in ("4:2:0", "4:2:2"):
        kinds = [encoded(images, subsampling=subsampling, progressive=progressive) for progressive in (True, False)]
        options = {"jpeg_fancy_upsampling": False, "hw_decoder_load": 0.0}
        for one, other in zip(*(decoded("gpu", files, **options) for files in kinds), strict=True):
            np.testing.assert_array_equal(one, other)


def test_files_beside_others_are_those_of_the_cpu():
    files = [*progressive(seeds=range(1)), *baseline() * 4]
    order = np.random.default_rng(5).permutation(len(files))
    assert_equal([files[i] for i in order], hw_decoder_load=0.0)


def test_a_resize_reads_what_the_cpu_decodes():
    """From planes, without pixels in between. The devices' resizes round differently."""
    files = [*progressive(), *baseline()]
    pairs = zip(decoded("cpu", files, resize=True), decoded("gpu", files, resize=True), strict=True)
    differences = [np.abs(cpu.astype(int) - gpu).max() for cpu, gpu in pairs]
    assert max(differences) <= 1


def damaged(file, rng):
    """`file` with other codes in one of its scans."""
    file = file.copy()
    # Behind the header of the first scan, and before the last marker.
    first = file.tobytes().index(b"\xff\xda") + 14
    for at in rng.integers(first, max(first, len(file) - 2) + 1, 3):
        # No byte of a marker.
        if at < len(file) - 2 and 0 < file[at] < 0xFF and file[at - 1] != 0xFF:
            file[at] = rng.integers(1, 0xFF)
    return file


@pytest.mark.parametrize("times", [1, MANY])
@pytest.mark.parametrize("seed", range(4))
def test_damage_stays_with_its_file(seed, times):
    """Codes that are changed: the file gets the CPU's answer, and the others keep theirs."""
    rng, files, failed = np.random.default_rng(seed), [*progressive(seeds=range(1)), *baseline()], []
    for i in range(seed % 2, len(files), 3):
        file = damaged(files[i], rng)
        try:
            decoded("cpu", [file])
            files[i] = file
        except RuntimeError:
            failed.append(file)
    assert_equal(files, times, hw_decoder_load=0.0)
    # What the CPU refuses is refused, whatever is beside it.
    for file in failed[:3]:
        with pytest.raises(RuntimeError):
            decoded("gpu", [*files, file])
