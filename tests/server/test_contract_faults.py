"""Clients that go, servers that are told to go: who was taken is answered, and nobody else pays."""

import os
import signal
import socket
import threading

import numpy as np
import pytest
import tritonclient.grpc as triton
from contract_models import CASES, CLASSIFY, WAIT, X, config, parameter
from harness import LOOPBACK, Server, wait_until
from protocols import Client
from recorded import write_model
from sending import alone, infer

IMAGES = CLASSIFY.inputs["IMAGE"]
LEAVERS = 60
# What a server that is on its way out says of new requests, and a client whose server has gone.
GOING = ("StatusCode.UNAVAILABLE", "StatusCode.NOT_FOUND", "StatusCode.CANCELLED")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("faults")
    write_model(folder, "plain", CLASSIFY.pipeline, config("max_batch_size: 32", WAIT.replace("300000", "20000")))
    with Server(folder) as server:
        yield server


def open_files(server):
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def http_request(image):
    """A whole request in HTTP's binary form."""
    head = '{"inputs":[{"name":"IMAGE","shape":[1,%d],"datatype":"UINT8","parameters":{"binary_data_size":%d}}]}'
    head = (head % (image.nbytes, image.nbytes)).encode()
    body = head + image.tobytes()
    lines = f"POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\nInference-Header-Content-Length: {len(head)}\r\n"
    return lines.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("sent", ["all of it", "half of it"])
def test_a_client_that_disconnects_costs_nothing(served, sent):
    host, port = served.http_url.split(":")
    request = http_request(IMAGES[0])
    before = open_files(served)
    stop = threading.Event()
    wrong = []

    def good():
        with Client("grpc", served) as client:
            while not stop.is_set():
                found = client.infer("plain", {"IMAGE": IMAGES[1][None]}).as_numpy("PIXELS")[0]
                if abs(found - CLASSIFY.outputs[0][1]).max() > CLASSIFY.tol:
                    wrong.append(found)

    others = [threading.Thread(target=good) for _ in range(2)]
    for thread in others:
        thread.start()
    for _ in range(LEAVERS):
        with socket.create_connection((host, int(port))) as leaver:
            leaver.sendall(request if sent == "all of it" else request[: len(request) // 2])
    stop.set()
    for thread in others:
        thread.join()
    assert not wrong and served.alive
    # The server's own pollers may open a few.
    wait_until(lambda: open_files(served) < before + LEAVERS // 2, "the connections are closed")
    assert host == LOOPBACK and "was dropped without an answer" not in served.log


@pytest.mark.parametrize("batches", ["1", "3"], ids=["one batch", "batches that overlap"])
def test_a_server_that_is_told_to_end_drains(tmp_path, batches):
    write_model(
        tmp_path, "busy", CLASSIFY.pipeline, config("max_batch_size: 8", parameter("max_batches_in_flight", batches))
    )
    lock, right, errors = threading.Lock(), [], []

    def send(i):
        with triton.InferenceServerClient(server.grpc_url) as client:
            while True:
                answer = infer(client, "busy", alone({"IMAGE": IMAGES[i]}), ["PIXELS"])
                with lock:
                    if isinstance(answer, Exception):
                        errors.append(answer)
                        return
                    right.append(abs(answer[0][0] - CLASSIFY.outputs[0][i]).max() <= CLASSIFY.tol)

    with Server(tmp_path) as server:
        senders = [threading.Thread(target=send, args=[i % 3]) for i in range(8)]
        for sender in senders:
            sender.start()
        wait_until(lambda: len(right) > 20 or errors, "requests are answered")
        os.kill(server.pid, signal.SIGTERM)
        for sender in senders:
            sender.join()
        assert server.stop() == 0, server.log_tail()
        log = server.log
    assert len(right) > 20 and all(right)
    assert [str(error) for error in errors if error.status() not in GOING] == []
    assert "was dropped without an answer" not in log and "Signal (11)" not in log


def test_a_broken_file_put_in_place_of_a_good_one_leaves_the_good_one_serving(tmp_path):
    """The server keeps what it serves when the new version does not load."""
    folder = write_model(tmp_path, "kept", CASES["plus_one"].pipeline, config("max_batch_size: 4", X))
    row = np.array([[1, 2, 3]], np.float32)
    # This server waits in vain for the version that never was when it ends, whatever the backend: not for long.
    arguments = ["--exit-timeout-secs=1"]
    with Server(tmp_path, models=["kept"], arguments=arguments) as server, Client("grpc", server) as client:
        (folder / "1" / "model.dali").write_bytes(b"broken")
        with pytest.raises(Exception, match="not a serialized DALI pipeline"):
            client.connected.load_model("kept")
        np.testing.assert_array_equal(client.infer("kept", {"X": row}).as_numpy("SUM"), row + 1)
