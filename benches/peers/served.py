#!/usr/bin/env python3
"""Decode + resize to 224x224 + normalize through a real Triton server: throughput, latency, and where the time went.

    benches/peers/served.py                            on the GPU: compressed images in system shared memory, tensors
                                                       out into CUDA shared memory; concurrency 1, 64 and 256
    benches/peers/served.py --device cpu --out system  the same without a GPU
    benches/peers/served.py --in body --out body       everything through the socket
    benches/peers/served.py --request-batch 1 8 32     requests of so many images, too
    benches/peers/served.py --device cpu --out system --concurrency 16 --in-process 2
                                                       on the host, beside the same with two threads in process (cargo),
                                                       in turn
    benches/peers/served.py --perf-analyzer PATH       beside each row the same load by NVIDIA's client over gRPC, which
                                                       keeps both inputs and outputs in CUDA shared memory (but at
                                                       concurrency 1)

A request of several images is one tensor, each file zero-padded to the longest of the request, as clients send them to
DALI's backend.

Beside Gesso stand the same model with JPEGs on the engines alone (`--models gesso engines identity`) and the floor: a
model that only hands its input on, under the same load. Server's times are Triton's own
statistics, a request: queue, input, infer, output. Images are made when they are not there. Every slot's answer is
compared with the answer over the socket before the clock starts. The last columns: the processor's time for a request,
of the server and of the client, and how busy the server's busiest thread was. With --in-process the last lines say how
much of that speed the server has, and of what it could have where an image costs what it does in process and a request
what it does of the identity model, or of `pad`, whose answers are as long as Gesso's: the processor's time for both is
all that there is."""

import argparse
import base64
import itertools
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "lib"), str(ROOT / "tests" / "server")]
import make_bench_images  # noqa: E402
from cuda_driver import CudaError, Driver  # noqa: E402
from harness import Server, ServerError  # noqa: E402
from served_load import INPUT, Load, Post, of_images  # noqa: E402

MODELS = {"gesso": "pipeline_gpu.dali", "engines": "pipeline_gpu.dali", "identity": "identity.dali", "pad": "pad.dali"}
OUTPUTS = {"gesso": "PIXELS", "engines": "PIXELS", "identity": "BYTES", "pad": "PADDED"}
# What a request costs without work on it: the better floor first.
FLOORS = ("pad", "identity")
# Decodes nowhere else.
PARAMETERS = {"engines": 'parameters { key: "jpeg_path" value { string_value: "engines" } }\n'}
SIDE = 224
TENSOR_BYTES = 3 * SIDE * SIDE * 4
# As compare.py.
IN_PROCESS_BATCH = 32
PERF_ANALYZER_SECONDS = 1


def perf_analyzer(server, model, images, options, concurrency, count):
    """The same load by perf_analyzer over gRPC; None when it failed, which it says. It makes requests of several images
    from files that are equally long."""
    longest = max(map(len, images))
    images = [image.ljust(longest, b"\0") for image in images] if count > 1 else images
    with tempfile.TemporaryDirectory() as folder:
        data, table = Path(folder) / "data.json", Path(folder) / "table.csv"
        steps = [{INPUT: {"content": {"b64": base64.b64encode(i).decode()}, "shape": [len(i)]}} for i in images]
        data.write_text(json.dumps({"data": steps}))
        where = "none" if concurrency == 1 or options.device == "cpu" else "cuda"
        size = count * (longest if model == "identity" else TENSOR_BYTES)
        command = [
            options.perf_analyzer,
            "-m",
            model,
            "-i",
            "grpc",
            "-u",
            server.grpc_url,
            "--input-data",
            str(data),
            "-b",
            str(count),
        ]
        command += ["--concurrency-range", str(concurrency), "--shared-memory", where, "-f", str(table)]
        command += ["--output-shared-memory-size", str(size), "--percentile", "99", "--verbose-csv"]
        command += ["-p", str(1000 * PERF_ANALYZER_SECONDS), "-r", "3", "-s", "900"]
        command += ["--sync"] if concurrency == 1 else ["--async", "--max-threads", "8"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode or not table.exists():
            print(f"perf_analyzer: status {done.returncode}: {(done.stderr + done.stdout).strip()[-300:]}")
            return None
        names, values = (line.split(",") for line in table.read_text().splitlines()[:2])
        row = dict(zip(names, map(float, values)))
    stages = {"queue": "Queue", "compute_input": "Compute Input", "compute_infer": "Compute Infer"}
    stages["compute_output"] = "Compute Output"
    return {
        "client": f"grpc {where}",
        "rate": row["Inferences/Second"] / count,
        "images": row["Inferences/Second"],
        "p50_us": row["p50 latency"],
        "p99_us": row["p99 latency"],
        **{f"{stage}_us": row[f"Server {title}"] for stage, title in stages.items()},
        "batch": float("nan"),
        "server_cpu_us": float("nan"),
        "client_cpu_us": float("nan"),
        "busiest_thread": float("nan"),
    }


def in_process(options, size):
    """Images/s of the pipeline without a server."""
    command = [
        "cargo",
        "bench",
        "--quiet",
        "--locked",
        "--bench",
        "pipeline",
        "--",
        "--images",
        str(options.images / size),
    ]
    command += ["--threads", str(options.in_process), "--batch", str(IN_PROCESS_BATCH)]
    command += ["--seconds", str(max(1, round(options.seconds)))]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])["images_per_second"]


