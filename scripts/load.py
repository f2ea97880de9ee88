"""Loads a server with compressed images from many clients at once; prints throughput, latency and where the time went.

    .venv/bin/python scripts/load.py                             the ensemble, at concurrency 1, 4 and 16
    .venv/bin/python scripts/load.py --model preprocess          Gesso alone
    .venv/bin/python scripts/load.py --bad 0.1 --requests 10000  a tenth of the images broken, memory watched

Starts its own server unless `--url` names one (scripts/demo must have run once). Every answer to a good image must
equal the answer that image got alone; with `--bad`, exactly the broken ones must fail, with INVALID_ARGUMENT. Exits
with 1 else."""

import argparse
import io
import itertools
import sys
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tritonclient.grpc as triton
from PIL import Image
from tritonclient.utils import InferenceServerException

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "server")]
from harness import Server, ServerError, resident_bytes  # noqa: E402
from model_statistics import between, settled, snapshot, steps  # noqa: E402

SCALES = [0.25, 0.5, 1, 2, 4]
HUGE_SIDE = 60_000
# Merged batches of another size may add in another order; anything beyond that is another image's answer.
TOLERANCE = 1e-3
RSS_SECONDS = 0.25
INVALID = "StatusCode.INVALID_ARGUMENT"


class Sample(NamedTuple):
    """One encoded image; `bad` says what is wrong with it."""

    name: str
    request: triton.InferInput
    bad: str | None = None


class Outcome(NamedTuple):
    """What became of one request: `fault` is set when it is not what it should be."""

    sample: Sample
    seconds: float
    fault: str | None


def sample(name, encoded, bad=None):
    request = triton.InferInput("IMAGE", [1, len(encoded)], "UINT8")
    request.set_data_from_numpy(np.frombuffer(encoded, np.uint8)[None])
    return Sample(name, request, bad)


def good_images(folder):
    """The JPEGs of `folder` as they are, or the demo's photos in five sizes from 0.01 to 6 megapixels."""
    if folder is not None:
        files = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))
        if not files:
            raise SystemExit(f"error: no JPEG in `{folder}`")
        return {path.name: path.read_bytes() for path in files}
    images = {}
    for path in sorted((ROOT / ".cache" / "photos").glob("*.jpg")):
        photo = Image.open(path)
        for scale in SCALES:
            scaled = photo.resize([max(1, round(side * scale)) for side in photo.size])
            file = io.BytesIO()
            scaled.save(file, "JPEG", quality=90)
            images[f"{path.stem} {scaled.width}x{scaled.height}"] = file.getvalue()
    if not images:
        raise SystemExit("error: no photos in .cache/photos: run scripts/demo once, or name a folder with --images")
    return images


