"""The soak test of scripts/soak: load with reloads, and what must not grow. Needs what scripts/demo sets up."""

import argparse
import os
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests" / "server")]
import load  # noqa: E402
from harness import Server, resident_bytes  # noqa: E402

MODEL = "preprocess"
# What the server itself says of a model that it is unloading or loading.
AWAY = ("StatusCode.UNAVAILABLE", "StatusCode.NOT_FOUND")
# A client that was told so asks again after this long.
AWAY_SECONDS = 0.02
WATCH_SECONDS = 0.25
# The first part of the run, in which pools and caches fill, is no measure for growth.
WARM_UP = 0.3
# What the rest may add: memory as a share and in bytes, threads and files by number. Noise, not growth.
MEMORY_SHARE, MEMORY_BYTES = 0.08, 48e6
THREADS, FILES, DEVICE_BYTES = 2, 2, 48e6


class Look(NamedTuple):
    """The server's process at one moment: bytes of memory, threads, open files; bytes in use on a GPU, if there is
    one."""

    memory: float
    threads: float
    files: float
    device: float = 0

    @classmethod
    def at(cls, pid, driver=None):
        threads, files = (len(os.listdir(f"/proc/{pid}/{folder}")) for folder in ("task", "fd"))
        return cls(resident_bytes(pid), threads, files, driver.used_bytes() if driver else 0)


def swing(part, field):
    """The middle half of the looks lies within so much. Each reload gives back what the model had and the requests
    behind it take it again: between two reloads memory rises by half, and no leak is needed for that."""
    lower, _, upper = statistics.quantiles([look[field] for look in part], n=4)
    return upper - lower


def growth(looks):
    """Medians of the first and the last third of the looks behind the warming up, and what grew in between by more
    than noise and by more than it swings within a third, a line each."""
    looks = looks[int(len(looks) * WARM_UP) :]
    if len(looks) < 9:
        return Look(0, 0, 0), Look(0, 0, 0), ["the run was too short to see growth"]
    third = len(looks) // 3
    parts = looks[:third], looks[-third:]
    early, late = (Look(*(statistics.median(each) for each in zip(*part))) for part in parts)
    noise = max(MEMORY_SHARE * early.memory, MEMORY_BYTES), THREADS, FILES, DEVICE_BYTES
    allowed = [max(limit, *(swing(part, field) for part in parts)) for field, limit in enumerate(noise)]
    grown = [
        f"{name} grew from {before:.0f} to {after:.0f}"
        for name, before, after, limit in zip(Look._fields, early, late, allowed)
        if after - before > limit
    ]
    return early, late, grown