def compare(rows, rates, cores):
    """Prints what the rows have of the speed in process, of which `rates` has the rounds of each size."""
    for size, rounds in rates.items():
        alone = float(np.median(rounds))
        print(f"in process, {size}: {alone:.0f} images/s ({min(rounds):.0f} to {max(rounds):.0f})")
        ours = [row for row in rows if (row["size"], row["client"]) == (size, "http")]
        floor = next((name for name in FLOORS if any(row["model"] == name for row in ours)), None)
        load = lambda row: (row["concurrency"], row["request_batch"])
        costs = {load(row): row["server_cpu_us"] + row["client_cpu_us"] for row in ours if row["model"] == floor}
        for row in (row for row in ours if row["model"] == "gesso"):
            text = f"    {row['concurrency']} requests of {row['request_batch']} at a time: {row['images']:.0f}, {row['images'] / alone:.0%} of it"
            if cost := costs.get(load(row)):
                possible = cores / (cores / alone + cost / row["request_batch"] / 1e6)
                text += f"; client and server take {cost / 1e3:.3f} ms for a request, which leaves {possible:.0f}: {row['images'] / possible:.0%} of that"
            print(text)


def repository(folder, options):
    for model in options.models:
        version = Path(folder) / model / "1"
        version.mkdir(parents=True)
        (version / "model.dali").write_bytes((ROOT / "benches" / MODELS[model]).read_bytes())
        where = "gpus: [0]" if options.device == "gpu" else ""
        (version.parent / "config.pbtxt").write_text(
            'backend: "gesso"\n'
            f"max_batch_size: {options.max_batch}\n"
            f"dynamic_batching {{ max_queue_delay_microseconds: {options.delay} }}\n"
            f"instance_group {{ kind: KIND_{options.device.upper()} count: {options.instances} {where} }}\n"
            f'output {{ name: "{OUTPUTS[model]}" }}\n{PARAMETERS.get(model, "")}'
            + "".join(
                f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'
                for name, _, value in options.parameters
            )
        )
    return folder


COLUMNS = [
    ("images/s", "images", 1, "{:8.0f}"),
    ("requests/s", "rate", 1, "{:10.0f}"),
    ("p50 ms", "p50_us", 1e-3, "{:8.3f}"),
    ("p99 ms", "p99_us", 1e-3, "{:8.3f}"),
    ("queue ms", "queue_us", 1e-3, "{:8.3f}"),
    ("input ms", "compute_input_us", 1e-3, "{:8.3f}"),
    ("infer ms", "compute_infer_us", 1e-3, "{:8.3f}"),
    ("output ms", "compute_output_us", 1e-3, "{:9.3f}"),
    ("batch", "batch", 1, "{:6.1f}"),
    ("cpu ms", "server_cpu_us", 1e-3, "{:7.3f}"),
    ("client ms", "client_cpu_us", 1e-3, "{:9.3f}"),
    ("hottest", "busiest_thread", 1, "{:8.0%}"),
]


