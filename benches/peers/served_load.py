"""Load on a Triton server: prepared requests, where their data and answers lie, and what each of them took."""

import contextlib
import json
import os
import sys
import urllib.error
import urllib.request
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "server")]
import http_load  # noqa: E402
from harness import ServerError  # noqa: E402

INPUT = "IMAGE"
WARM_SECONDS = 1


class Post:
    """Triton's HTTP endpoints that are no inference."""

    def __init__(self, address):
        self.address = address

    def __call__(self, path, body=None):
        request = urllib.request.Request(
            f"http://{self.address}/v2/{path}", method="POST" if body is not None else "GET"
        )
        request.data = json.dumps(body).encode() if body is not None else None
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as error:
            raise ServerError(f"{path}: {error.read().decode(errors='replace')}") from None

    def work(self, model):
        """(requests, executions, samples, {stage: seconds}) since the server's start."""
        (stats,) = self(f"models/{model}/stats")["model_stats"]
        inference = stats["inference_stats"]
        stages = ("queue", "compute_input", "compute_infer", "compute_output")
        times = {stage: inference[stage]["ns"] / 1e9 for stage in stages}
        return inference["success"]["count"], stats["execution_count"], stats["inference_count"], times

    def infer(self, model, inputs, outputs):
        """Sends one request and returns the answer's JSON and its binary tail."""
        head, payload = http_load.inference(model, inputs, outputs)
        length = int(head.split(b"Inference-Header-Content-Length: ")[1].split(b"\r\n")[0])
        request = urllib.request.Request(
            f"http://{self.address}/v2/models/{model}/infer",
            data=head[-length:] + payload,
            headers={"Inference-Header-Content-Length": length, "Content-Type": "application/octet-stream"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                body, length = answer.read(), answer.headers.get("Inference-Header-Content-Length")
        except urllib.error.HTTPError as error:
            raise ServerError(f"`{model}`: {error.read().decode(errors='replace')}") from None
        cut = len(body) if length is None else int(length)
        return json.loads(body[:cut]), body[cut:]


class Memory:
    """A region that the server knows, of the system or of CUDA, and this side's access to it."""

    def __init__(self, stack, post, driver, kind, name, size):
        self.kind, self.name, self.size = kind, name, size
        if kind == "cuda":
            self._region = stack.enter_context(driver.allocate(size))
            body = {"raw_handle": {"b64": self._region.handle.decode()}, "device_id": 0, "byte_size": size}
            post(f"cudasharedmemory/region/{name}/register", body)
        else:
            self._shared = SharedMemory(create=True, size=size)
            stack.callback(self._shared.unlink)
            stack.callback(self._shared.close)
            body = {"key": f"/{self._shared.name.lstrip('/')}", "offset": 0, "byte_size": size}
            post(f"systemsharedmemory/region/{name}/register", body)
        # The server must let go of it before the memory goes.
        path = "cudasharedmemory" if kind == "cuda" else "systemsharedmemory"
        stack.callback(post, f"{path}/region/{name}/unregister", {})

    def write(self, data, offset):
        if self.kind == "cuda":
            self._region.write(np.frombuffer(data, np.uint8), offset)
        else:
            self._shared.buf[offset : offset + len(data)] = data

    def read(self, size, offset):
        if self.kind == "cuda":
            return self._region.read(np.uint8, size, offset).tobytes()
        return bytes(self._shared.buf[offset : offset + size])


class Request(NamedTuple):
    """The input of one: name, datatype, shape, bytes."""

    name: str
    datatype: str
    shape: list
    data: bytes


def of_images(images, count):
    """As many requests of `count` images as there are images; each begins with another."""
    requests = []
    for first in range(len(images)):
        some = [images[(first + i) % len(images)] for i in range(count)]
        longest = max(map(len, some))
        requests.append(
            Request(INPUT, "UINT8", [count, longest], b"".join(image.ljust(longest, b"\0") for image in some))
        )
    return requests


class Load:
    """The prepared requests to one model at one concurrency, and where their answers go, which have at most
    `answer_bytes`."""

    def __init__(self, stack, post, driver, model, output, requests, answer_bytes, options, concurrency):
        self.post, self.model, self.output, self.count = post, model, output, requests[0].shape[0]
        slot = -(-answer_bytes // 256) * 256
        inputs = outputs = None
        prefix = f"{model}_{self.count}_{concurrency}"
        if options.input != "body":
            inputs = Memory(
                stack, post, driver, options.input, f"{prefix}_in", sum(len(request.data) for request in requests)
            )
        if options.output != "body":
            outputs = Memory(stack, post, driver, options.output, f"{prefix}_out", slot * concurrency)
        sent, offset = [], 0
        for request in requests:
            data = request.data
            if inputs:
                inputs.write(data, offset)
                data = http_load.Place(inputs.name, offset, len(data))
                offset += data.size
            sent.append(request._replace(data=data))
        self.connections, self.slots = [], []
        for i in range(concurrency):
            place = outputs and http_load.Place(outputs.name, slot * i, answer_bytes)
            self.slots.append(place)
            # Neighbours start at different images, so that a batch is a mixture.
            turn = [sent[(k + i) % len(sent)] for k in range(len(sent))]
            self.connections.append([http_load.inference(model, [request], [(output, place)]) for request in turn])
        self.verify(requests, sent, outputs)

    def verify(self, requests, sent, memory):
        """Every slot gets a request's answer and must hold what came over the socket."""
        # No more than are compared: answers of many images are long.
        answers = [
            self.post.infer(self.model, [request], [(self.output, None)])[1] for request in requests[: len(self.slots)]
        ]
        for i, place in enumerate(self.slots):
            k = i % len(answers)
            _, body = self.post.infer(self.model, [sent[k]], [(self.output, place)])
            found = body if memory is None else memory.read(len(answers[k]), place.offset)
            if found != answers[k]:
                raise ServerError(f"`{self.model}`: slot {i} does not hold what came over the socket")

    def measure(self, server, options):
        run = lambda seconds: http_load.run(
            server.http_url, self.connections, seconds=seconds, processes=options.processes
        )
        run(WARM_SECONDS)
        before, busy = self.post.work(self.model), processor_seconds(server.pid)
        outcome = run(options.seconds)
        after = self.post.work(self.model)
        spent = [seconds - busy.get(thread, 0) for thread, seconds in processor_seconds(server.pid).items()]
        if outcome.errors:
            raise ServerError(f"`{self.model}`: {outcome.errors[0]}")
        requests = max(after[0] - before[0], 1)
        p50, p99 = np.percentile(outcome.latencies, [50, 99])
        return {
            "client": "http",
            "rate": outcome.rate,
            "images": outcome.rate * self.count,
            "p50_us": 1e6 * p50,
            "p99_us": 1e6 * p99,
            **{f"{stage}_us": 1e6 * (after[3][stage] - before[3][stage]) / requests for stage in after[3]},
            "batch": (after[2] - before[2]) / max(after[1] - before[1], 1),
            "server_cpu_us": 1e6 * sum(spent) / requests,
            "busiest_thread": max(spent) / outcome.seconds,
            "client_cpu_us": 1e6 * outcome.busy / len(outcome.latencies),
        }


def processor_seconds(pid):
    """Of each thread, by its number."""
    seconds = {}
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # It has ended meanwhile.
            fields = (thread / "stat").read_text().rsplit(")", 1)[1].split()
            seconds[thread.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds
