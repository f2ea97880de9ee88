"""What the server counts: its own statistics as it defines them, and the metrics of Gesso."""

import re
import threading

import numpy as np
import pytest
import tritonclient.grpc
from contract_models import CASES, CLASSIFY, config, filled
from harness import Server, wait_until
from protocols import Client
from recorded import write_model
from sending import INVALID, infer, statistics, together

IMAGES = CLASSIFY.inputs["IMAGE"]
SPOILT = np.frombuffer(IMAGES[0].tobytes()[:400], np.uint8)


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counting")
    write_model(folder, "batched", CLASSIFY.pipeline, config(*filled(4)))
    write_model(folder, "unbatched", CLASSIFY.pipeline, config("max_batch_size: 0"))
    with Server(folder, arguments=["--log-verbose=1"]) as server:
        yield server


def metric(server, name, **labels):
    """The value of one of Gesso's metrics; 0 where it is not shown."""
    for line in server.metrics.splitlines():
        found = re.fullmatch(rf"{name}{{(.*)}} (\S+)", line)
        if found and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[1])).items():
            return float(found[2])
    return 0.0


def settled(server, expected, name, **labels):
    """Waits until a metric has its value: it is counted around the time of the answer."""
    wait_until(lambda: metric(server, name, **labels) >= expected, f"`{name}` is {expected}")
    assert metric(server, name, **labels) == expected, server.metrics


def test_statistics_of_a_batch_with_a_failure(counting):
    requests = [{"IMAGE": image[None]} for image in [*IMAGES, SPOILT]]
    answers = together(counting.grpc_url, "batched", requests)
    assert [isinstance(answer, Exception) for answer in answers] == [False] * 3 + [True]
    with tritonclient.grpc.InferenceServerClient(counting.grpc_url) as client:
        counted = statistics(client, "batched", 4)
    stats = counted.inference_stats
    assert (stats.success.count, stats.fail.count) == (3, 1)
    assert counted.inference_count == 3
    assert counted.execution_count == 1
    assert [(batch.batch_size, batch.compute_infer.count) for batch in counted.batch_stats] == [(4, 1)]
    for part in (stats.compute_input, stats.compute_infer, stats.compute_output, stats.queue):
        assert part.count == 3
        assert 0 < part.ns < 60e9, "a time wrapped around"
    for part in (counted.batch_stats[0].compute_input, counted.batch_stats[0].compute_output):
        assert part.ns < 60e9, "a time wrapped around"
    parts = stats.compute_input.ns + stats.compute_infer.ns + stats.compute_output.ns + stats.queue.ns
    assert parts <= stats.success.ns


def test_statistics_without_batching(counting):
    pair = np.stack([IMAGES[0], IMAGES[0]])
    with tritonclient.grpc.InferenceServerClient(counting.grpc_url) as client:
        assert infer(client, "unbatched", {"IMAGE": pair})[0].shape == (2, 3, 64, 64)
        assert infer(client, "unbatched", {"IMAGE": SPOILT[None]}).status() == INVALID
        counted = statistics(client, "unbatched", 2)
    stats = counted.inference_stats
    assert (stats.success.count, stats.fail.count, counted.execution_count) == (1, 1, 2)
    assert stats.compute_infer.ns > 0


def test_a_failure_stands_in_the_verbose_log_with_the_id_of_its_request(counting):
    with Client("http", counting) as client:
        assert "JPEG" in client.refusal("unbatched", {"IMAGE": SPOILT[None]}, request_id="order 8")
    (line,) = [line for line in counting.log.splitlines() if "request=order 8" in line]
    assert "request failed: " in line and "JPEG" in line


def test_metrics_tell_what_models_do(counting):
    names = {"model": "unbatched", "version": "1"}
    before = {name: metric(counting, name, **names) for name in ("gesso_input_bytes_total", "gesso_failures_total")}
    decoded = metric(counting, "gesso_images_decoded_total", path="cpu", **names)
    failed = metric(counting, "gesso_failures_total", kind="invalid_arg", **names)
    # Two operators that run as one.
    together = "decoders__Image + Resize"
    spent = metric(counting, "gesso_operator_seconds", operator=together, **names)
    pair = np.stack([IMAGES[0], IMAGES[0]])
    with tritonclient.grpc.InferenceServerClient(counting.grpc_url) as client:
        infer(client, "unbatched", {"IMAGE": pair})
        infer(client, "unbatched", {"IMAGE": SPOILT[None]})
    settled(counting, decoded + 2, "gesso_images_decoded_total", path="cpu", **names)
    settled(counting, failed + 1, "gesso_failures_total", kind="invalid_arg", **names)
    bytes_ = before["gesso_input_bytes_total"] + pair.nbytes + SPOILT.nbytes
    settled(counting, bytes_, "gesso_input_bytes_total", **names)
    assert metric(counting, "gesso_operator_seconds", operator=together, **names) > spent
    assert metric(counting, "gesso_images_decoded_total", path="engine", **names) == 0
    for name in (
        "gesso_images_decoded_total",
        "gesso_failures_total",
        "gesso_input_bytes_total",
        "gesso_operator_seconds",
    ):
        assert f"# HELP {name} " in counting.metrics and f"# TYPE {name} counter" in counting.metrics


def test_metrics_go_with_their_model(tmp_path):
    write_model(tmp_path, "short", CASES["identity"].pipeline, config())
    with Server(tmp_path, models=["short"]) as server:
        assert 'gesso_input_bytes_total{model="short",version="1"} 0' in server.metrics
        with Client("grpc", server) as client:
            client.connected.unload_model("short")
            wait_until(lambda: 'model="short",version="1"' not in server.metrics, "the metrics have gone")
        assert "gesso_input_bytes_total{" not in server.metrics


def test_a_server_without_metrics_serves_all_the_same(tmp_path):
    write_model(tmp_path, "identity", CASES["identity"].pipeline, config("max_batch_size: 4"))
    with (
        Server(tmp_path, arguments=["--allow-metrics=false"], metrics=False) as server,
        Client("grpc", server) as client,
    ):
        sent = np.zeros((2, 3), np.float32)
        assert client.infer("identity", {"X": sent}) is not None


def test_a_cancelled_request_is_answered_as_cancelled_and_costs_nothing_else(tmp_path):
    """The batch waits some seconds for more, in which one of its clients goes."""
    slow = config(
        "max_batch_size: 8", "dynamic_batching { max_queue_delay_microseconds: 5000000 preferred_batch_size: [ 8 ] }"
    )
    write_model(tmp_path, "slow", CLASSIFY.pipeline, slow)
    outcome, done = [], threading.Event()

    def answered(result, error):
        outcome.append(error)
        done.set()

    with Server(tmp_path) as server, Client("grpc", server) as client:
        sent = [client.input("IMAGE", IMAGES[0][None])]
        call = client.connected.async_infer("slow", sent, answered)
        other = threading.Thread(target=lambda: outcome.append(client.infer("slow", {"IMAGE": IMAGES[1][None]})))
        other.start()
        wait_until(
            lambda: 'nv_inference_pending_request_count{model="slow",version="1"} 2' in server.metrics, "both wait"
        )
        call.cancel()
        other.join()
        assert done.wait(60)
        kept = next(each for each in outcome if not isinstance(each, Exception))
        assert abs(kept.as_numpy("PIXELS")[0] - CLASSIFY.outputs[0][1]).max() <= CLASSIFY.tol
        counted = statistics(client.connected, "slow", 2, executed=1)
        assert counted.inference_stats.success.count == 1
        assert server.alive
