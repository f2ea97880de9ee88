#!/usr/bin/env python3
"""How long a client with small images waits while another sends what takes long, to the same model on two cores.

    benches/neighbours.py                          all attacks, 20 s each, on a server of its own
    benches/neighbours.py --only webp png          some of them
    benches/neighbours.py --set slow_request_ms=3600000    with parameters of the model: so, nothing is set aside
    benches/neighbours.py --only all --set max_request_ms=500   every kind, and how far its requests go beyond a limit
    benches/neighbours.py --only large-jpeg --pool 0       with a server that keeps no requests for reuse: what is left is Gesso's

One client sends a 500 x 375 JPEG and waits for the answer, again and again; the model decodes, resizes and normalizes it, by one
instance with default settings. Each line is one attack: waits of that client before and during it, what became of the attackers' requests, and
the server's memory before, at most, and a few seconds after. A table of the worst figures of each attack ends the output. Server and clients are bound to two cores where there are more.
"""

import argparse
import io
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "server")]
import bombs  # noqa: E402
from harness import Server, wait_until  # noqa: E402
from recorded import write_model  # noqa: E402

CORES = 2
# What became of a request, as far as it is shown.
ANSWERED, SHOWN = "answered", 160
# After an attack until its memory is looked at.
REST_SECONDS = 3
CONFIG = 'backend: "gesso"\nmax_batch_size: 64\ninstance_group [ { kind: KIND_CPU count: 1 } ]\n'
# What is sent (files of one request), and on how many connections.
ATTACKS = {
    "webp": (lambda: [bombs.webp()] * 10, 1),
    "progressive": (lambda: [bombs.progressive()] * 8, 1),
    "png": (lambda: [bombs.png()], 2),
    "jpeg": (lambda: [bombs.jpeg(grain=128, quality=30)], 2),
    # Of 55 MB. The server's gRPC keeps the last requests, eight of them, with all of their bytes for reuse: see `--pool`.
    "large-jpeg": (lambda: [bombs.jpeg(grain=1)], 2),
    "no-image": (lambda: [bytes(55_000_000)], 2),
    "jpeg-2000": (lambda: [bombs.jpeg_2000()] * 4, 2),
    "gif": (lambda: [bombs.gif_codes()], 2),
    "png-chunks": (lambda: [bombs.png_chunks()], 2),
    "tiff-strips": (lambda: [bombs.tiff_strips()], 2),
}
USUAL = ["webp", "progressive", "png", "jpeg"]


def request(files):
    longest = max(map(len, files))
    rows = [np.frombuffer(file.ljust(longest, b"\0"), np.uint8) for file in files]
    made = triton.InferInput("IMAGE", [len(files), longest], "UINT8")
    made.set_data_from_numpy(np.stack(rows))
    return made


def attack(url, name, until, told):
    """Sends the attack's requests one after the other; tells what became of each."""
    sent = request(ATTACKS[name][0]())
    told.put(None)
    with triton.InferenceServerClient(url) as client:
        while time.time() < until.value:
            began = time.perf_counter()
            try:
                client.infer("preprocess", [sent])
                outcome = ANSWERED
            except InferenceServerException as error:
                outcome = f"{error.status()}: {error.message()}"[:SHOWN]
            told.put((outcome, 1e3 * (time.perf_counter() - began)))


class Good(threading.Thread):
    """The client with small images, from start to `stop`."""

    def __init__(self, url, file):
        super().__init__(daemon=True)
        self.url, self.sent, self.over = url, request([file]), threading.Event()
        self.waits, self.first, self.wrong = [], None, 0

    def run(self):
        with triton.InferenceServerClient(self.url) as client:
            while not self.over.is_set():
                began = time.perf_counter()
                answer = client.infer("preprocess", [self.sent]).as_numpy("PIXELS")
                self.waits.append(1e3 * (time.perf_counter() - began))
                self.first = answer if self.first is None else self.first
                self.wrong += not np.array_equal(answer, self.first)

    def stop(self):
        self.over.set()
        self.join()
        p50, p99 = np.percentile(self.waits, [50, 99])
        return f"{len(self.waits):6} answers, p50 {p50:6.2f}  p99 {p99:7.2f}  worst {max(self.waits):8.2f} ms", self.wrong


def measure(server, name, file, seconds):
    """Prints the figures of an attack; returns its line of the table."""
    connections = ATTACKS[name][1]
    context = multiprocessing.get_context("spawn")
    told, until = context.Queue(), context.Value("d", float("inf"))
    clients = [context.Process(target=attack, args=[server.grpc_url, name, until, told]) for _ in range(connections)]
    idle = Good(server.grpc_url, file)
    idle.start()
    time.sleep(seconds / 2)
    figures, wrong = idle.stop()
    print(f"{name}\n  alone     {figures}", flush=True)
    before = server.rss
    for client in clients:
        client.start()
    for _ in clients:
        assert told.get() is None
    good, most, outcomes, longest = Good(server.grpc_url, file), before, {}, 0.0
    good.start()
    until.value = time.time() + seconds
    while any(client.is_alive() for client in clients):
        most = max(most, server.rss)
        time.sleep(0.05)
        if time.time() >= until.value and not good.over.is_set():
            figures, more = good.stop()
            print(f"  attacked  {figures}", flush=True)
        while not told.empty():
            outcome, took = told.get()
            outcomes[outcome], longest = outcomes.get(outcome, 0) + 1, max(longest, took)
    for client in clients:
        client.join()
    while not told.empty():
        outcome, took = told.get()
        outcomes[outcome], longest = outcomes.get(outcome, 0) + 1, max(longest, took)
    time.sleep(REST_SECONDS)
    print(f"  memory    {before / 1e6:.0f} MB before, {most / 1e6:.0f} MB at most, {server.rss / 1e6:.0f} MB after")
    for outcome, count in outcomes.items():
        print(f"  attackers {count} x {outcome}")
    if wrong + more:
        raise SystemExit(f"error: {wrong + more} answers to the small image differ")
    return f"{name:12} {max(idle.waits):10.1f} {max(good.waits):12.1f} {longest:14.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[*ATTACKS, "all"], default=USUAL)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--pool", type=int, metavar="N", help="requests that the server's gRPC keeps for reuse, 8 otherwise")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="parameters of the model")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:CORES])
    small = io.BytesIO()
    bombs.noise(500, 375, grain=2).save(small, "JPEG", quality=90)
    lines = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n'
        for key, value in (setting.split("=", 1) for setting in options.set)
    ]
    with tempfile.TemporaryDirectory() as folder:
        write_model(folder, "preprocess", (ROOT / "benches" / "pipeline.dali").read_bytes(), CONFIG + "".join(lines))
        arguments = [] if options.pool is None else [f"--grpc-infer-allocation-pool-size={options.pool}"]
        with Server(folder, models=["preprocess"], arguments=arguments) as server:
            warm = Good(server.grpc_url, small.getvalue())
            warm.start()
            wait_until(lambda: len(warm.waits) > 200, "the server is warm")
            warm.stop()
            names = list(ATTACKS) if "all" in options.only else options.only
            table = [measure(server, name, small.getvalue(), options.seconds) for name in names]
            # With `max_request_ms` no request should take twice as long.
            print(f"{'worst, in ms':12} {'alone':>10} {'beside it':>12} {'its requests':>14}", *table, sep="\n")


if __name__ == "__main__":
    main()
