"""Triton's schedulers before models of Gesso: who waits for whom, who is refused, and in which order. A model in Python
holds a resource of the rate limiter as long as a test wants, so that nothing depends on how fast the machine is."""

import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from harness import wait_until
from protocols import Client
from traced import Traced
from tritonclient.utils import InferenceServerException

ROW = np.array([[1, 2, 3]], np.float32)


class Sent:
    """A request that a thread waits for."""

    def __init__(self, server, model, inputs, **options):
        self.answer = None
        self.thread = threading.Thread(target=self.wait, args=[server, model, inputs, options])
        self.thread.start()

    def wait(self, server, model, inputs, options):
        with Client("grpc", server) as client:
            try:
                self.answer = client.infer(model, inputs, **options)
            except InferenceServerException as error:
                self.answer = error

    @property
    def refused(self):
        return isinstance(self.answer, Exception)

    def sum(self):
        self.thread.join()
        assert not self.refused, self.answer
        return self.answer.as_numpy("SUM")


def pending(server, model):
    """Requests that the server has for a model and has not given to it."""
    name = f'nv_inference_pending_request_count{{model="{model}",version="1"}} '
    (line,) = (line for line in server.metrics.splitlines() if line.startswith(name))
    return int(line.split()[-1])


@contextmanager
def closed_gate(server, path):
    """In this block no model runs that needs the resource `gate`, until `path` exists."""
    said = f"the gate is closed until {path}"
    holder = Sent(server, "gate", {"UNTIL": np.frombuffer(str(path).encode(), np.uint8)})
    try:
        wait_until(lambda: said in server.log or holder.refused, "the gate is closed")
        yield
    finally:
        path.touch()
        holder.thread.join()
        assert not holder.refused, holder.answer


def test_the_rate_limiter_lets_a_model_run_when_its_resource_is_free(features, tmp_path):
    with closed_gate(features, tmp_path / "open"):
        sent = [Sent(features, "limited", {"X": ROW + i}) for i in range(3)]
        wait_until(lambda: pending(features, "limited") == 3, "all wait")
        assert all(each.answer is None for each in sent)
    for i, each in enumerate(sent):
        np.testing.assert_array_equal(each.sum(), ROW + i + 1)


def test_a_request_of_higher_priority_overtakes(features, tmp_path):
    with Traced(features, "prior") as traced:
        with closed_gate(features, tmp_path / "open"):
            low = [Sent(features, "prior", {"X": ROW + i}, request_id=f"low {i}") for i in range(6)]
            wait_until(lambda: pending(features, "prior") == 6, "all wait")
            high = Sent(features, "prior", {"X": ROW + 9}, priority=1, request_id="high")
            wait_until(lambda: pending(features, "prior") == 7, "that one waits, too")
        np.testing.assert_array_equal(high.sum(), ROW + 10)
        for i, each in enumerate(low):
            np.testing.assert_array_equal(each.sum(), ROW + i + 1)
        begun = {each.request: each.times["COMPUTE_START"] for each in traced.requests(7)}
    # Those that left the queue before it came are with the instance already.
    overtaken = [name for name in begun if begun[name] > begun["high"]]
    assert len(overtaken) >= 2, begun


def test_a_full_queue_refuses(features, tmp_path):
    with closed_gate(features, tmp_path / "open"):
        # One is with the instance, two wait before it, and two in the queue.
        sent = [Sent(features, "short_queue", {"X": ROW + i}) for i in range(8)]
        wait_until(lambda: any(each.refused for each in sent), "some are refused")
    for i, each in enumerate(sent):
        each.thread.join()
        if each.refused:
            assert each.answer.status() == "StatusCode.UNAVAILABLE"
            assert "Exceeds maximum queue size" in each.answer.message()
        else:
            np.testing.assert_array_equal(each.sum(), ROW + i + 1)
    assert sum(not each.refused for each in sent) >= 2


@pytest.mark.parametrize("model", ["impatient", "delaying"])
def test_a_request_that_waited_too_long_is_refused_or_delayed(features, tmp_path, model):
    with closed_gate(features, tmp_path / "open"):
        sent = [Sent(features, model, {"X": ROW + i}) for i in range(6)]
        wait_until(
            lambda: pending(features, model) + sum(each.refused for each in sent) == 6, "all wait or are refused"
        )
        # Longer than they may wait.
        time.sleep(0.05)
    for each in sent:
        each.thread.join()
    assert any(each.refused for each in sent) == (model == "impatient")
    for i, each in enumerate(sent):
        if each.refused:
            assert each.answer.status() == "StatusCode.UNAVAILABLE"
            assert "timeout" in each.answer.message(), each.answer
        else:
            np.testing.assert_array_equal(each.sum(), ROW + i + 1)


def test_the_server_tells_a_pipeline_where_a_sequence_begins(features):
    with Client("grpc", features) as client:
        for i in range(3):
            answer = client.infer("told", {"X": ROW}, sequence_id=5, sequence_start=i == 0, sequence_end=i == 2)
            np.testing.assert_array_equal(answer.as_numpy("SUM"), ROW + (i == 0))


@pytest.mark.parametrize("model", ["sequence_direct", "sequence_oldest"])
def test_requests_of_a_sequence_are_answered_in_its_order(features, model):
    with Client("grpc", features) as client:
        for i in range(4):
            for number in (7, 8):
                options = {"sequence_id": number, "sequence_start": i == 0, "sequence_end": i == 3}
                answer = client.infer(model, {"X": ROW * number + i}, **options)
                np.testing.assert_array_equal(answer.as_numpy("SUM"), ROW * number + i + 1)
        with pytest.raises(InferenceServerException, match="must specify the START flag"):
            client.infer(model, {"X": ROW}, sequence_id=9)
