"""scripts/soak --all: one real server with every feature of Triton's and of Gesso's on at the same time, each asked by
threads of its own for an hour, and every answer compared with the right one. `soak_features.py` has the models and the
requests. What the server's process looked like stands in a report with plots.

At the end each feature must have left a sign in the server's metrics, files or log: one that was not on is a fault."""

import argparse
import collections
import json
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import soak_report
import tritonclient.grpc as triton
from soak import Look, growth
from soak_features import KINDS, PATIENCE_SECONDS, THREADS, Asker, Right, Wrong, arguments_of, total, write_repository
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "server")]
import bombs  # noqa: E402
from contract_models import CASES, CLASSIFY  # noqa: E402
from harness import Server  # noqa: E402
from hostile_host import Host  # noqa: E402
from sending import tensor  # noqa: E402

WATCH_SECONDS = 1
# The model that comes over the network stays so long, and is away so long.
VISIT_SECONDS, AWAY_SECONDS = 2, 0.2
# Of the pictures whose requests are cancelled: large enough that some are in the middle.
LARGE_SIDE = 2_000
# The host's memory of what it was asked is ours, not the server's.
FILES = {str(i): CLASSIFY.inputs["IMAGE"][i].tobytes() for i in (0, 1)}
# Three numbers of a recorded request and three of its answer.
RECORD_BYTES = 24
# After so many faults there is nothing more to learn.
MOST_FAULTS = 20


class Everything:
    """Threads that ask, one that loads and unloads a model, and the looks at the process, until the time is over."""

    def __init__(self, server, host, folder, options):
        self.server, self.host, self.folder, self.options = server, host, folder, options
        self.right, self.over, self.lock = Right(), threading.Event(), threading.Lock()
        self.counts = {kind: collections.Counter() for kind in KINDS}
        self.faults, self.latencies, self.rows = [], [], []
        self.visits, self.visiting = 0, threading.Event()
        self.signs, self.shown = collections.Counter(), ""
        files = {"webp": bombs.webp(LARGE_SIDE, LARGE_SIDE), "progressive": bombs.progressive(LARGE_SIDE, LARGE_SIDE)}
        self.large = {kind: np.frombuffer(file, np.uint8)[None] for kind, file in files.items()}
        with triton.InferenceServerClient(server.grpc_url) as client:
            self.large_answers = {
                kind: client.infer("plain", [tensor("IMAGE", file)]).as_numpy("PIXELS")
                for kind, file in self.large.items()
            }

    def run(self):
        threads = [threading.Thread(target=self.guarded, args=[self.visit], daemon=True)]
        number = 0
        for kind, ask in KINDS.items():
            if self.options.only and self.options.only not in kind:
                continue
            for _ in range(THREADS.get(kind, 1)):
                work = [self.ask, kind, ask, number]
                threads.append(threading.Thread(target=self.guarded, args=work, daemon=True))
                number += 1
        for thread in threads:
            thread.start()
        began = time.monotonic()
        while not self.over.wait(WATCH_SECONDS) and time.monotonic() - began < self.options.seconds:
            self.guarded(self.look, time.monotonic() - began)
        self.over.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
            if thread.is_alive():
                self.fault(f"a request has no answer after {PATIENCE_SECONDS} s")

    def fault(self, text):
        with self.lock:
            self.faults.append(text)
        print(f"fault: {text}", file=sys.stderr, flush=True)
        if len(self.faults) >= MOST_FAULTS or not self.server.alive:
            self.over.set()

    def guarded(self, work, *given):
        """What nobody expected is a fault and ends the run."""
        try:
            work(*given)
        except Exception as error:
            self.fault(f"{work.__name__}: {type(error).__name__}: {error}")
            self.over.set()

    def ask(self, kind, ask, number):
        asker = Asker(self, number)
        while not self.over.is_set():
            began = time.perf_counter()
            try:
                outcome = ask(asker)
            except (Wrong, InferenceServerException) as wrong:
                outcome = "wrong"
                self.fault(f"{kind}: {wrong}")
            with self.lock:
                self.counts[kind][outcome] += 1
                self.latencies.append(time.perf_counter() - began)
        asker.close()

    def visit(self):
        """A model over the network, with its file: version 1 adds 1, version 2 adds 2."""
        with triton.InferenceServerClient(self.server.grpc_url) as client:
            while not self.over.is_set():
                version = 1 + self.visits % 2
                settings = {
                    "backend": "gesso",
                    "max_batch_size": 4,
                    "instance_group": [{"kind": "KIND_CPU", "count": 1}],
                    "version_policy": {"all": {}},
                }
                pipeline = CASES["plus_one" if version == 1 else "plus_two"].pipeline
                files = {f"file:{version}/model.dali": pipeline}
                client.load_model("visitor", config=json.dumps(settings), files=files)
                self.visits += 1
                self.visiting.set()
                self.over.wait(VISIT_SECONDS)
                self.visiting.clear()
                client.unload_model("visitor")
                self.over.wait(AWAY_SECONDS)

    def look(self, seconds):
        if not self.server.alive:
            raise Wrong("the server died")
        with self.lock:
            done = sum(sum(counts.values()) for counts in self.counts.values())
            latencies, self.latencies = self.latencies, []
        self.traces()
        self.records()
        text = self.server.metrics
        self.signs["metrics read"] += "gesso_failures_total" in text
        if total(text, "gesso_failures_total", kind="internal"):
            self.fault(f"an internal error: {self.server.log_tail(5)}")
        # Without the visitor there is less of all.
        if self.visiting.is_set():
            quantiles = np.quantile(latencies or [0.0], [0.5, 0.99])
            self.rows.append((seconds, Look.at(self.server.pid), done, *quantiles))
        self.shown = text

    def traces(self):
        """Reads and removes what the server has traced: each request of Gesso's has its spans in order."""
        for path in (self.folder / "traces").iterdir():
            try:
                entries = json.loads(path.read_text())
            except ValueError:
                # It is being written.
                continue
            path.unlink()
            times = collections.defaultdict(dict)
            for entry in entries:
                times[entry["id"]] |= {stamp["name"]: stamp["ns"] for stamp in entry.get("timestamps", [])}
            for stamps in times.values():
                if "gather_START" not in stamps:
                    continue
                self.signs["traced requests with Gesso's spans"] += 1
                order = ["QUEUE_START", "COMPUTE_START", "gather_START", "gather_END", "answer_START", "answer_END"]
                seen = [stamps[name] for name in order if name in stamps]
                if seen != sorted(seen):
                    self.fault(f"a trace is out of order: {stamps}")

    def records(self):
        """Reads and removes recorded requests: each has the answer that the client got."""
        for path in (self.folder / "records" / "soak").glob("[!.]*.request"):
            line, _, data = path.read_bytes().partition(b"\n")
            path.unlink()
            values = np.frombuffer(data, np.float32)
            told = json.loads(line)
            if told["model"] != "recorded" or len(data) != RECORD_BYTES or (values[:3] + 1 != values[3:]).any():
                self.fault(f"a record is wrong: {line[:300]} {values}")
            self.signs["records read, request and answer as sent"] += 1

    def collect(self):
        """Signs that each feature was on, after the run."""
        text, signs = self.shown, self.signs
        signs["answers of the response cache"] = total(text, "nv_cache_num_hits_per_model", model="cached")
        signs["files by address, downloaded or kept"] = sum(
            total(text, "gesso_fetches_total", outcome=outcome) for outcome in ("downloaded", "cached")
        )
        signs["requests that ended because their client left or cancelled"] = total(
            text, "gesso_failures_total", kind="cancelled"
        )
        signs["loads of the model that comes and goes"] = self.visits
        for line in self.server.log.splitlines():
            if '\\"level\\"' in line or '"level"' in line:
                found = json.loads(line[line.index("] ") + 2 :])
                found = json.loads(found) if isinstance(found, str) else found
                signs["lines of the log that are objects of JSON"] += "message" in found
        self.faults += [f"no sign of a feature: {name}" for name, count in signs.items() if not count]
        for kind, counts in self.counts.items():
            if not (counts["right"] or counts["left"]):
                self.faults.append(f"{kind}: never answered")


