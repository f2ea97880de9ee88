"""One client of scripts/soak --long, a program: sends prepared requests over many connections, compares each answer
with the one that the request got alone, and counts in a file that outlives it. It is killed now and then."""

import json
import math
import mmap
import random
import select
import socket
import sys
import time

import numpy as np

ANSWER_BYTES = 1 << 20
SECONDS = 120
# What the server itself says of a model that it is unloading or loading.
AWAY = (b"is not ready", b"not found", b"unavailable", b"has no available versions")
AWAY_SECONDS = 0.01


class Counter:
    """Places in the file of counters: answers by kind, then latencies, eight bins for each factor of two of
    microseconds."""

    RIGHT, REFUSED, AWAY, WRONG, SAMPLES, LATENCIES = range(6)
    BINS = 8 * 28

    @staticmethod
    def bin(seconds):
        """Where a latency is counted."""
        return Counter.LATENCIES + min(int(8 * math.log2(max(seconds * 1e6, 1))), Counter.BINS - 1)

    @staticmethod
    def quantile(bins, share):
        """The latency in seconds that this share of a histogram is not above; 0 for none."""
        if not bins.sum():
            return 0.0
        return 2 ** ((int(np.searchsorted(np.cumsum(bins), share * bins.sum())) + 1) / 8) / 1e6


COUNTERS = Counter.LATENCIES + Counter.BINS


class Connection:
    """One request at a time."""

    def __init__(self, address):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request):
        self.request, self.data, self.length, self.began = request, b"", None, time.perf_counter()
        self.socket.sendall(request[0])

    def receive(self):
        """Whether the answer is there."""
        part = self.socket.recv(ANSWER_BYTES)
        if not part:
            raise ConnectionError("the server closed the connection")
        self.data += part
        if self.length is None:
            end = self.data.find(b"\r\n\r\n")
            if end < 0:
                return False
            self.head = self.data[:end].lower()
            self.length = end + 4 + self._field(b"content-length", 0)
        return len(self.data) >= self.length

    def _field(self, name, default):
        _, found, rest = self.head.partition(b"\r\n" + name + b":")
        return int(rest.split(b"\r\n", 1)[0]) if found else default

    def tensor(self):
        """The bytes behind the answer's JSON, or None where the server refused."""
        if not self.head.startswith(b"http/1.1 200"):
            return None
        body = self.length - self._field(b"content-length", 0)
        return self.data[body + self._field(b"inference-header-content-length", 0) : self.length]


def alone(address, request):
    """The tensor that a request is answered with, or None."""
    connection = Connection(address)
    connection.send((request, None))
    while not connection.receive():
        pass
    connection.socket.close()
    return connection.tensor()


def outcome(connection, tolerance):
    """Which counter an answer belongs to; it may differ from what is expected by so much."""
    expected, found = connection.request[1], connection.tensor()
    if found is None and any(words in connection.data for words in AWAY):
        return Counter.AWAY
    if found == expected:
        return Counter.REFUSED if found is None else Counter.RIGHT
    if tolerance and found and expected and len(found) == len(expected):
        apart = np.abs(np.frombuffer(found, "<f4") - np.frombuffer(expected, "<f4")).max()
        return Counter.RIGHT if apart <= tolerance else Counter.WRONG
    return Counter.WRONG


def main():
    address, job, counters, count, tolerance = sys.argv[1:]
    requests = [(bytes.fromhex(request), answer and bytes.fromhex(answer)) for request, answer in json.load(open(job))]
    with open(counters, "r+b") as file:
        counted = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint64)
    connections, poll = {}, select.epoll()
    for _ in range(int(count)):
        connection = Connection(address)
        connections[connection.socket.fileno()] = connection
        poll.register(connection.socket, select.EPOLLIN)
        connection.send(random.choice(requests))
    while True:
        for number, _ in poll.poll(SECONDS):
            connection = connections[number]
            if not connection.receive():
                continue
            kind = outcome(connection, float(tolerance))
            counted[kind] += 1
            if kind == Counter.WRONG:
                print(
                    f"expected {connection.request[1] and 'a tensor' or 'an error'}, found: {connection.data[:600]!r}",
                    file=sys.stderr,
                    flush=True,
                )
            elif kind == Counter.AWAY:
                time.sleep(AWAY_SECONDS)
            else:
                counted[Counter.bin(time.perf_counter() - connection.began)] += 1
            connection.send(random.choice(requests))


if __name__ == "__main__":
    main()
