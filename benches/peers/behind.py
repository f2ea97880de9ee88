#!/usr/bin/env python3
"""A model of torch behind Gesso in one Triton server, on one GPU: images/s of both, and what is copied for an image.

    benches/peers/behind.py                                      mobilenet_v3_small; requests of 1, 8 and 32 images,
                                                                 32 at a time
    benches/peers/behind.py --network resnet50 --request-batch 32 --concurrency 16
    benches/peers/behind.py --device cpu --seconds 1 --no-copies that it works, without a GPU

`classify` is the ensemble of `preprocess` (Gesso: decode, resize to 224x224, normalize) and `network` (torchvision's
with random weights, in half precision, in Triton's Python backend, which takes tensors on the GPU by DLPack). Images
come in system shared memory, 1000 floats for each leave there. `network` alone gets tensors that lie in CUDA shared
memory already; the backend maps each request's anew, which those of an ensemble do not need.

Copies are counted in a server of its own (CUPTI; cuda_copies.py), in the server's process and in that of the Python
backend. What kernels move is no copy: the network gathers several requests with one.
"""

import argparse
import itertools
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "server")]
import http_load  # noqa: E402
import make_bench_images  # noqa: E402
import model_behind  # noqa: E402
from cuda_copies import CopiesError, Counter  # noqa: E402
from cuda_driver import CudaError, Driver  # noqa: E402
from harness import Server, ServerError  # noqa: E402
from model_behind import ANSWER_BYTES, ENSEMBLE, NETWORK, PREPROCESS, SAMPLE_BYTES, SIDE  # noqa: E402
from served_load import Load, Post, Request, of_images  # noqa: E402

OUTPUT = "LOGITS"
# Of the largest logit: batches of other sizes are summed in another order.
TOLERANCE = 0.02
SYNTHETIC = 8
COUNTED = 400


class Behind(Load):
    """A load whose answers are a network's: floats, which depend a little on what a request was merged with."""

    def verify(self, requests, sent, memory):
        for i, place in enumerate(self.slots[: len(sent)]):
            _, body = self.post.infer(self.model, [sent[i]], [(self.output, None)])
            self.post.infer(self.model, [sent[i]], [(self.output, place)])
            expected = np.frombuffer(body, np.float32)
            found = np.frombuffer(memory.read(len(body), place.offset), np.float32)
            if not np.allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max()):
                raise ServerError(f"`{self.model}`: slot {i} does not hold what came over the socket")


def synthetic(count):
    """Requests with tensors that look like normalized pixels."""
    drawn = np.random.default_rng(0)
    shape = [count, 3, SIDE, SIDE]
    return [
        Request("PIXELS", "FP32", shape, drawn.standard_normal(shape, np.float32).tobytes()) for _ in range(SYNTHETIC)
    ]


def load_of(stack, post, driver, model, images, options, concurrency, count):
    requests = synthetic(count) if model == NETWORK else of_images(images, count)
    places = SimpleNamespace(input="cuda" if driver and model == NETWORK else "system", output="system")
    return Behind(stack, post, driver, model, OUTPUT, requests, count * ANSWER_BYTES, places, concurrency)


def served(folder, options, environment=None):
    pipeline = (ROOT / "benches" / "pipeline_gpu.dali").read_bytes()
    half = options.device == "gpu"
    model_behind.write(
        folder,
        pipeline,
        options.network,
        gpu=options.device == "gpu",
        half=half,
        max_batch=options.max_batch,
        instances=options.instances,
    )
    # Twice what is under way, as pieces of the pool are of many sizes.
    tensors = 2 * SAMPLE_BYTES * max(options.concurrency) * max(options.request_batch)
    arguments = [
        f"--http-thread-count={options.http_threads}",
        *(model_behind.arguments(tensors) if options.device == "gpu" else []),
    ]
    return Server(folder, arguments=arguments, environment=environment)


def merged(post, before):
    """Images of an execution of both models since `before`, which is what this returned then, or nothing."""
    now = {model: post.work(model)[1:3] for model in (PREPROCESS, NETWORK)}
    batches = (
        {model: (now[model][1] - before[model][1]) / max(now[model][0] - before[model][0], 1) for model in now}
        if before
        else {}
    )
    return now, batches