def write(path, soak, looks, faults):
    """The page of the run, and its plots."""
    early, late = looks
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".svg").write_text(soak_report.plots(soak.rows))
    asked = sum(sum(counts.values()) for counts in soak.counts.values())
    lines = [
        "# Soak with everything on",
        "",
        "Made by `scripts/soak --all`; not edited by hand. One real server with every feature of this table on at the",
        "same time, on the host. Each is asked by threads of its own, and every answer is compared with the right one.",
        "",
        "| feature | right | refused, as it should be | left without waiting | wrong |",
        "| --- | --- | --- | --- | --- |",
    ]
    for kind, counts in soak.counts.items():
        shown = " | ".join(f"{counts[outcome]:,}" for outcome in ("right", "refused", "left", "wrong"))
        lines.append(f"| {kind} | {shown} |")
    lines += ["", "Signs that it was on:", "", "| what | how many |", "| --- | --- |"]
    lines += [f"| {name} | {count:,.0f} |" for name, count in soak.signs.items()]
    lines += [
        "",
        "The server's process, medians of the first and the last third after warming up:",
        "",
        "| | first | last |",
        "| --- | --- | --- |",
        f"| memory | {early.memory / 1e6:.0f} MB | {late.memory / 1e6:.0f} MB |",
        f"| threads | {early.threads:.0f} | {late.threads:.0f} |",
        f"| open files | {early.files:.0f} | {late.files:.0f} |",
        "",
        f"{asked:,} requests in {soak.rows[-1][0] if soak.rows else 0:,.0f} s. Verdict: "
        f"{'; '.join(faults) or 'nothing grew, nothing was wrong'}.",
        "",
        f"![memory, latency, threads and open files over time]({path.with_suffix('.svg').name})",
    ]
    text = "\n".join(lines) + "\n"
    path.write_text(text)
    return text


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/soak --all")
    parser.add_argument("--seconds", type=float, default=3_600)
    parser.add_argument("--only", help="features whose name has this text")
    parser.add_argument("--report", type=Path, default=ROOT / ".cache" / "soak" / "soak-all.md")
    return parser.parse_args()


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="gesso-soak-") as folder, Host(FILES) as host:
        folder = Path(folder)
        for name in ("traces", "records"):
            (folder / name).mkdir()
        repository = write_repository(folder / "models", host)
        with Server(repository, arguments=arguments_of(folder)) as server:
            began = server.metrics
            soak = Everything(server, host, folder, options)
            # Before anybody asked.
            soak.signs["pictures decoded by the warm-up"] = total(began, "gesso_images_decoded_total", model="warm")
            soak.run()
            soak.collect()
            status = server.stop()
            if status != 0:
                print(server.log_tail(), file=sys.stderr)
    early, late, grown = growth([row[1] for row in soak.rows])
    faults = soak.faults + grown
    if status != 0:
        faults.append(f"the server left with status {status}")
    print(write(options.report, soak, (early, late), faults))
    if faults:
        raise SystemExit("error: " + "\nerror: ".join(faults))


if __name__ == "__main__":
    main()