def bad_images(good):
    """One image of every kind of brokenness that a server meets."""
    garbage = np.random.default_rng(7).integers(0, 256, 20_000, dtype=np.uint8).tobytes()
    return [
        sample("truncated", good[: len(good) // 2], "ends in the middle"),
        sample("garbage", garbage, "is no image"),
        sample("empty", b"", "has no bytes"),
        sample("huge header", with_size(good, HUGE_SIDE), f"claims {HUGE_SIDE} x {HUGE_SIDE} pixels"),
    ]


def with_size(jpeg, side):
    """The JPEG with another height and width in its frame header."""
    at = 2
    while not (0xC0 <= jpeg[at + 1] <= 0xC2):
        at += 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
    size = side.to_bytes(2, "big")
    return jpeg[: at + 5] + size + size + jpeg[at + 9 :]


def schedule(good, bad, count, share):
    """`count` samples in turn, of which evenly spread `share` are bad."""
    good, bad = itertools.cycle(good), itertools.cycle(bad)
    return [next(bad) if int((i + 1) * share) > int(i * share) else next(good) for i in range(count)]


def send(client, model, output, item, expected, tolerance):
    began = time.perf_counter()
    try:
        answer = client.infer(model, [item.request], outputs=[triton.InferRequestedOutput(output)])
    except InferenceServerException as error:
        seconds = time.perf_counter() - began
        right = item.bad is not None and error.status() == INVALID
        return Outcome(item, seconds, None if right else f"{error.status()}: {error.message()}")
    seconds = time.perf_counter() - began
    if item.bad is not None:
        return Outcome(item, seconds, f"answered, though it {item.bad}")
    apart = float(np.abs(answer.as_numpy(output) - expected[item.name]).max())
    return Outcome(item, seconds, None if apart <= tolerance else f"differs by {apart:.3g} from its answer alone")


def run(url, model, output, items, expected, concurrency, tolerance=TOLERANCE):
    """Sends all items with this many requests in flight; the outcomes and the wall time."""
    queue = iter(items)
    lock = threading.Lock()
    outcomes = []

    def work():
        with triton.InferenceServerClient(url) as client:
            while True:
                with lock:
                    item = next(queue, None)
                if item is None:
                    return
                outcomes.append(send(client, model, output, item, expected, tolerance))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(concurrency)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes, time.perf_counter() - began


class MemoryWatch(threading.Thread):
    """Samples the resident memory of a process until told to stop."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.seen, self.over = pid, [], threading.Event()

    def run(self):
        while not self.over.wait(RSS_SECONDS):
            self.seen.append(resident_bytes(self.pid) / 1e6)

    def report(self):
        self.over.set()
        self.join()
        if self.seen:
            early = self.seen[len(self.seen) // 10]
            print(
                f"    memory {early:.0f} MB after a tenth, {self.seen[-1]:.0f} MB at the end, {max(self.seen):.0f} MB at most"
            )


def measure(client, url, options, output, items, expected, concurrency, pid):
    """One round: prints its figures; the outcomes that are wrong."""
    models = steps(client, options.model)
    watch = MemoryWatch(pid) if pid else None
    if watch:
        watch.start()
    before = snapshot(client, models)
    outcomes, wall = run(url, options.model, output, items, expected, concurrency)
    work = between(before, settled(client, before, len(items)))
    if len(outcomes) != len(items):
        raise SystemExit(f"error: {len(items) - len(outcomes)} requests vanished with their client")
    wrong = [outcome for outcome in outcomes if outcome.fault]
    bad = sum(outcome.sample.bad is not None for outcome in outcomes)
    latencies = sorted(1e3 * outcome.seconds for outcome in outcomes if outcome.sample.bad is None)
    if latencies:
        p50, p99 = np.percentile(latencies, [50, 99])
        figures = f"{len(outcomes) / wall:7.1f} requests/s  p50 {p50:6.1f} ms  p99 {p99:6.1f} ms"
    else:
        figures = f"{len(outcomes) / wall:7.1f} requests/s"
    print(f"concurrency {concurrency:3}  {figures}  {len(outcomes)} sent, {bad} of them bad, {len(wrong)} wrong")
    for name, done in work.items():
        print(
            f"    {name}: compute {done.compute_ms:.1f} ms, queued {done.queue_ms:.1f} ms, {done.batch:.1f} images a batch"
        )
    if watch:
        watch.report()
    for outcome in wrong[:5]:
        print(f"    wrong: {outcome.sample.name}: {outcome.fault}")
    return wrong


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="gRPC address of a running server; without it, one is started")
    parser.add_argument("--pid", type=int, help="with --url: the server's process, to watch its memory")
    parser.add_argument(
        "--repository", default=str(ROOT / "model_repository"), help="models for the server started here"
    )
    parser.add_argument(
        "--model", default="classify", help="a model with an input IMAGE and one output (default: %(default)s)"
    )
    parser.add_argument("--images", help="folder of JPEGs (default: the demo's photos in five sizes)")
    parser.add_argument("--requests", type=int, default=500, help="requests a round (default: %(default)s)")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16], help="rounds (default: 1 4 16)")
    parser.add_argument("--bad", type=float, default=0.0, metavar="SHARE", help="share of broken images, 0 to 1")
    options = parser.parse_args()
    if not 0 <= options.bad <= 1 or options.requests < 1 or min(options.concurrency) < 1:
        parser.error("expected --bad from 0 to 1, --requests and --concurrency from 1")
    return options


def main():
    options = arguments()
    encoded = good_images(options.images)
    good = [sample(name, data) for name, data in encoded.items()]
    bad = bad_images(max(encoded.values(), key=len))
    items = schedule(good, bad, options.requests, options.bad)
    wrong = []
    try:
        with nullcontext() if options.url else Server(options.repository, models=[options.model]) as server:
            url, pid = (options.url, options.pid) if options.url else (server.grpc_url, server.pid)
            if server:
                print(f"server with `{options.model}` ready in {server.ready_seconds:.2f} s")
            with triton.InferenceServerClient(url) as client:
                output = client.get_model_metadata(options.model).outputs[0].name
                # Each image alone: the answers to compare with, and the warm-up.
                expected = {item.name: client.infer(options.model, [item.request]).as_numpy(output) for item in good}
                for concurrency in options.concurrency:
                    wrong += measure(client, url, options, output, items, expected, concurrency, pid)
    except (ServerError, InferenceServerException) as error:
        raise SystemExit(f"error: {error}") from None
    if wrong:
        raise SystemExit(f"error: {len(wrong)} requests did not end as they should")


if __name__ == "__main__":
    main()
