"""Decoupled models: a request brings a video, its sequences come as responses in order. Pipelines that DALI serialized,
over gRPC streams."""

import json
import queue

import numpy as np
import pytest
import tritonclient.grpc as triton
from clips import CLIPS, DECOUPLED, long_video
from harness import Server, wait_until
from recorded import write_model
from tritonclient.utils import InferenceServerException

TYPES = {"uint8": "UINT8", "int32": "INT32", "object": "BYTES"}
PATIENCE = 120
# Levels by which the mean of a frame may be off: clips of odd sizes are up to one level off in places
# (docs/explanation/video.md).
ODD = 0.01


class Answers:
    """The responses to one request, as they come: `shapes` of the first output until `final`, or until an `error`."""

    def __init__(self, server, model, inputs, **options):
        self.client = triton.InferenceServerClient(server.grpc_url)
        self.came = queue.Queue()
        self.client.start_stream(callback=lambda result, error: self.came.put((result, error)))
        given = []
        for name, array in inputs.items():
            one = triton.InferInput(name, list(array.shape), TYPES[str(array.dtype)])
            one.set_data_from_numpy(array)
            given.append(one)
        self.client.async_stream_infer(model, given, enable_empty_final_response=True, **options)
        self.results, self.error, self.is_final = [], None, False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A stream whose request is over must not be cancelled: this server then answers no others.
        self.client.stop_stream(cancel_requests=not self.is_final and self.error is None)
        self.client.close()

    def next(self):
        result, error = self.came.get(timeout=PATIENCE)
        self.error = error
        if error is None:
            response = result.get_response()
            self.is_final = response.parameters["triton_final_response"].bool_param
            if response.outputs:
                self.results.append(result)
        return self.error is None and not self.is_final

    def all(self):
        while self.next():
            pass
        return self

    def arrays(self, name):
        return [result.as_numpy(name) for result in self.results]

    @property
    def shapes(self):
        return [tuple(result.get_response().outputs[0].shape) for result in self.results]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("videos")

    def write(name, file, config='backend: "gesso"\n'):
        write_model(folder, name, (CLIPS / "streams" / f"{file}.dali").read_bytes(), config)

    listed = 'input [{ name: "VIDEO" data_type: TYPE_UINT8 dims: [1, -1] }]\n'
    write(
        "partial",
        "partial",
        f'backend: "dali"\n{DECOUPLED}{listed}output [{{ name: "VIDEO" data_type: TYPE_UINT8 dims: [-1, -1, -1, -1, 3] }}]\n',
    )
    write("padded", "pad", f'backend: "dali"\n{DECOUPLED}{listed}')
    write("bare", "partial")
    write("beside", "beside")
    write("large", "large")
    write(
        "parts",
        "parts",
        'backend: "dali"\nparameters [{ key: "split_along_outer_axis" value { string_value: "PARTS:FRAMES" } }]\n',
    )
    write("two", "large", 'backend: "gesso"\ninstance_group [{ kind: KIND_CPU count: 2 }]\n')
    write("batched", "partial", 'backend: "gesso"\nmax_batch_size: 4\nmodel_transaction_policy { decoupled: true }\n')
    with Server(folder, strict=False) as running:
        yield running


def video(frames):
    return {"VIDEO": long_video(frames)[None]}


@pytest.mark.parametrize("model, last", [("partial", 6), ("padded", 7), ("bare", 6)])
def test_ninety_frames_are_four_full_batches_and_the_rest(server, model, last):
    with Answers(server, model, video(90)) as answers:
        found = answers.all()
        assert found.error is None
        assert found.shapes == [(3, 7, 32, 48, 3)] * 4 + [(1, last, 32, 48, 3)]
        frames = np.concatenate([batch.reshape(-1, 32, 48, 3) for batch in found.arrays("VIDEO")])
    # The clip comes again every twelve frames; what fills up is zero.
    assert all((frames[i] == frames[i % 12]).all() for i in range(90)) and (frames[0] != frames[1]).any()
    assert (frames[90:] == 0).all() and len(frames) == 84 + last


def test_a_shorter_sequence_is_a_response_of_its_own(server):
    with Answers(server, "partial", video(17)) as answers:
        assert answers.all().shapes == [(2, 7, 32, 48, 3), (1, 3, 32, 48, 3)]


def test_whole_videos_are_split_into_sequences_and_frames(server):
    """Not decoupled: each output of a video becomes several samples of the response. Zeros behind the end of a file are
    ignored."""
    answers = json.loads((CLIPS / "streams" / "answers.json").read_text())["parts"]
    files = [np.fromfile(CLIPS / clip, np.uint8) for clip in answers["clips"]]
    longest = max(map(len, files))
    given = triton.InferInput("VIDEO", [len(files), longest], "UINT8")
    given.set_data_from_numpy(np.stack([np.pad(file, (0, longest - len(file))) for file in files]))
    with triton.InferenceServerClient(server.grpc_url) as client:
        result = client.infer("parts", [given])
    for name, shape, expected in zip(("PARTS", "FRAMES"), [(5, 20, 30, 3), (20, 30, 3)], answers["sums"]):
        found = result.as_numpy(name)
        assert found.shape == (sum(map(len, expected)), *shape)
        sums = found.astype(np.int64).reshape(len(found), -1).sum(1)
        assert np.abs(sums - np.concatenate(expected)).max() <= ODD * found[0].size, name


