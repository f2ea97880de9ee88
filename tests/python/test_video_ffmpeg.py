"""Videos by the FFmpeg in the package `av` beside Gesso's own decoders: the same pixels, errors of damaged files. Each
in a process of its own, as a process looks for FFmpeg once."""

import hashlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

CLIPS = pathlib.Path(__file__).parents[1] / "data/video"
found = importlib.util.find_spec("av")
LIBRARIES = found and pathlib.Path(found.origin).parents[1] / "av.libs"
needs_av = pytest.mark.skipif(
    not LIBRARIES or not list(LIBRARIES.glob("libavcodec*")), reason="the package `av` with FFmpeg's libraries"
)
#: Prints what becomes of each file: the sum over its frames, or the error.
PROGRAM = """
import hashlib, json, sys
import numpy as np
from gesso import Pipeline, fn, types

answers = {}
for path in sys.argv[1:]:
    file = np.fromfile(path, np.uint8)
    pipe = Pipeline(batch_size=1, num_threads=2, device_id=None)
    with pipe:
        videos = fn.external_source(source=lambda: [file], dtype=types.UINT8)
        pipe.set_outputs(fn.decoders.video(videos))
    pipe.build()
    try:
        answers[path] = hashlib.sha256(np.array(pipe.run()[0][0]).tobytes()).hexdigest()
    except RuntimeError as error:
        answers[path] = f"error: {error}"
print(json.dumps(answers))
"""


def decoded(ffmpeg, *paths):
    """What a process makes of files that has this FFmpeg."""
    environment = {**os.environ, "GESSO_FFMPEG": str(ffmpeg)}
    command = [sys.executable, "-c", PROGRAM, *map(str, paths)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@needs_av
def test_pixels_are_those_of_the_own_decoders():
    paths = [CLIPS / name for name in json.loads((CLIPS / "index.json").read_text())]
    by_ffmpeg, own = decoded(LIBRARIES, *paths), decoded("off", *paths)
    assert by_ffmpeg == own
    assert not [answer for answer in own.values() if answer.startswith("error")]


@needs_av
def test_mpeg4_is_decoded_and_needs_ffmpeg():
    import av

    sys.path.insert(0, str(CLIPS))
    from make import rgb

    paths = [CLIPS / f"mpeg4/mpeg4.{ending}" for ending in ("mp4", "mkv", "avi")]
    with av.open(str(paths[0])) as file:
        file.streams.video[0].codec_context.flags |= 1 << 23  # the transform that is the same on every machine
        frames = np.stack([rgb(frame, 0.299, 0.114) for frame in file.decode(video=0)])
    expected = hashlib.sha256(frames.tobytes()).hexdigest()
    assert set(decoded(LIBRARIES, *paths).values()) == {expected}
    assert all(
        "MPEG-4 Part 2 is decoded by an installed FFmpeg" in answer for answer in decoded("off", *paths).values()
    )


@needs_av
def test_a_damaged_frame_is_an_error(tmp_path):
    file = bytearray((CLIPS / "h264.mp4").read_bytes())
    at = file.index(b"mdat") + 1_200
    file[at : at + 200] = bytes([255]) * 200
    path = tmp_path / "damaged.mp4"
    path.write_bytes(file)
    for ffmpeg in (LIBRARIES, "off"):
        (answer,) = decoded(ffmpeg, path).values()
        assert "cannot be decoded" in answer, answer


def test_a_folder_without_ffmpeg_leaves_the_own_decoders(tmp_path):
    path = CLIPS / "h264.mp4"
    (tmp_path / "libavcodec.so.61").write_bytes(b"no library")
    assert decoded(tmp_path, path) == decoded(tmp_path / "nowhere", path) == decoded("off", path)
