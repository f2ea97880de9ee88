"""A client whose requests take long, beside one whose do not: both get their answers, and memory goes back. How long
the small ones wait is measured by benches/neighbours.py."""

import queue
import threading

import bombs
import numpy as np
import pytest
import tritonclient.grpc as triton
from contract_models import parameter
from gesso import fn, pipeline_def, types
from harness import Server, wait_until
from recorded import cases, write_model
from sending import INVALID, alone, infer

CASE = cases("pipelines")["classify"]
# Large enough to be set aside on any machine, small enough for one that is slow.
SIDE = 4_000
SLOW = {
    "webp": lambda: bombs.webp(SIDE, SIDE),
    "progressive": lambda: bombs.progressive(SIDE, SIDE),
    "png": lambda: bombs.png(SIDE, SIDE),
    "jpeg": lambda: bombs.jpeg(2 * SIDE, SIDE),
}
GROWTH_BYTES = 50e6
UNAVAILABLE = "StatusCode.UNAVAILABLE"
MERGING = 'backend: "gesso"\nmax_batch_size: 16\ndynamic_batching { }\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'


@pipeline_def(batch_size=16, num_threads=2)
def enlarge():
    image = fn.decoders.image(fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1), output_type=types.RGB)
    return fn.resize(image, size=fn.external_source(name="SIZE", dtype=types.INT32, ndim=1))


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    limits = {
        "default": [],
        "few_pixels": [parameter("max_pixels", 1_000_000)],
        "little_time": [parameter("max_request_ms", 40), parameter("slow_request_ms", 3_600_000)],
        "little_memory": [parameter("max_memory_mb", 40)],
        "all_slow": [parameter("slow_request_ms", 1)],
    }
    for name, lines in limits.items():
        write_model(repository, name, CASE.pipeline, MERGING + "".join(line + "\n" for line in lines))
    write_model(repository, "little_time_to_enlarge", enlarge().serialize(), MERGING + parameter("max_request_ms", 200))
    with Server(repository) as server:
        yield server


class Good:
    """A client that sends small images until the end of its block, and checks every answer."""

    def __init__(self, url, model):
        self.url, self.model, self.right, self.faults = url, model, 0, queue.Queue()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        assert self.faults.empty(), self.faults.get()

    def send(self):
        with triton.InferenceServerClient(self.url) as client:
            while not self.over.is_set():
                i = self.right % len(CASE.samples)
                answer = infer(client, self.model, alone({"IMAGE": CASE.inputs["IMAGE"][i]}))
                if isinstance(answer, Exception) or np.abs(answer[0][0] - CASE.outputs[0][i]).max() > CASE.tol:
                    self.faults.put((i, answer))
                    return
                self.right += 1


def file_of(name):
    return np.frombuffer(SLOW[name](), np.uint8)


def counted(server, name, model, *labels):
    """The server's counter of this name, of the model and with these labels."""
    wanted = [f"{name}{{", f'model="{model}"', *labels]
    (line,) = (line for line in server.metrics.splitlines() if all(text in line for text in wanted))
    return float(line.split()[-1])


def slow_requests(server, model):
    return counted(server, "gesso_slow_requests_total", model)


@pytest.mark.parametrize("name", list(SLOW))
def test_small_requests_are_answered_beside_one_that_takes_long_and_memory_goes_back(served, name):
    file = file_of(name)
    many = np.stack([file] * 2)
    with triton.InferenceServerClient(served.grpc_url) as client, Good(served.grpc_url, "default") as good:
        wait_until(lambda: good.right > 20 or not good.faults.empty(), "the server is warm")
        before, slow = served.rss, slow_requests(served, "default")
        (one,) = infer(client, "default", {"IMAGE": file[None]})
        (two,) = infer(client, "default", {"IMAGE": many})
        assert (two == one).all(), "it is the same image"
        assert slow_requests(served, "default") == slow + 2
        count = good.right
        wait_until(lambda: good.right > count + 20 or not good.faults.empty(), "small requests are answered")
        wait_until(lambda: served.rss - before < GROWTH_BYTES, "memory goes back")