def speeds(server, driver, images, options):
    """Rows of both models together and of the network alone, in turn."""
    post, rows = Post(server.http_url), []
    for concurrency, count in itertools.product(options.concurrency, options.request_batch):
        with ExitStack() as stack:
            loads = {
                m: load_of(stack, post, driver, m, images, options, concurrency, count) for m in (ENSEMBLE, NETWORK)
            }
            measured = {model: [] for model in loads}
            for _ in range(options.rounds):
                for model, load in loads.items():
                    before, _ = merged(post, None)
                    row = load.measure(server, options)
                    measured[model].append(row | {"batches": merged(post, before)[1]})
        for model, rounds in measured.items():
            rounds.sort(key=lambda row: row["images"])
            row = rounds[len(rounds) // 2]
            rows.append(
                {
                    "model": model,
                    "concurrency": concurrency,
                    "request_batch": count,
                    "rounds": [r["images"] for r in rounds],
                    **row,
                }
            )
    return rows


def copies(server, driver, images, options, counter):
    """What the ensemble copies, a row for each program and kind, by image."""
    post, rows = Post(server.http_url), []
    concurrency = max(options.concurrency)
    for count in options.request_batch:
        with ExitStack() as stack:
            load = load_of(stack, post, driver, ENSEMBLE, images, options, concurrency, count)
            run = lambda requests: http_load.run(
                server.http_url, load.connections, count=requests, processes=options.processes
            )
            # What is made once is made now.
            run(COUNTED)
            before = counter.read()
            outcome = run(COUNTED)
            if outcome.errors:
                raise ServerError(f"`{ENSEMBLE}`: {outcome.errors[0]}")
            made = counter.read() - before
        shared = COUNTED * count
        for program, kinds in made.items():
            for kind, copied in kinds.items():
                rows.append(
                    {
                        "program": program,
                        "kind": kind,
                        "request_batch": count,
                        "copies": copied.count / shared,
                        "bytes": copied.bytes / shared,
                    }
                )
    return rows


def show_speeds(rows):
    print(
        f"{'model':9} {'conc.':>5} {'of':>3} {'images/s':>9} {'requests/s':>10} {'p50 ms':>8} {'p99 ms':>8}  images a batch: Gesso, network"
    )
    for row in rows:
        alone = next(
            r["images"]
            for r in rows
            if (r["model"], r["concurrency"], r["request_batch"]) == (NETWORK, row["concurrency"], row["request_batch"])
        )
        share = f" {row['images'] / alone:6.1%} of `{NETWORK}` alone" if row["model"] == ENSEMBLE else ""
        batches = ", ".join(f"{row['batches'][model]:.1f}" for model in (PREPROCESS, NETWORK) if row["batches"][model])
        print(
            f"{row['model']:9} {row['concurrency']:5} {row['request_batch']:3} {row['images']:9.0f} {row['rate']:10.0f} "
            f"{row['p50_us'] / 1e3:8.3f} {row['p99_us'] / 1e3:8.3f}  {batches}{share}"
        )


def show_copies(rows, images):
    print(
        f"an image: a file of {np.mean([len(image) for image in images]):.0f} bytes on average, a tensor of {SAMPLE_BYTES}, an answer of {ANSWER_BYTES}"
    )
    print(f"{'program':27} {'of':>3} {'kind':5} {'copies an image':>15} {'bytes an image':>15}")
    for row in rows:
        print(
            f"{row['program']:27} {row['request_batch']:3} {row['kind']:5} {row['copies']:15.3f} {row['bytes']:15.0f}"
        )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--network", default="mobilenet_v3_small", help="name of torchvision's (default: %(default)s)")
    parser.add_argument("--size", choices=list(make_bench_images.SIZES), default="500x375")
    parser.add_argument(
        "--request-batch", type=int, nargs="+", default=[1, 8, 32], metavar="N", help="images of a request"
    )
    parser.add_argument("--concurrency", type=int, nargs="+", default=[32], help="requests at a time")
    parser.add_argument("--seconds", type=float, default=4, help="of each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="of each row; the one of median rate is shown")
    parser.add_argument("--processes", type=int, default=4, help="of the client (default: %(default)s)")
    parser.add_argument("--instances", type=int, default=1, help="of the network, each a process")
    parser.add_argument("--max-batch", type=int, default=128)
    parser.add_argument("--http-threads", type=int, default=16, help="of the server (default: %(default)s)")
    parser.add_argument("--images", type=Path, default=ROOT / ".cache" / "bench-images")
    parser.add_argument("--no-copies", action="store_true", help="count none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    options = parser.parse_args()
    if not 1 <= min(options.request_batch) <= max(options.request_batch) <= options.max_batch:
        parser.error(f"--request-batch must be 1 to --max-batch, which is {options.max_batch}")
    return options


def main():
    options = arguments()
    sys.stdout.reconfigure(line_buffering=True)
    make_bench_images.make(options.images)
    images, found = [path.read_bytes() for path in sorted((options.images / options.size).glob("*.jpg"))], {}
    try:
        driver = Driver() if options.device == "gpu" else None
    except CudaError as error:
        print(f"skipped: {error}")
        return
    try:
        with tempfile.TemporaryDirectory() as folder, served(folder, options) as server:
            print(
                f"{driver.name if driver else 'no GPU'}, {options.network}, {options.size}, {options.instances} instances of the network, "
                f"batches to {options.max_batch}"
            )
            found["speeds"] = speeds(server, driver, images, options)
        show_speeds(found["speeds"])
        if not options.no_copies:
            with tempfile.TemporaryDirectory() as reports, tempfile.TemporaryDirectory() as folder:
                counter = Counter(Path(reports))
                with served(folder, options, counter.environment) as server:
                    found["copies"] = copies(server, driver, images, options, counter)
            show_copies(found["copies"], images)
    except (CopiesError, CudaError, ServerError) as error:
        raise SystemExit(f"error: {error}") from None
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
