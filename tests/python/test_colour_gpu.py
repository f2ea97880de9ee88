"""Colours of files' profiles on a GPU, by a table, beside the CPU's. Skipped without a GPU."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, pipeline_def, types
from gesso._native import engine as _engine

if not _engine.has_gpu():
    pytest.skip("no GPU", allow_module_level=True)

# Made by tests/data/decode/make_profiles.py and make_heif.py, which say how.
DATA = Path(__file__).parents[1] / "data" / "decode"
PROFILES, HEIF = np.load(DATA / "profiles.npz"), np.load(DATA / "heif.npz")


def profile(name):
    """The ICC profile of a file: of a PNG's chunk, or a JPEG's segments."""
    data = PROFILES[name].tobytes()
    if name.startswith("png"):
        at = data.index(b"iCCP") + 4
        return zlib.decompress(data[data.index(b"\0", at) + 2 :])
    at = data.index(b"ICC_PROFILE\0")
    (length,) = struct.unpack(">H", data[at - 2 : at])
    return data[at + 14 : at - 2 + length]


def with_profile(file, icc):
    """A JPEG with a profile, in segments of 60,000 bytes."""
    parts = [icc[i : i + 60_000] for i in range(0, len(icc), 60_000)]
    segments = b""
    for number, part in enumerate(parts, 1):
        body = b"ICC_PROFILE\0" + bytes([number, len(parts)]) + part
        segments += b"\xff\xe2" + struct.pack(">H", len(body) + 2) + body
    data = file.tobytes()
    return np.frombuffer(data[:2] + segments + data[2:], np.uint8)


def pictures():
    """Every colour, in steps, and noise; encoded without halved chroma."""
    rng = np.random.default_rng(5)
    levels = np.arange(0, 256, 15, dtype=np.uint8)
    steps = np.stack(np.meshgrid(levels, levels, levels), -1).reshape(-1, 18 * 18, 3)
    images = [np.repeat(steps, 4, 0), rng.integers(0, 256, (64, 96, 3), np.uint8)]

    @pipeline_def(batch_size=len(images), num_threads=2, device_id=None)
    def encode():
        given = fn.external_source(name="images", layout="HWC")
        return fn.gesso.encode_jpeg(given, quality=95, subsampling="4:4:4")

    built = encode()
    built.build()
    built.feed_input("images", images)
    (files,) = built.run()
    return [np.array(files[i]) for i in range(len(images))]


def decoded(device, files, resize=False, **options):
    pipe = Pipeline(batch_size=len(files), num_threads=2, device_id=0)
    with pipe:
        given = fn.external_source(name="files", dtype=types.UINT8, ndim=1)
        options = {"color_management": "srgb", "jpeg_fancy_upsampling": True, **options}
        images = fn.decoders.image(given, device="mixed" if device == "gpu" else "cpu", **options)
        pipe.set_outputs(fn.resize(images, size=[40, 40]) if resize else images)
    pipe.build()
    for _ in range(2):
        pipe.feed_input("files", files)
    (batch,) = pipe.run()
    batch = batch.as_cpu() if device == "gpu" else batch
    return [np.array(batch.at(i)).astype(np.float32) for i in range(len(files))]


def assert_near(files, most=2, usual=0.1, **options):
    for i, (cpu, gpu) in enumerate(
        zip(decoded("cpu", files, **options), decoded("gpu", files, **options), strict=True)
    ):
        assert cpu.shape == gpu.shape
        off = np.abs(cpu - gpu)
        assert off.max() <= most and off.mean() < usual, f"file {i}: {off.max()} at most, {off.mean()} on average"


@pytest.mark.parametrize("name", ["png_p3", "png_wide", "png_table", "jpeg_p3"])
@pytest.mark.parametrize("resize", [False, True])
def test_jpegs(name, resize):
    # Between the corners of a profile's own table light bends. Where a colour of sRGB is nearly none, a little light is
    # many levels.
    most, usual = (32, 0.5) if name == "png_table" else (2, 0.1)
    assert_near([with_profile(file, profile(name)) for file in pictures()], most, usual, resize=resize)


def test_files_beside_others():
    """Profiles that differ, none, one that is damaged, grays, other formats."""
    plain = pictures()
    files = [with_profile(plain[0], profile("jpeg_p3")), plain[1], with_profile(plain[1], profile("png_wide"))]
    files += [PROFILES[name] for name in ("jpeg_gray", "jpeg_none", "png_p3", "webp_p3")]
    assert_near(files)


def test_what_is_not_rgb_is_the_cpus():
    files = [with_profile(file, profile("png_p3")) for file in pictures()]
    for kind in (types.GRAY, types.BGR):
        cpu, gpu = (decoded(device, files, output_type=kind) for device in ("cpu", "gpu"))
        assert all(np.array_equal(one, other) for one, other in zip(cpu, gpu, strict=True))
    assert_near(files, output_type=types.YCbCr)


def test_photos_of_phones():
    """HEIC whose container says Display P3."""
    files = []
    for name in ("heic_tiles", "heic_tiles_turned"):
        data = HEIF[name].tobytes()
        assert b"nclx\x00\x01\x00\x0d" in data
        files.append(np.frombuffer(data.replace(b"nclx\x00\x01\x00\x0d", b"nclx\x00\x0c\x00\x0d"), np.uint8))
    assert_near(files)
    plain = decoded("gpu", files, color_management=None)
    assert np.abs(plain[0] - decoded("gpu", files)[0]).max() > 10


def test_more_profiles_than_are_kept():
    """Each file has another profile: the last bytes, which nothing reads, differ."""
    file = pictures()[1]
    files = [with_profile(file, profile("png_p3") + bytes([number])) for number in range(40)]
    assert_near(files)
