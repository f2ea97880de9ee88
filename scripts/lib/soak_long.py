"""The long form of scripts/soak: millions of small requests over HTTP, in batches of changing size, every twentieth
broken, with clients that are killed and a model that is reloaded all the while. What the server's process looked like
stands in a report with plots."""

import argparse
import io
import json
import mmap
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import soak_report
from cuda_driver import Driver
from PIL import Image
from soak import Look, growth
from soak_client import COUNTERS, Counter, alone

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "server")]
import http_load  # noqa: E402
import load  # noqa: E402
from harness import Server  # noqa: E402

MODEL, INPUT, OUTPUT = "soak", "encoded", "__CropMirrorNormalize_2"
# Decodes, resizes and normalizes.
PIPELINE = ROOT / "tests" / "plugin" / "models" / "classify" / "1" / "model.dali"
BATCHES = (1, 1, 1, 2, 3, 4)
IMAGES, REQUESTS, BROKEN_SHARE = 24, 400, 0.05
SMALLEST, LARGEST = 16, 96
WATCH_SECONDS = 1
# On a GPU a file may be decoded by its engines or its cores, which round apart, as the batch is: so many levels, as the
# pipeline scales them.
TOLERANCE_ON_GPU = 6 / 64


def images():
    """Small JPEGs and PNGs of many sizes."""
    numbers = np.random.default_rng(1)
    for i in range(IMAGES):
        height, width = (int(side) for side in numbers.integers(SMALLEST, LARGEST, 2))
        coarse = numbers.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), np.uint8)
        data = io.BytesIO()
        Image.fromarray(coarse).resize((width, height)).save(
            data, *(("PNG",) if i % 6 == 5 else ("JPEG",)), quality=60 + i
        )
        yield data.getvalue()


def requests(server):
    """Prepared requests, each with the tensor that it is answered with alone, or None."""
    numbers, good = random.Random(1), list(images())
    bad = [good[0][: len(good[0]) // 2], bytes(range(256)), load.with_size(good[0], load.HUGE_SIDE)]
    for _ in range(REQUESTS):
        files = [numbers.choice(good) for _ in range(numbers.choice(BATCHES))]
        if numbers.random() < BROKEN_SHARE:
            files[numbers.randrange(len(files))] = numbers.choice(bad)
        # Zeros behind the end of a file do no harm, so files of different length go into one request.
        length = max(map(len, files))
        data = b"".join(file.ljust(length, b"\0") for file in files)
        request = b"".join(http_load.inference(MODEL, [(INPUT, "UINT8", [len(files), length], data)], [(OUTPUT, None)]))
        yield request, alone(server.http_url, request)


class Clients:
    """Processes that send; each counts in a file, so that nothing is lost when it is killed."""

    def __init__(self, server, folder, options):
        self.command = [sys.executable, Path(__file__).with_name("soak_client.py"), server.http_url, folder / "job"]
        self.tail, self.folder = [str(options.connections), str(TOLERANCE_ON_GPU if options.gpu else 0)], folder
        job = [[request.hex(), answer and answer.hex()] for request, answer in requests(server)]
        (folder / "job").write_text(json.dumps(job))
        self.counters = []
        for number in range(options.clients):
            (folder / f"{number}").write_bytes(bytes(8 * COUNTERS))
            with open(folder / f"{number}", "r+b") as file:
                self.counters.append(np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint64))
        self.running = [self._start(number) for number in range(options.clients)]

    def _start(self, number):
        return subprocess.Popen([*self.command, self.folder / f"{number}", *self.tail])

    def kill(self, number):
        """Ends one in the middle of its requests, and starts another."""
        number %= len(self.running)
        self.running[number].kill()
        self.running[number].wait()
        self.running[number] = self._start(number)

    def end(self):
        for process in self.running:
            process.kill()
            process.wait()

    def sums(self):
        return np.sum(self.counters, axis=0).astype(np.int64)


def reload(server):
    for action in ("unload", "load"):
        request = urllib.request.Request(f"http://{server.http_url}/v2/repository/models/{MODEL}/{action}", b"{}")
        urllib.request.urlopen(request, timeout=60).read()


def soak(options, server, clients):
    """Until the requests or the time are over. Rows of (seconds, look, requests, p50, p99), how many reloads and kills,
    and faults."""
    rows, faults, events = [], [], {"reload": 0, "kill": 0}
    driver = Driver() if options.gpu else None
    began, before = time.monotonic(), clients.sums()
    while not faults:
        time.sleep(WATCH_SECONDS)
        at, now = time.monotonic() - began, clients.sums()
        if not server.alive:
            faults.append("the server died")
            break
        latencies = (now - before)[Counter.LATENCIES :]
        before, done = now, int(now[: Counter.WRONG].sum())
        rows.append(
            (at, Look.at(server.pid, driver), done, *(Counter.quantile(latencies, share) for share in (0.5, 0.99)))
        )
        if now[Counter.WRONG]:
            faults.append(f"{now[Counter.WRONG]} wrong answers")
        if done >= options.requests or at >= options.seconds:
            break
        for what, every, act in (
            ("reload", options.reload, lambda: reload(server)),
            ("kill", options.kill, lambda: clients.kill(events["kill"])),
        ):
            if at >= (events[what] + 1) * every:
                act()
                events[what] += 1
    return rows, events, faults


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak --long")
    parser.add_argument("--requests", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=86_400)
    parser.add_argument("--clients", type=int, default=2, help="processes")
    parser.add_argument("--connections", type=int, default=16, help="of each client")
    parser.add_argument("--reload", type=float, default=30, help="seconds between reloads")
    parser.add_argument("--kill", type=float, default=10, help="seconds until a client is killed")
    parser.add_argument("--gpu", action="store_true", help="an instance on a GPU")
    parser.add_argument("--report", type=Path, default=ROOT / ".cache" / "soak" / "soak.md")
    return parser.parse_args()


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="gesso-soak-") as folder:
        folder = Path(folder)
        model = folder / "models" / MODEL
        (model / "1").mkdir(parents=True)
        (model / "1" / "model.dali").write_bytes(PIPELINE.read_bytes())
        kind = "KIND_GPU" if options.gpu else "KIND_CPU"
        (model / "config.pbtxt").write_text(f'backend: "gesso"\ninstance_group {{ kind: {kind} }}\n')
        with Server(folder / "models", models=[MODEL]) as server:
            clients = Clients(server, folder, options)
            try:
                rows, events, faults = soak(options, server, clients)
            finally:
                clients.end()
            status = server.stop()
        sums = clients.sums()
    early, late, grown = growth([row[1] for row in rows])
    faults += grown
    if status != 0:
        faults.append(f"the server left with status {status}")
    print(
        soak_report.write(
            options.report, rows, sums, events, (early, late), faults, Driver().name if options.gpu else None
        )
    )
    if faults:
        raise SystemExit("error: " + "\nerror: ".join(faults))


if __name__ == "__main__":
    main()