def test_those_that_take_long_wait_for_one_another_and_all_are_answered(served):
    file = file_of("webp")
    with Good(served.grpc_url, "default") as good:
        answers = queue.Queue()

        def send():
            with triton.InferenceServerClient(served.grpc_url) as client:
                answers.put(infer(client, "default", {"IMAGE": file[None]}))

        threads = [threading.Thread(target=send) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = [answers.get() for _ in threads]
        assert not any(isinstance(answer, Exception) for answer in found), found
        assert all((answer[0] == found[0][0]).all() for answer in found)
        assert good.right > 0


def test_answers_of_the_slow_lane_are_those_of_the_others(served):
    with triton.InferenceServerClient(served.grpc_url) as client:
        slow = slow_requests(served, "all_slow")
        for i in CASE.samples:
            image = alone({"IMAGE": CASE.inputs["IMAGE"][i]})
            (set_aside,), (other,) = infer(client, "all_slow", image), infer(client, "default", image)
            assert (set_aside == other).all()
        assert slow_requests(served, "all_slow") >= slow, "large ones were set aside"


@pytest.mark.parametrize(
    "model, name, status, text",
    [
        ("few_pixels", "webp", INVALID, "4000 x 4000 pixels is larger than the model's limit of 1000000 pixels"),
        ("little_time", "png", UNAVAILABLE, "longer than the model's limit of 40 ms"),
        ("little_time", "progressive", UNAVAILABLE, "longer than the model's limit of 40 ms"),
        # On a busy machine the time is over before it is asked what the image takes.
        ("little_time", "webp", UNAVAILABLE, "of the time for its request|longer than the model's limit of 40 ms"),
        ("little_memory", "png", UNAVAILABLE, "does not fit into its batch any more"),
        ("little_memory", "jpeg", UNAVAILABLE, "does not fit into its batch any more"),
    ],
)
def test_a_request_beyond_a_limit_of_its_model_fails_and_the_next_does_not(served, model, name, status, text):
    with triton.InferenceServerClient(served.grpc_url) as client:
        error = infer(client, model, {"IMAGE": file_of(name)[None]})
        assert isinstance(error, Exception), "the request was answered"
        assert (error.status(), any(part in error.message() for part in text.split("|"))) == (status, True), (
            error.message()
        )
        (answer,) = infer(client, model, alone({"IMAGE": CASE.inputs["IMAGE"][0]}))
        assert np.abs(answer[0] - CASE.outputs[0][0]).max() <= CASE.tol


def test_memory_of_an_answer_that_does_not_come_in_time_is_not_asked_for(served):
    image = CASE.inputs["IMAGE"][0]
    with triton.InferenceServerClient(served.grpc_url) as client:
        before = served.rss
        error = infer(
            client, "little_time_to_enlarge", alone({"IMAGE": image, "SIZE": np.array([10_000, 10_000], np.int32)})
        )
        assert isinstance(error, Exception), "the request was answered"
        assert (
            error.status() == UNAVAILABLE
            and "memory for 300000000 bytes: is expected to take 300 ms" in error.message()
        ), error.message()
        assert served.rss - before < GROWTH_BYTES
        (answer,) = infer(
            client, "little_time_to_enlarge", alone({"IMAGE": image, "SIZE": np.array([30, 40], np.int32)})
        )
        assert answer.shape == (1, 30, 40, 3)


def test_a_cancelled_request_stops_in_the_middle_of_an_image(served):
    file = np.frombuffer(bombs.progressive(), np.uint8)
    cancelled = lambda: counted(served, "gesso_failures_total", "default", 'kind="cancelled"')
    images = lambda: counted(served, "gesso_images_decoded_total", "default", 'path="cpu"')
    with triton.InferenceServerClient(served.grpc_url) as client:
        before, slow, decoded = cancelled(), slow_requests(served, "default"), images()
        sent = triton.InferInput("IMAGE", [1, len(file)], "UINT8")
        sent.set_data_from_numpy(file[None])
        call = client.async_infer("default", [sent], callback=lambda result, error: None)
        wait_until(lambda: slow_requests(served, "default") > slow, "it is set aside")
        call.cancel()
        wait_until(lambda: cancelled() > before, "it is cancelled")
        assert images() == decoded, "it was decoded to its end"


def test_a_limit_that_is_none_fails_the_load(tmp_path):
    for i, (key, value) in enumerate({"max_pixels": "0", "max_request_ms": "soon", "max_memory_mb": "-1"}.items()):
        write_model(tmp_path, f"wrong{i}", CASE.pipeline, MERGING + parameter(key, value) + "\n")
    with Server(tmp_path, strict=False) as server:
        for i, text in enumerate(["`max_pixels` is `0`", "`max_request_ms` is `soon`", "`max_memory_mb` is `-1`"]):
            assert not server.model_ready(f"wrong{i}")
            assert text in server.log
