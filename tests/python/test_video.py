"""`decoders.video` beside FFmpeg, where the package `av` is installed, and what of it can be had without."""

import io
import pathlib
import sys
from fractions import Fraction

import numpy as np
import pytest
from gesso import Pipeline, fn, types

CLIPS = pathlib.Path(__file__).parents[1] / "data/video"


def decoded(*files, **arguments):
    """The frames of each file."""
    pipe = Pipeline(batch_size=len(files), num_threads=2, device_id=None)
    with pipe:
        x = fn.external_source(source=lambda: [np.frombuffer(file, np.uint8) for file in files], dtype=types.UINT8)
        pipe.set_outputs(fn.decoders.video(x, **arguments))
    pipe.build()
    (out,) = pipe.run()
    return [np.array(out[i]) for i in range(len(files))]


def clip(name):
    return (CLIPS / name).read_bytes()


def test_videos_of_several_codecs_and_sizes_in_one_batch():
    a, b, c = decoded(clip("h264.mp4"), clip("vp9_odd_bt709.webm"), clip("av1.mp4"), frames=[0, 7, 0])
    assert (a.shape, b.shape, c.shape) == ((3, 32, 48, 3), (3, 29, 35, 3), (3, 64, 64, 3))
    for frames in (a, b, c):
        assert (frames[0] == frames[2]).all() and (frames[0] != frames[1]).any()


def test_the_older_name_is_the_same():
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        x = fn.external_source(source=lambda: [np.frombuffer(clip("h265.mp4"), np.uint8)], dtype=types.UINT8)
        pipe.set_outputs(fn.experimental.decoders.video(x))
    pipe.build()
    assert (np.array(pipe.run()[0][0]) == decoded(clip("h265.mp4"))[0]).all()


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"frames": [1], "stride": 2}, "both `frames` and `stride`"),
        ({"end_frame": 3, "sequence_length": 2}, "both `end_frame` and `sequence_length`"),
        ({"start_frame": 12}, "`start_frame` is 12, but the video has 12 frames"),
        ({"start_frame": 4, "end_frame": 4}, "`end_frame` is 4, expected more than `start_frame`"),
        ({"stride": 0}, "`stride` is 0"),
        ({"sequence_length": -1}, "`sequence_length` is -1"),
        ({"sequence_length": 1 << 30}, "larger than the limit"),
        ({"frames": [12], "pad_mode": "none"}, "frame 12 of a video of 12 frames"),
        ({"pad_mode": "other"}, "`pad_mode` is `other`"),
        ({"fill_value": [1, 2]}, "expected 1 or 3 values"),
        ({"fill_value": 256}, "expected 1 or 3 values"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments, said):
    with pytest.raises(Exception, match="decoders__Video") as error:
        decoded(clip("h264.mp4"), **arguments)
    assert said in str(error.value)


def encoded(av, codec, pixels, options, size, count, container="mp4"):
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(codec, rate=30, options=options)
        stream.width, stream.height, stream.pix_fmt = *size, pixels
        y, x = np.mgrid[0 : size[1], 0 : size[0]]
        for i in range(count):
            picture = (np.stack([x + 3 * i, y - 2 * i, x + y], -1) * (1 + i // 20) % 256).astype(np.uint8)
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=pixels)
            frame.pts, frame.time_base = i, Fraction(1, 30)
            file.mux(stream.encode(frame))
        file.mux(stream.encode())
    return out.getvalue()


@pytest.mark.parametrize(
    "codec, pixels, options",
    [
        ("libx264", "yuv420p", {"g": "20", "bf": "3", "refs": "4", "preset": "slow"}),
        ("libx264", "yuv422p", {"g": "9", "profile": "high422"}),
        ("libx265", "yuv420p", {"x265-params": "keyint=15:log-level=none"}),
        ("libvpx-vp9", "yuv444p", {"g": "16", "crf": "30", "b": "0", "cpu-used": "5"}),
        ("libsvtav1", "yuv420p10le", {"g": "16", "crf": "40", "preset": "10"}),
    ],
)
def test_frames_anywhere_are_ffmpegs(codec, pixels, options):
    av = pytest.importorskip("av")
    if codec not in av.codecs_available:
        pytest.skip(codec)
    file = encoded(av, codec, pixels, options, (128, 96), 60)
    sys.path.insert(0, str(CLIPS))
    from make import rgb

    with av.open(io.BytesIO(file)) as opened:
        theirs = [rgb(frame, 0.299, 0.114) for frame in opened.decode(video=0)]
    assert len(theirs) == 60
    wanted = [59, 0, 31, 30, 7, 7, 44]
    (ours,) = decoded(file, frames=wanted)
    for mine, frame in zip(ours, wanted):
        np.testing.assert_array_equal(mine, theirs[frame], err_msg=f"frame {frame}")
