"""Tensors in the GPU's memory on both sides of a request, and memory that comes back."""

import io
import time
from contextlib import ExitStack

import http_load
import numpy as np
import pytest
import tritonclient.grpc as triton
from harness import Server
from on_gpu import PIPELINES, config, landing_in, lying_in, registered
from PIL import Image
from recorded import write_model
from sending import alone, infer, tensor

CASE = PIPELINES["classify"]
OUTPUT = "PIXELS"
LOADS = 100
REQUESTS = 100_000
CONNECTIONS = 64
# The driver hands out memory in pieces of 2 MB; a leak of one buffer per load or request would be far more.
GROWTH_BYTES = 8 << 20
HOST_GROWTH_BYTES = 32 << 20
STATE_SECONDS = 300


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    repository = tmp_path_factory.mktemp("models")
    write_model(repository, "classify", CASE.pipeline, config(max_batch_size=32))
    with Server(repository, models=["classify"]) as server:
        yield server


@pytest.fixture(scope="module")
def client(served):
    with triton.InferenceServerClient(served.grpc_url) as connected:
        yield connected


@pytest.fixture(scope="module")
def expected(client):
    """The answers over the socket, a sample at a time."""
    return [infer(client, "classify", alone({"IMAGE": image}))[0] for image in CASE.inputs["IMAGE"]]


def test_outputs_in_cuda_shared_memory_equal_those_over_the_socket(client, driver, expected):
    size = expected[0].nbytes
    with registered(client, driver, "out", size * len(expected)) as region:
        region.write(np.full(region.size, 0xAB, np.uint8))
        for i, image in enumerate(CASE.inputs["IMAGE"]):
            image = tensor("IMAGE", image[None])
            answer = client.infer("classify", [image], outputs=[landing_in(OUTPUT, size, "out", i * size)])
            assert not any(answer.get_response().raw_output_contents), "the tensor came over the socket"
            assert list(answer.get_output(OUTPUT).shape) == list(expected[i].shape)
        for i, answer in enumerate(expected):
            np.testing.assert_array_equal(region.read(answer.dtype, answer.shape, i * size), answer)


def test_inputs_in_cuda_shared_memory_give_the_same_answers(client, driver, expected):
    images, answer = CASE.inputs["IMAGE"], expected[0]
    places = np.cumsum([0, *map(len, images)])
    with ExitStack() as stack:
        sent = stack.enter_context(registered(client, driver, "in", int(places[-1])))
        region = stack.enter_context(registered(client, driver, "out", answer.nbytes))
        for image, place in zip(images, places):
            sent.write(image, int(place))
        for i, image in enumerate(images):
            input_ = lying_in("IMAGE", image[None], "in", int(places[i]))
            np.testing.assert_array_equal(client.infer("classify", [input_]).as_numpy(OUTPUT), expected[i])
            client.infer("classify", [input_], outputs=[landing_in(OUTPUT, answer.nbytes, "out")])
            np.testing.assert_array_equal(region.read(answer.dtype, answer.shape), expected[i])


def test_a_region_that_is_too_small_fails_its_request_alone(client, driver, expected):
    image = tensor("IMAGE", CASE.inputs["IMAGE"][0][None])
    with registered(client, driver, "small", 1024):
        with pytest.raises(triton.InferenceServerException):
            client.infer("classify", [image], outputs=[landing_in(OUTPUT, 1024, "small")])
    np.testing.assert_array_equal(client.infer("classify", [image]).as_numpy(OUTPUT), expected[0])


def test_memory_stays_flat_over_requests(served, client, driver, expected):
    size = expected[0].nbytes
    with registered(client, driver, "slots", size * CONNECTIONS) as region:
        images = [image.tobytes() for image in CASE.inputs["IMAGE"]]

        def request(slot, image):
            place = http_load.Place("slots", slot * size, size)
            return http_load.inference("classify", [("IMAGE", "UINT8", [1, len(image)], image)], [(OUTPUT, place)])

        # Each connection sends one image, so that its slot must hold that one's answer at the end.
        connections = [[request(slot, images[slot % len(images)])] for slot in range(CONNECTIONS)]

        def send(count):
            outcome = http_load.run(served.http_url, connections, count=count, processes=2)
            assert not outcome.errors, outcome.errors[0]
            assert len(outcome.latencies) == count

        send(REQUESTS // 10)
        early, early_host = driver.used_bytes(), served.rss
        send(REQUESTS)
        grown, grown_host = driver.used_bytes() - early, served.rss - early_host
        print(f"{REQUESTS} requests: the GPU's memory grew by {grown >> 10} KiB, the host's by {grown_host >> 10} KiB")
        assert grown <= GROWTH_BYTES and grown_host <= HOST_GROWTH_BYTES, (grown, grown_host)
        for slot in range(CONNECTIONS):
            answer = expected[slot % len(images)]
            np.testing.assert_array_equal(region.read(answer.dtype, answer.shape, slot * size), answer)


def wait_until(client, name, state):
    deadline = time.monotonic() + STATE_SECONDS
    while time.monotonic() < deadline:
        found = [model.state for model in client.get_model_repository_index().models if model.name == name]
        if found and found[0] == state:
            return
        time.sleep(0.005)
    raise AssertionError(f"`{name}` is not {state} after {STATE_SECONDS} s: {found}")


def test_memory_comes_back_over_loads_and_unloads(tmp_path, driver, expected):
    write_model(tmp_path, "classify", CASE.pipeline, config())
    image = alone({"IMAGE": CASE.inputs["IMAGE"][0]})
    with Server(tmp_path, models=[]) as server, triton.InferenceServerClient(server.grpc_url) as client:

        def cycle(count):
            for _ in range(count):
                client.load_model("classify")
                np.testing.assert_array_equal(infer(client, "classify", image)[0], expected[0])
                client.unload_model("classify")
                wait_until(client, "classify", "UNAVAILABLE")

        cycle(LOADS // 10)
        early, early_host, began = driver.used_bytes(), server.rss, time.monotonic()
        cycle(LOADS)
        grown, grown_host = driver.used_bytes() - early, server.rss - early_host
        print(
            f"{LOADS} loads in {time.monotonic() - began:.1f} s: the GPU's memory grew by {grown >> 10} KiB, "
            f"the host's by {grown_host >> 10} KiB"
        )
        assert grown <= GROWTH_BYTES and grown_host <= HOST_GROWTH_BYTES, (grown, grown_host)


def test_a_ceiling_fails_the_batch_that_does_not_fit_and_no_other(tmp_path, expected):
    limit = 16 << 20
    parameter = f'parameters {{ key: "gpu_memory_mb" value {{ string_value: "{limit >> 20}" }} }}\n'
    write_model(tmp_path, "classify", CASE.pipeline, config() + parameter)
    file = io.BytesIO()
    Image.new("RGB", (4000, 3000), (90, 120, 30)).save(file, "JPEG")
    large = np.frombuffer(file.getvalue(), np.uint8)
    with Server(tmp_path) as server, triton.InferenceServerClient(server.grpc_url) as client:
        for _ in range(2):
            refused = infer(client, "classify", alone({"IMAGE": large}))
            assert isinstance(refused, triton.InferenceServerException), "the batch fitted"
            assert refused.status() == "StatusCode.UNAVAILABLE", refused
            assert f"within a limit of {limit} in all" in refused.message(), refused
            small = infer(client, "classify", alone({"IMAGE": CASE.inputs["IMAGE"][0]}))[0]
            np.testing.assert_array_equal(small, expected[0])
