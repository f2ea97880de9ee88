"""Decoupled models of a GPU: a request brings a video, which the video engines decode from its first frame to its last;
beside the same model on the host."""

import re
import time

import numpy as np
import pytest
from harness import ROOT, Server, wait_until
from recorded import write_model
from test_video_pieces import frames, pieces_of, send, sequences
from test_video_stream import Answers

CLIPS = ROOT / "tests" / "data" / "video"
# Levels between engines and the host.
MOST = 2
# One instance: without a number there is one on every GPU, and pieces of a video would come to any of them.
KINDS = {"gpu": "KIND_GPU gpus: [ 0 ]", "cpu": "KIND_CPU"}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("videos")
    for file in ("sequences", "sequences_pad"):
        for place, kind in KINDS.items():
            config = f'backend: "gesso"\ninstance_group [{{ kind: {kind} count: 1 }}]\n'
            write_model(repository, f"{file}_{place}", (ROOT / f"tests/gpu/data/{file}.dali").read_bytes(), config)
    with Server(repository) as server:
        yield server


def long_video(times):
    """A clip of twelve frames over and over: a stream of H.264 without a container."""
    return np.frombuffer((CLIPS / "h264.h264").read_bytes() * times, np.uint8)


def frames_by(server, path):
    """How many frames were decoded there, of all models."""
    return sum(
        float(value)
        for value in re.findall(
            rf'^gesso_frames_decoded_total{{.*path="{path}".*}} (\S+)$', server.metrics, re.MULTILINE
        )
    )


@pytest.mark.parametrize("model", ["sequences", "sequences_pad"])
@pytest.mark.parametrize(
    "clip", ["large_h264.mp4", "large_h265.mp4", "large_vp9.webm", "large_mjpeg.avi", "large_av1.mp4"]
)
def test_answers_are_those_of_the_host(served, model, clip):
    before = frames_by(served, "engine")
    given = {"VIDEO": np.fromfile(CLIPS / clip, np.uint8)[None]}
    found = []
    for place in KINDS:
        with Answers(served, f"{model}_{place}", given) as answers:
            assert answers.all().error is None
            found.append(answers.arrays("VIDEO"))
    for one, other in zip(*found, strict=True):
        assert one.shape == other.shape and np.abs(one.astype(np.int16) - other).max() <= MOST
    # The others are of a codec that engines are not asked for, or that not all have.
    if clip not in ("large_mjpeg.avi", "large_av1.mp4"):
        assert frames_by(served, "engine") > before


@pytest.mark.parametrize("clip", ["large_h265.hevc", "large_vp9.webm", "h264.h264", "h264_fragments.mp4"])
def test_videos_come_in_pieces(served, clip):
    """These the host decodes; the engines have pictures equal to its own of these clips."""
    file = np.fromfile(CLIPS / clip, np.uint8)
    with Answers(served, "sequences_gpu", {"VIDEO": file[None]}) as answers:
        whole = frames([answers.all()])
    answers = sequences(served, "sequences_gpu", pieces_of(file, 5), 31)
    assert all(answer.error is None and answer.is_final for answer in answers)
    assert np.abs(frames(answers).astype(np.int16) - whole).max() <= MOST


def test_several_videos_in_pieces_come_at_the_same_time(served):
    pieces = pieces_of(long_video(20), 6)
    with Answers(served, "sequences_gpu", {"VIDEO": long_video(20)[None]}) as answers:
        whole = frames([answers.all()])
    found = {sequence: [] for sequence in (41, 42, "x")}
    for i, piece in enumerate(pieces):
        for sequence, answers in found.items():
            answers.append(send(served, "sequences_gpu", piece, sequence, i == 0, i == len(pieces) - 1))
    assert all(np.abs(frames(answers).astype(np.int16) - whole).max() <= MOST for answers in found.values())


def test_the_first_answer_comes_long_before_the_last(served):
    with Answers(served, "sequences_gpu", {"VIDEO": long_video(1)[None]}) as answers:
        answers.all()
    begun = time.monotonic()
    with Answers(served, "sequences_gpu", {"VIDEO": long_video(500)[None]}) as answers:
        answers.next()
        first = time.monotonic() - begun
        count = len(answers.results)
        while answers.next():
            count += len(answers.results)
            answers.results.clear()
        all_of_it = time.monotonic() - begun
        assert answers.error is None
    assert count >= 390 and first < all_of_it / 5, (count, first, all_of_it)


def test_a_damaged_video_gives_what_is_before_and_then_an_error(served):
    # The host's decoder of H.264 hides such damage.
    data = np.fromfile(CLIPS / "large_h265.mp4", np.uint8)
    start = data.tobytes().index(b"mdat")
    middle = start + (len(data) - start) // 2
    data[middle : middle + 600] = 255
    found = []
    for place in KINDS:
        with Answers(served, f"sequences_{place}", {"VIDEO": data[None]}) as answers:
            found.append((answers.all().shapes, str(answers.error)))
    assert found[0] == found[1] and "frame" in found[0][1]


def test_a_client_that_leaves_frees_the_decoder(served):
    def left(times):
        for _ in range(times):
            with Answers(served, "sequences_gpu", {"VIDEO": long_video(300)[None]}) as answers:
                answers.next()

    try:
        left(3)
        before = served.rss
        left(12)
        with Answers(served, "sequences_gpu", {"VIDEO": long_video(1)[None]}) as answers:
            assert answers.all().error is None
    except Exception:
        if "Signal (" in served.log and "libtriton_gesso" not in served.log.partition("Signal (")[2]:
            pytest.skip("this tritonserver did not survive the cancelling of a stream")
        raise
    wait_until(lambda: served.rss < before + (200 << 20), "the memory of what was left is free")
