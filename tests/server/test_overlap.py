"""Batches of one instance that overlap: every answer belongs to its request, and unloading loses none."""

import threading

import pytest
import tritonclient.grpc as triton
from harness import Server, wait_until
from recorded import cases, write_model
from sending import alone, infer, statistics

CASE = cases("pipelines")["classify"]
OVERLAPPING = 'backend: "gesso"\nparameters { key: "max_batches_in_flight" value { string_value: "3" } }\n'
CLIENTS = 6
# What the server itself says of a model that it is unloading or loading.
AWAY = ("StatusCode.UNAVAILABLE", "StatusCode.NOT_FOUND")


@pytest.fixture
def served(tmp_path):
    write_model(tmp_path / "models", "overlapping", CASE.pipeline, OVERLAPPING)
    with Server(tmp_path / "models", models=["overlapping"]) as server:
        yield server


class Senders:
    """Clients that send samples until they are told to stop, and check every answer."""

    def __init__(self, url, limit=None):
        self.url, self.limit = url, limit
        self.right, self.errors, self.wrong = 0, [], []
        self.stopped = threading.Event()
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self._send, args=[i]) for i in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        if self.limit is None:
            self.stopped.set()
        for thread in self.threads:
            thread.join()

    def wait_for(self, answers):
        """Waits until there are so many right answers more."""
        goal = self.right + answers
        wait_until(lambda: self.right >= goal or self.wrong, f"{answers} requests are answered")

    def _send(self, first):
        with triton.InferenceServerClient(self.url) as client:
            sent = 0
            while not self.stopped.is_set() and sent != self.limit:
                i = (first + sent) % len(CASE.samples)
                answer = infer(client, "overlapping", alone({"IMAGE": CASE.inputs["IMAGE"][i]}), ["PIXELS"])
                sent += 1
                with self.lock:
                    if isinstance(answer, Exception):
                        self.errors.append(answer)
                    elif abs(answer[0][0] - CASE.outputs[0][i]).max() > CASE.tol:
                        self.wrong.append(i)
                    else:
                        self.right += 1


def test_answers_and_statistics_are_those_of_each_request(served):
    with Senders(served.grpc_url, limit=40) as senders:
        pass
    assert (senders.wrong, senders.errors) == ([], [])
    with triton.InferenceServerClient(served.grpc_url) as client:
        counted = statistics(client, "overlapping", CLIENTS * 40)
    assert counted.inference_stats.success.count == counted.inference_count == CLIENTS * 40
    assert counted.inference_stats.fail.count == 0


def test_reloading_under_load_loses_no_request(served):
    with triton.InferenceServerClient(served.grpc_url) as client:
        with Senders(served.grpc_url) as senders:
            for _ in range(5):
                senders.wait_for(5 * CLIENTS)
                client.unload_model("overlapping")
                client.load_model("overlapping")
            senders.wait_for(5 * CLIENTS)
    assert served.alive, served.log_tail()
    assert senders.wrong == []
    # A request that was taken is answered, and with its pixels; one that came while the model was away never was.
    surprises = [error for error in senders.errors if error.status() not in AWAY]
    assert not surprises, surprises[:3]
    assert "was dropped without an answer" not in served.log


def test_a_server_that_is_told_to_end_answers_what_it_has_taken(served):
    with Senders(served.grpc_url) as senders:
        senders.wait_for(CLIENTS)
        # Requests that are under way go on. While clients send until the end, its gRPC front end hangs now and then.
        senders.stopped.set()
        assert served.stop() == 0, served.log_tail()
    assert senders.wrong == []