def table(rows):
    print(
        f"{'model':9} {'size':>9} {'client':>9} {'conc.':>5} {'of':>3} "
        + " ".join(f"{title:>8}" for title, *_ in COLUMNS)
    )
    for row in rows:
        figures = " ".join(text.format(row[key] * scale).rjust(8) for _, key, scale, text in COLUMNS)
        print(
            f"{row['model']:9} {row['size']:>9} {row['client']:>9} {row['concurrency']:5} {row['request_batch']:3} {figures}"
        )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--in", dest="input", choices=["system", "cuda", "body"], default="system")
    parser.add_argument("--out", dest="output", choices=["cuda", "system", "body"], default="cuda")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=["gesso", "identity"])
    parser.add_argument("--sizes", nargs="+", choices=list(make_bench_images.SIZES), default=["500x375"])
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 64, 256])
    parser.add_argument(
        "--request-batch", type=int, nargs="+", default=[1], metavar="N", help="images of a request (default: 1)"
    )
    parser.add_argument("--seconds", type=float, default=4, help="of each round (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="of each row; the one of median rate is shown")
    parser.add_argument("--processes", type=int, default=4, help="of the client (default: %(default)s)")
    parser.add_argument("--instances", type=int, default=1)
    parser.add_argument("--in-process", type=int, default=0, metavar="THREADS", help="also measure without a server")
    parser.add_argument("--max-batch", type=int, default=128)
    parser.add_argument("--delay", type=int, default=0, metavar="US", help="max_queue_delay_microseconds")
    parser.add_argument(
        "--parameters",
        nargs="+",
        default=[],
        type=lambda text: text.partition("="),
        metavar="NAME=VALUE",
        help="of the models",
    )
    parser.add_argument("--http-threads", type=int, default=16, help="of the server (default: %(default)s)")
    parser.add_argument("--images", type=Path, default=ROOT / ".cache" / "bench-images")
    parser.add_argument("--perf-analyzer", default=os.environ.get("GESSO_PERF_ANALYZER"), metavar="PATH")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows there")
    options = parser.parse_args()
    if not 1 <= min(options.request_batch) <= max(options.request_batch) <= options.max_batch:
        parser.error(f"--request-batch must be 1 to --max-batch, which is {options.max_batch}")
    return options


def main():
    options = arguments()
    sys.stdout.reconfigure(line_buffering=True)
    make_bench_images.make(options.images)
    try:
        driver = Driver() if "cuda" in (options.input, options.output) or options.device == "gpu" else None
    except CudaError as error:
        print(f"skipped: {error}")
        return
    rows, rates = [], {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            threads = [f"--http-thread-count={options.http_threads}"]
            with Server(repository(folder, options), arguments=threads) as server:
                print(
                    f"server ready in {server.ready_seconds:.2f} s; {driver.name if driver else 'no GPU'}; in {options.input}, "
                    f"out {options.output}, {options.instances} instances, batches to {options.max_batch}"
                )
                for size in options.sizes:
                    rates[size] = []
                    rows += rows_of(server, driver, size, options, rates[size])
    except (CudaError, ServerError) as error:
        raise SystemExit(f"error: {error}") from None
    table(rows)
    if options.in_process:
        compare(rows, rates, options.in_process)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def rows_of(server, driver, size, options, rates):
    images = [path.read_bytes() for path in sorted((options.images / size).glob("*.jpg"))]
    post, rows = Post(server.http_url), []
    for concurrency, count in itertools.product(options.concurrency, options.request_batch):
        requests, setting = of_images(images, count), {"size": size, "concurrency": concurrency, "request_batch": count}
        with ExitStack() as stack:
            loads = {}
            for model in options.models:
                answer = max(len(request.data) for request in requests) if model == "identity" else count * TENSOR_BYTES
                loads[model] = Load(stack, post, driver, model, OUTPUTS[model], requests, answer, options, concurrency)
            measured = {model: [] for model in loads}
            for _ in range(options.rounds):
                if options.in_process:
                    rates.append(in_process(options, size))
                for model, load in loads.items():
                    measured[model].append(load.measure(server, options))
        for model, rounds in measured.items():
            rounds.sort(key=lambda row: row["rate"])
            rows.append({"model": model, **setting, **rounds[len(rounds) // 2]})
            if options.perf_analyzer and (row := perf_analyzer(server, model, images, options, concurrency, count)):
                rows.append({"model": model, **setting, **row})
    return rows


if __name__ == "__main__":
    main()