class Soak:
    """Clients, reloads and looks at the process, until the time or the requests are over."""

    def __init__(self, server, options, items, expected, output):
        self.server, self.options, self.expected, self.output = server, options, expected, output
        self.items, self.lock, self.sent = items, threading.Lock(), 0
        self.over = threading.Event()
        self.right, self.refused, self.wrong = 0, [], []
        self.reloads, self.looks = [], []
        self.reloading = threading.Event()
        # See `growth`.
        self.early, self.late = Look(0, 0, 0), Look(0, 0, 0)

    def run(self):
        work = [self._client] * self.options.clients + [self._reload, self._watch]
        threads = [threading.Thread(target=self._survive, args=[each], daemon=True) for each in work]
        for thread in threads:
            thread.start()
        self.over.wait(self.options.seconds)
        self.over.set()
        for thread in threads:
            thread.join()

    def _survive(self, work):
        """A thread that dies of what nobody expected is a fault, and the end."""
        try:
            work()
        except Exception as error:
            self.wrong.append(f"{work.__name__}: {error!r}")
            self.over.set()

    def _next(self):
        with self.lock:
            if self.sent == self.options.requests:
                self.over.set()
            if self.over.is_set():
                return None
            self.sent += 1
            return self.items[self.sent % len(self.items)]

    def _client(self):
        with triton.InferenceServerClient(self.server.grpc_url) as client:
            while item := self._next():
                asked = time.monotonic()
                outcome = load.send(client, MODEL, self.output, item, self.expected, load.TOLERANCE)
                if outcome.fault is None:
                    with self.lock:
                        self.right += 1
                elif outcome.fault.startswith(AWAY):
                    self.refused.append((asked, time.monotonic(), outcome.fault))
                    time.sleep(AWAY_SECONDS)
                else:
                    self.wrong.append(f"{item.name}: {outcome.fault}")

    def _reload(self):
        with triton.InferenceServerClient(self.server.grpc_url) as client:
            while not self.over.wait(self.options.reload):
                self.reloading.set()
                began = time.monotonic()
                client.unload_model(MODEL)
                client.load_model(MODEL)
                self.reloads.append((began, time.monotonic()))
                self.reloading.clear()

    def _watch(self):
        while not self.over.wait(WATCH_SECONDS):
            if not self.server.alive:
                self.wrong.append("the server died")
                self.over.set()
                return
            # Without the model there is less of all.
            if not self.reloading.is_set():
                self.looks.append(Look.at(self.server.pid))

    def faults(self):
        """What is not as it must be, a line each."""
        faults = [f"wrong: {fault}" for fault in self.wrong[:5]]
        if len(self.wrong) > len(faults):
            faults.append(f"and {len(self.wrong) - len(faults)} more")
        without = [fault for asked, told, fault in self.refused if not self._reloaded(asked, told)]
        faults += [f"refused though nothing was reloaded: {fault}" for fault in without[:5]]
        if self.right + len(self.refused) + len(self.wrong) < self.sent:
            faults.append("a request has no outcome")
        if "was dropped without an answer" in self.server.log:
            faults.append("a request was dropped without an answer")
        self.early, self.late, grown = growth(self.looks)
        return faults + grown

    def _reloaded(self, asked, told):
        """Whether a reload was under way at some time between a request and its answer."""
        return any(began <= told and asked <= ended for began, ended in self.reloads)


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak")
    parser.add_argument("--short", action="store_true", help="25 seconds with a reload every 3")
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--requests", type=int, default=200_000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--reload", type=float, default=60, help="seconds between reloads")
    parser.add_argument("--bad", type=float, default=0.05, help="share of broken images")
    options = parser.parse_args()
    if options.short:
        options.seconds, options.reload = 25, 3
    return options


def main():
    options = arguments()
    encoded = load.good_images(None)
    good = [load.sample(name, data) for name, data in encoded.items()]
    bad = load.bad_images(max(encoded.values(), key=len))
    items = load.schedule(good, bad, 20 * len(good) * len(bad), options.bad)
    with Server(ROOT / "model_repository", models=[MODEL]) as server:
        with triton.InferenceServerClient(server.grpc_url) as client:
            output = client.get_model_metadata(MODEL).outputs[0].name
            try:
                expected = {item.name: client.infer(MODEL, [item.request]).as_numpy(output) for item in good}
            except InferenceServerException as error:
                raise SystemExit(f"error: {error}") from None
        soak = Soak(server, options, items, expected, output)
        began = time.monotonic()
        soak.run()
        seconds = time.monotonic() - began
        faults = soak.faults()
        status = server.stop()
    print(
        f"{soak.sent} requests in {seconds:.0f} s: {soak.right} as they should be, {len(soak.refused)} refused by the server "
        f"during {len(soak.reloads)} reloads, {len(soak.wrong)} wrong"
    )
    early, late = soak.early, soak.late
    print(
        f"    memory {early.memory / 1e6:.0f} MB early, {late.memory / 1e6:.0f} MB late; threads {early.threads:.0f} and "
        f"{late.threads:.0f}, open files {early.files:.0f} and {late.files:.0f}"
    )
    if status != 0:
        faults.append(f"the server left with status {status}")
    if faults:
        raise SystemExit("error: " + "\nerror: ".join(faults))


if __name__ == "__main__":
    main()
