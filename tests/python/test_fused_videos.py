"""A video decoder and the resize behind it are one operator where nobody else sees the decoded frames: the same pixels,
the same failures."""

import random
from pathlib import Path

import numpy as np
import pytest
from gesso import Pipeline, fn, types
from test_fused import arguments

VIDEOS = sorted((Path(__file__).parents[1] / "data" / "video").glob("*.*"))
VIDEOS = [path for path in VIDEOS if path.suffix in {".mp4", ".webm", ".mkv", ".ivf", ".mov", ".avi", ".hevc", ".h264"}]


def frames(rng):
    """Any frames: also those that a video does not have, and some more than once."""
    pad = rng.choice(["constant", "edge", "reflect_101", "none"])
    if rng.random() < 0.4:
        listed = [rng.randint(0, 14) for _ in range(rng.randint(1, 6))]
        return {"frames": listed, "pad_mode": pad if pad != "none" else "edge", "fill_value": [200, 100, 7]}
    made = {"start_frame": rng.randint(0, 6), "stride": rng.randint(1, 3), "sequence_length": rng.randint(1, 7)}
    return made | {"pad_mode": pad, "fill_value": [rng.randint(0, 255)]}


def answer(file, asked, made, apart):
    """What comes of it, with the frames as another output if they are to be seen; or why nothing does."""
    pipe = Pipeline(batch_size=2, num_threads=2, device_id=None)
    with pipe:
        video = fn.decoders.video(fn.external_source(name="files", dtype=types.UINT8, ndim=1), **asked)
        resized = fn.resize(video, **made)
        pipe.set_outputs(*([resized, video] if apart else [resized]))
    pipe.build()
    pipe.feed_input("files", [file, file])
    try:
        found = pipe.run()[0]
    except RuntimeError as error:
        return str(error).rsplit("operator", 1)[-1].splitlines()[0]
    return [np.array(found.at(i)) for i in range(2)]


def same(one, other, what):
    assert type(one) is type(other), f"{what}: {one}, {other}"
    if isinstance(one, str):
        assert one == other, what
        return
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=what)


@pytest.mark.parametrize("path", VIDEOS, ids=lambda path: path.name)
def test_the_same_pixels(path):
    rng = random.Random(path.name)
    file = np.fromfile(path, np.uint8)
    for _ in range(6):
        asked, made = frames(rng), arguments(rng)
        fused, apart = (answer(file, asked, made, seen) for seen in (False, True))
        same(fused, apart, f"{path.name} {asked} {made}")


@pytest.mark.parametrize("seed", range(40))
def test_the_same_failures(seed):
    rng = random.Random(seed)
    file = np.fromfile(rng.choice(VIDEOS), np.uint8)
    for _ in range(rng.randint(1, 4)):
        file[rng.randint(0, len(file) - 1)] = rng.randint(0, 255)
    if rng.random() < 0.3:
        file = file[: rng.randint(1, len(file))]
    asked, made = frames(rng), arguments(rng)
    fused, apart = (answer(file, asked, made, seen) for seen in (False, True))
    same(fused, apart, f"{asked} {made}")
