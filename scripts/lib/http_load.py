"""Requests over Triton's HTTP endpoint at rates that clients in Python usually do not reach: prepared bytes, one loop
over many connections, several processes. Knows the protocol, no model.

    requests = [[inference(...)] for each connection]
    outcome = run(server.http_url, requests, seconds=5, processes=4)

A worker process is this file as a program: the job comes in by stdin, its outcome leaves by stdout.
"""

import errno
import json
import os
import pickle
import select
import socket
import subprocess
import sys
import time
from typing import NamedTuple

import numpy as np

RECEIVE_BYTES = 1 << 20
WORKER_SECONDS = 120
END_OF_HEAD = b"\r\n\r\n"


class Place(NamedTuple):
    """Part of a region of shared memory that the server knows by name."""

    region: str
    offset: int
    size: int

    def parameters(self):
        named = {"shared_memory_region": self.region, "shared_memory_byte_size": self.size}
        return named | ({"shared_memory_offset": self.offset} if self.offset else {})


class Outcome(NamedTuple):
    """Latencies of the answered requests in seconds, the time they took together, the first errors, and the time of
    processors that the clients took."""

    latencies: np.ndarray
    seconds: float
    errors: list
    busy: float

    @property
    def rate(self):
        return len(self.latencies) / self.seconds


def inference(model, inputs, outputs):
    """The bytes of one request, in two parts so that equal payloads are kept once.

    `inputs`: (name, datatype, shape, bytes or Place); `outputs`: (name, Place or None for the answer's body).
    """
    payload, described = b"", []
    for name, datatype, shape, data in inputs:
        if isinstance(data, Place):
            parameters = data.parameters()
        else:
            parameters = {"binary_data_size": len(data)}
            payload = payload + data if payload else data
        described.append({"name": name, "datatype": datatype, "shape": shape, "parameters": parameters})
    wanted = [
        {"name": name, "parameters": place.parameters() if place else {"binary_data": True}} for name, place in outputs
    ]
    header = json.dumps({"inputs": described, "outputs": wanted}).encode()
    head = (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\nContent-Length: {len(header) + len(payload)}\r\n\r\n"
    )
    return head.encode() + header, payload


def run(address, connections, *, seconds=None, count=None, processes=1):
    """Keeps one request in flight on every connection, for so long or for `count` requests in all.

    `connections`: for each, the requests that it sends in turn. All are opened at once: the server gives a new one to
    the first of its threads that has no other to accept, for good, so that of connections that come one by one most end
    on its first thread."""
    processes = min(processes, len(connections))
    workers = []
    for i in range(processes):
        mine = connections[i::processes]
        share = None if count is None else count // processes + (i < count % processes)
        worker = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        workers.append(worker)
        pickle.dump((address, mine, seconds, share), worker.stdin)
        worker.stdin.flush()
    try:
        for worker in workers:
            if worker.stdout.readline() != b"ready\n":
                raise RuntimeError("a load worker did not start")
        for worker in workers:
            worker.stdin.write(b"go\n")
            worker.stdin.flush()
        results = [pickle.load(worker.stdout) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
    began, ended = min(r[1] for r in results), max(r[2] for r in results)
    errors = [error for r in results for error in r[3]]
    return Outcome(np.concatenate([r[0] for r in results]), ended - began, errors, sum(r[4] for r in results))


class _Connection:
    """One request in flight."""

    def __init__(self, requests):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests, self.next = requests, 0

    def open(self, host, port):
        """Begins to connect; what is sent waits for it."""
        self.socket.setblocking(False)
        error = self.socket.connect_ex((host, port))
        if error not in (0, errno.EINPROGRESS):
            raise OSError(error, os.strerror(error))
        self.socket.settimeout(WORKER_SECONDS)

    def send(self):
        head, payload = self.requests[self.next]
        self.next = (self.next + 1) % len(self.requests)
        self.head, self.missing = b"", None
        self.began = time.perf_counter()
        # A small request in one packet; a large payload without a copy.
        self.socket.sendall(head)
        if payload:
            self.socket.sendall(payload)

    def receive(self):
        """Whether the answer is complete; its body is only kept when it is an error."""
        data = self.socket.recv(RECEIVE_BYTES)
        if not data:
            raise ConnectionError("the server closed the connection")
        if self.missing is None:
            self.head += data
            end = self.head.find(END_OF_HEAD)
            if end < 0:
                return False
            lower = self.head[:end].lower()
            length = int(lower.split(b"\r\ncontent-length:", 1)[1].split(b"\r\n", 1)[0])
            self.missing = length - (len(self.head) - end - len(END_OF_HEAD))
        else:
            self.missing -= len(data)
            if len(self.head) < 1000:
                self.head += data
        return self.missing == 0

    def error(self):
        if self.head.startswith(b"HTTP/1.1 200"):
            return None
        return self.head[:1000].decode(errors="replace").replace("\r\n", " ")


def _work():
    address, jobs, seconds, count = pickle.load(sys.stdin.buffer)
    host, port = address.split(":")
    host, port = socket.gethostbyname(host), int(port)
    connections = [_Connection(requests) for requests in jobs]
    poll = select.epoll()
    by_number = {}
    for connection in connections:
        by_number[connection.socket.fileno()] = connection
    sys.stdout.buffer.write(b"ready\n")
    sys.stdout.buffer.flush()
    sys.stdin.buffer.readline()
    latencies, errors = [], []
    began, busy = time.perf_counter(), time.process_time()
    end = began + (seconds or WORKER_SECONDS)
    left = sys.maxsize if count is None else count
    flying = 0
    for connection in connections[:left]:
        connection.open(host, port)
    for connection in connections[:left]:
        poll.register(connection.socket, select.EPOLLIN)
        connection.send()
        flying, left = flying + 1, left - 1
    while flying:
        for number, _ in poll.poll(WORKER_SECONDS):
            connection = by_number[number]
            if not connection.receive():
                continue
            now = time.perf_counter()
            if error := connection.error():
                errors.append(error)
            else:
                latencies.append(now - connection.began)
            if left and now < end and len(errors) < 10:
                connection.send()
                left -= 1
            else:
                flying -= 1
    # CLOCK_MONOTONIC is the same in all processes, so the parent may compare.
    outcome = (np.array(latencies), began, time.perf_counter(), errors, time.process_time() - busy)
    pickle.dump(outcome, sys.stdout.buffer)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    _work()
