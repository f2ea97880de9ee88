"""Clips of every codec, encoded here in random ways, beside FFmpeg's frames of them (the package `av`).

A few as a rule; `GESSO_VIDEO_CLIPS=240` tries as many, `GESSO_VIDEO_SEED=7` others. Planes are compared through the
conversion of `make.py`, which is another one than the library's; Motion JPEG, whose inverse transform is another than
FFmpeg's, may be four levels off."""

import io
import os
import pathlib
import random
import sys
from fractions import Fraction

import numpy as np
import pytest
from gesso import Pipeline, fn, types

av = pytest.importorskip("av")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "data/video"))
from make import picture, rgb  # noqa: E402

CLIPS = int(os.environ.get("GESSO_VIDEO_CLIPS", 16))
SEED = int(os.environ.get("GESSO_VIDEO_SEED", 1))
#: Clips that are drawn until one can be encoded.
DRAWS = 8
#: Levels that Motion JPEG may be off, between transforms of its blocks and between ways of smoothing chroma.
JPEG_LEVELS = 4


def x264(draw):
    pixels = draw.choice(["yuv420p", "yuv420p", "yuv420p10le", "yuv422p"])
    more = [
        f"bframes={draw.randrange(4)}",
        f"b-pyramid={draw.randrange(3)}",
        f"ref={draw.randrange(1, 5)}",
        f"open-gop={draw.randrange(2)}",
        f"cabac={draw.randrange(2)}",
        f"8x8dct={draw.randrange(2)}",
        f"weightp={draw.randrange(3)}",
        f"slices={draw.randrange(1, 4)}",
        f"interlaced={int(draw.random() < 0.25)}",
        f"deblock={draw.randrange(-2, 3)},{draw.randrange(-2, 3)}",
        "threads=1",
    ]
    return {
        "pixels": pixels,
        "crf": str(draw.choice([12, 24, 38])),
        "g": str(draw.choice([1, 5, 12])),
        "x264-params": ":".join(more),
    }


def x265(draw):
    # With hashes of the encoder's pictures, by which FFmpeg checks its own.
    more = [
        f"keyint={draw.choice([3, 8, 20])}",
        f"bframes={draw.randrange(4)}",
        f"open-gop={draw.randrange(2)}",
        f"ref={draw.randrange(1, 4)}",
        f"sao={draw.randrange(2)}",
        f"amp={draw.randrange(2)}",
        f"ctu={draw.choice([16, 32, 64])}",
        f"weightp={draw.randrange(2)}",
        f"tskip={draw.randrange(2)}",
        "pools=1",
        "frame-threads=1",
        "log-level=none",
        "info=0",
        "hash=1",
    ]
    return {
        "pixels": draw.choice(["yuv420p", "yuv420p10le"]),
        "crf": str(draw.choice([14, 26, 38])),
        "x265-params": ":".join(more),
    }


def vp8(draw):
    return {
        "pixels": "yuv420p",
        "crf": str(draw.choice([4, 10, 30, 63])),
        "b": draw.choice(["50k", "300k", "3M"]),
        "g": str(draw.choice([1, 5, 30])),
        "profile:v": str(draw.randrange(4)),
        "auto-alt-ref": str(draw.randrange(2)),
        "lag-in-frames": str(draw.choice([0, 5, 16])),
        "error-resilient": str(draw.randrange(4)),
        "slices": str(draw.choice([1, 2, 4, 8])),
        "sharpness": str(draw.randrange(8)),
        "static-thresh": str(draw.choice([0, 100, 1000])),
        "cpu-used": str(draw.choice([-4, 0, 4, 8])),
        "noise-sensitivity": str(draw.choice([0, 3])),
        "threads": "1",
        "deadline": draw.choice(["good", "realtime"]),
    }


def vp9(draw):
    return {
        "pixels": draw.choice(["yuv420p", "yuv420p", "yuv422p", "yuv444p"]),
        "crf": str(draw.choice([8, 24, 50])),
        "b": "0",
        "g": str(draw.choice([1, 5, 30])),
        "auto-alt-ref": str(draw.randrange(2)),
        "lag-in-frames": str(draw.choice([0, 8])),
        "error-resilient": str(draw.randrange(2)),
        "tile-columns": str(draw.randrange(3)),
        "frame-parallel": str(draw.randrange(2)),
        "aq-mode": str(draw.randrange(4)),
        "cpu-used": str(draw.choice([3, 5, 8])),
        "threads": "1",
    }