def test_what_is_configured(server):
    config = server.model_config("bare")
    assert config["model_transaction_policy"]["decoupled"] and config["max_batch_size"] == 0
    (given,), (made,) = config["input"], config["output"]
    assert (given["data_type"], given["dims"]) == ("TYPE_UINT8", [-1, -1])
    assert (made["data_type"], made["dims"]) == ("TYPE_UINT8", [-1, -1, -1, -1, 3])
    assert not server.model_ready("batched") and "expected 0: the pipeline takes one video a request" in server.log


def test_inputs_beside_the_video_come_with_every_batch(server):
    for numbers in ([[7]], [[7], [8], [9]]):
        given = {**video(17), "NUMBER": np.array(numbers, np.int32)}
        with Answers(server, "beside", given) as answers:
            answers.all()
            name = next(o.name for o in answers.results[0].get_response().outputs if o.datatype == "INT32")
            found = [array.ravel().tolist() for array in answers.arrays(name)]
        assert found == ([[7, 7, 7], [7]] if len(numbers) == 1 else [[7, 8, 9], [7]])


def test_a_damaged_video_gives_what_is_before_and_then_an_error(server):
    with Answers(server, "partial", {"VIDEO": long_video(90, damaged=50)[None]}) as answers:
        # Two full batches, a whole sequence of the third, and the one frame before the damaged one.
        assert [shape[:2] for shape in answers.all().shapes] == [(3, 7), (3, 7), (1, 7), (1, 1)]
        assert "frame 50" in str(answers.error)
    for wrong, said in [
        (np.zeros((1, 100), np.uint8), "not a video"),
        (np.zeros((2, 100), np.uint8), "one video at a time"),
    ]:
        with Answers(server, "bare", {"VIDEO": wrong}) as answers:
            assert not answers.next() and said in str(answers.error)
    with Answers(server, "partial", video(7)) as answers:
        assert answers.all().shapes == [(1, 7, 32, 48, 3)], "the next one is answered"


def test_changed_containers_end(server):
    random = np.random.RandomState(3)
    for clip in ("h264.mp4", "vp9.webm", "mjpeg.avi", "h265.mp4", "h264_fragments.mp4"):
        file = np.fromfile(CLIPS / clip, np.uint8)
        for _ in range(6):
            changed = file.copy()
            changed[random.randint(0, len(file), 6)] = random.randint(0, 256, 6)
            with Answers(server, "partial", {"VIDEO": changed[None]}) as answers:
                answers.all()
                assert answers.error is not None or answers.is_final
    assert server.alive


def test_a_cancelled_request_ends(tmp_path):
    write_model(tmp_path, "large", (CLIPS / "streams" / "large.dali").read_bytes(), 'backend: "gesso"\n')
    with Server(tmp_path) as server:
        with Answers(server, "large", video(6_000)) as answers:
            answers.next()
        try:
            # The next one need not wait for the rest of the first one's 6,000 frames.
            with Answers(server, "large", video(7)) as answers:
                shapes = answers.all().shapes
        except InferenceServerException:
            shapes = []
        # Servers before 25.03 free the state of a cancelled stream twice now and then
        # (triton-inference-server/server#8034).
        _, died, trace = server.log.partition("Signal (")
        if died:
            assert "libtriton_gesso" not in trace
            pytest.skip("this tritonserver did not survive the cancelling of a stream")
        assert shapes == [(1, 7, 320, 480, 3)]

        def outcomes():
            with triton.InferenceServerClient(server.grpc_url) as client:
                counted = client.get_inference_statistics("large").model_stats[0].inference_stats
            return counted.success.count, counted.fail.count

        # One that went on to its end would be a success.
        wait_until(lambda: outcomes() == (1, 1), "both are counted")


def test_two_instances_answer_two_videos(server):
    with Answers(server, "two", video(90)) as first, Answers(server, "two", video(90)) as second:
        for answers in (first, second):
            assert [shape[:2] for shape in answers.all().shapes] == [(3, 7)] * 4 + [(1, 6)]


def test_memory_does_not_grow_from_video_to_video(server):
    def once():
        with Answers(server, "large", video(300)) as answers:
            while answers.next():
                answers.results.clear()
            assert answers.is_final

    for _ in range(2):
        once()
    before = server.rss
    for _ in range(4):
        once()
    wait_until(lambda: server.rss < before + (80 << 20), "the memory of the responses is free")


def test_statistics_count_batches(server):
    def counted():
        with triton.InferenceServerClient(server.grpc_url) as client:
            (found,) = client.get_inference_statistics("padded").model_stats
            return found.inference_count, found.execution_count, found.inference_stats.success.count

    before = counted()
    with Answers(server, "padded", video(90)) as answers:
        answers.all()
    wait_until(lambda: counted()[2] == before[2] + 1, "the request is counted")
    after = counted()
    assert (after[0] - before[0], after[1] - before[1]) == (1, 5), "a request, five batches"
