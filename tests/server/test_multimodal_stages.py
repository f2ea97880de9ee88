"""Stages in front of vision-language and speech models, in a real server: requests with files of images, videos and
sounds get the recorded answers of transformers, and a long video comes in parts."""

import json
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tritonclient.grpc as triton
from gesso import convert
from gesso.convert import repository
from harness import ROOT, Server
from recorded import write_model
from test_video_stream import Answers, long_video
from tritonclient.utils import InferenceServerException

DATA = ROOT / "tests" / "data"
sys.path.insert(0, str(DATA / "multimodal"))

import definitions  # noqa: E402

ANSWERS = json.loads((DATA / "multimodal" / "answers.json").read_text())
KINDS = {
    **definitions.PROCESSORS,
    **definitions.VIDEOS,
    **{name: one for name, (one, _) in definitions.EXTRACTORS.items()},
}
IMAGES = ("qwen2-vl", "llava-next", "internvl", "idefics3", "minicpm-v", "pixtral")
VIDEOS = ("qwen2-vl-video", "qwen3-vl-video")
SOUNDS = ("whisper-80", "wav2vec2", "seamless-m4t")
SIZES = ("200x300", "3x5", "333x500", "28x5600", "480x640")
# Requests that come within this time become one batch.
BATCHES = "dynamic_batching { max_queue_delay_microseconds: 50000 }\n"
PART = 4


def program(word):
    """The names of the guide's program with that word."""
    page = (ROOT / "docs" / "guides" / "serve-multimodal.md").read_text()
    (text,) = (part.split("```")[0] for part in page.split("```python\n")[1:] if word in part.split("```")[0])
    names = {}
    exec(text, names)
    return names


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("multimodal")
    for name in (*IMAGES, *VIDEOS, *SOUNDS):
        repository.write(convert.transformers(KINDS[name]), folder / name, "", 8)
        with open(folder / name / "config.pbtxt", "a") as config:
            config.write(BATCHES)
    parts = program("inputs.video")["long_clip"](frames=PART)
    write_model(folder, "long_clip", parts.serialize())
    with Server(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with triton.InferenceServerClient(server.grpc_url) as connected:
        yield connected


def asked(client, model, files):
    """The answers to requests with a file each, all in flight together; an error in place of one that failed."""
    stage = convert.transformers(KINDS[model]).stage

    def one(file):
        given = triton.InferInput(stage.input, [1, len(file)], "UINT8")
        given.set_data_from_numpy(np.frombuffer(file, np.uint8)[None])
        try:
            answer = client.infer(model, [given])
        except InferenceServerException as error:
            return error
        return {name: answer.as_numpy(name)[0] for name in (stage.output, *stage.extras)}

    with ThreadPoolExecutor(len(files)) as threads:
        return list(threads.map(one, files))


def check(found, recorded):
    """Whether an answer is what was recorded of transformers."""
    for name, (dtype, shape, checksum) in recorded.items():
        if name == "num_crops":
            continue
        value = found[name]
        assert (str(value.dtype), list(value.shape)) == (dtype, shape[len(shape) - value.ndim :]), name
        assert zlib.crc32(np.ascontiguousarray(value).tobytes()) == checksum, name


@pytest.mark.parametrize("name", IMAGES)
def test_images_of_all_sizes_in_one_batch(client, name):
    recorded = ANSWERS[f"{name} torchvision"]
    sizes = [tuple(map(int, size.split("x"))) for size in SIZES]
    files = [definitions.as_file(definitions.picture(*size)) for size in sizes]
    for size, found in zip(SIZES, asked(client, name, files), strict=True):
        if "error" in recorded[size]:
            assert isinstance(found, InferenceServerException), size
        else:
            check(found, recorded[size])


def test_an_image_that_fails_leaves_the_others(client):
    good = definitions.as_file(definitions.picture(200, 300))
    thin, cut = definitions.as_file(definitions.picture(2, 999)), good[:-1000]
    answers = asked(client, "qwen2-vl", [good, thin, b"no image", good, cut, b""])
    check(answers[0], ANSWERS["qwen2-vl torchvision"]["200x300"])
    check(answers[3], ANSWERS["qwen2-vl torchvision"]["200x300"])
    assert "at most 200 times" in str(answers[1])
    assert all(isinstance(answers[place], InferenceServerException) for place in (1, 2, 4, 5))


@pytest.mark.parametrize("name", VIDEOS)
def test_videos(client, name):
    clips = ("mjpeg.avi", "vp9.webm")
    files = [(DATA / "video" / clip).read_bytes() for clip in clips]
    answers = asked(client, name, [*files, files[0][:999]])
    for clip, found in zip(clips, answers, strict=False):
        check(found, ANSWERS[name][clip])
    assert isinstance(answers[-1], InferenceServerException)


@pytest.mark.parametrize("name", SOUNDS)
def test_sounds(client, name):
    lengths = definitions.EXTRACTORS[name][1][-2:]
    files = [definitions.as_wav(definitions.sound(samples)) for samples in lengths]
    answers = asked(client, name, [*files, b"RIFF"])
    assert isinstance(answers[-1], InferenceServerException)
    for samples, found in zip(lengths, answers, strict=False):
        if name == "wav2vec2":
            check(found, {"input_values": ANSWERS[name][str(samples)]})
            continue
        with np.load(DATA / "multimodal" / "sounds.npz") as values:
            for output, value in found.items():
                np.testing.assert_allclose(value, values[f"{name} {samples} {output}"], rtol=0, atol=2e-6)


@pytest.mark.parametrize("frames", [8, 11])
def test_a_long_video_comes_in_parts(client, server, frames):
    video = long_video(frames)
    (whole,) = asked(client, "qwen2-vl-video", [video.tobytes()])
    with Answers(server, "long_clip", {"VIDEO": video[None]}) as answers:
        found = answers.all()
    assert found.error is None and len(found.results) == -(-frames // PART)
    parts, grids = (found.arrays(name) for name in ("pixel_values_videos", "video_grid_thw"))
    assert np.array_equal(np.concatenate([part[0] for part in parts]), whole["pixel_values_videos"])
    times = [int(grid[0, 0]) for grid in grids]
    assert sum(times) == whole["video_grid_thw"][0] and set(times[:-1]) <= {PART // 2}
    assert all((grid[0, 1:] == whole["video_grid_thw"][1:]).all() for grid in grids)


def test_a_long_video_that_breaks_off_gives_what_is_before(server):
    with Answers(server, "long_clip", {"VIDEO": long_video(12, damaged=9)[None]}) as answers:
        found = answers.all()
    # Frame 8 is alone in the last one.
    assert found.error is not None and [int(grid[0, 0]) for grid in found.arrays("video_grid_thw")] == [2, 2, 1]