def av1(draw):
    return {
        "pixels": draw.choice(["yuv420p", "yuv420p10le"]),
        "crf": str(draw.choice([20, 35, 55])),
        "g": str(draw.choice([4, 12])),
        "preset": str(draw.choice([8, 10, 12])),
    }


def mjpeg(draw):
    return {"pixels": draw.choice(["yuvj420p", "yuvj422p", "yuvj444p"]), "qscale": str(draw.choice([2, 6, 20]))}


#: What makes options, the encoder, containers, the least side.
CODECS = {
    "H.264": (x264, "libx264", ["mp4", "mov", "matroska"], 16),
    "H.265": (x265, "libx265", ["mp4", "mov", "matroska"], 64),
    "VP8": (vp8, "libvpx", ["webm", "ivf", "matroska"], 8),
    "VP9": (vp9, "libvpx-vp9", ["webm", "ivf", "mp4", "matroska"], 8),
    "AV1": (av1, "libsvtav1", ["mp4", "matroska", "webm", "ivf"], 64),
    "Motion JPEG": (mjpeg, "mjpeg", ["avi", "mov", "matroska"], 16),
}


def encoded(draw, kind):
    options, encoder, containers, least = CODECS[kind]
    if encoder not in av.codecs_available:
        pytest.skip(encoder)
    options = options(draw)
    pixels, container = options.pop("pixels"), draw.choice(containers)
    size = [least + draw.randrange(90) for _ in range(2)]
    # Odd sizes where a codec has them of halved chroma, and AV1's encoder none.
    if kind in ("H.264", "H.265", "AV1", "Motion JPEG"):
        size = [side + side % 2 for side in size]
    if "interlaced=1" in options.get("x264-params", ""):
        size[1] += -size[1] % 4
    frames, varies = draw.choice([1, 7, 20]), draw.random() < 0.3 and container not in ("avi", "ivf")
    out, time = io.BytesIO(), 0
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(encoder, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        stream.codec_context.thread_count = 1
        stream.codec_context.color_range = 2 if "yuvj" in pixels else 1
        for i in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(i + draw.randrange(2), *size), format="rgb24").reformat(
                format=pixels
            )
            frame.pts, frame.time_base, frame.color_range = time, Fraction(1, 25), 2 if "yuvj" in pixels else 1
            time += draw.randrange(1, 4) if varies else 1
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return out.getvalue(), f"{kind} {size} {pixels} in {container}, {frames} frames, {options}"


def one_that_is_encoded(draw, kind):
    """The first clip that FFmpeg's encoder and container both take: now and then they do not go together."""
    for _ in range(DRAWS):
        try:
            return encoded(draw, kind)
        except av.error.FFmpegError as error:
            refused = error
    raise refused


def theirs(file):
    """FFmpeg's frames; and of how many it says itself that they are not the encoder's, by the hashes of H.265. In
    coding tree blocks of 16 it offsets a sample of chroma at the corner of four by one that is not deblocked yet."""
    av.logging.set_level(av.logging.VERBOSE)
    av.logging.set_skip_repeated(False)
    with av.logging.Capture() as log, av.open(io.BytesIO(file)) as opened:
        context = opened.streams.video[0].codec_context
        # FFmpeg's own threads come to a stop with tiny VP8.
        context.thread_count = 1
        context.options = {"err_detect": "crccheck"}
        frames = np.stack([rgb(frame, 0.299, 0.114) for frame in opened.decode(video=0)])
    av.logging.set_level(None)
    return frames, sum("mismatching checksum" in text for _, _, text in log)


def ours(file):
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(
            fn.decoders.video(fn.external_source(source=lambda: [np.frombuffer(file, np.uint8)], dtype=types.UINT8))
        )
    pipe.build()
    return np.array(pipe.run()[0][0])


@pytest.mark.parametrize("number", range(CLIPS))
def test_a_clip_has_ffmpegs_frames(number):
    draw = random.Random(SEED * 100_003 + number)
    kind = list(CODECS)[number % len(CODECS)]
    file, what = one_that_is_encoded(draw, kind)
    (expected, wrong), found = theirs(file), ours(file)
    assert found.shape == expected.shape, what
    differences = np.abs(found.astype(np.int16) - expected).reshape(len(expected), -1).max(1)
    others = (differences > (JPEG_LEVELS if kind == "Motion JPEG" else 0)).sum()
    assert others <= wrong, (
        f"{what}: {others} frames by up to {differences.max()} levels, of which FFmpeg calls {wrong} wrong"
    )
