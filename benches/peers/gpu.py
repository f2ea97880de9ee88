#!/usr/bin/env python3
"""Decode + resize to 224x224 + normalize in process on a GPU: Gesso and, where it is installed, DALI, in turn in the same run.

    benches/peers/gpu.py                                  two sizes, batches 1, 8, 32 and 128
    benches/peers/gpu.py --batch 128 --instances 2 --rounds 5
    benches/peers/gpu.py --sizes 1920x1080 --loads 0.5 0.65 0.8 1.0

Gesso is the program in $GESSO_BENCH or else `cargo bench --bench pipeline`. DALI (package nvidia-dali-cuda130) runs with each
`hw_decoder_load` asked for, waiting for every batch (depth 1) and with the next batch in flight (depth 2). Prints medians over the
rounds, their spread, and the ratio to the best of DALI's; and the memory of the device that a process with one loaded pipeline takes
after batches of 128. Images are made when they are not there.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import make_bench_images  # noqa: E402
import pipeline_bench  # noqa: E402
from cuda_driver import CudaError, Driver  # noqa: E402

SIDE = 224
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
MEMORY_BATCH = 128
WARM_BATCHES = 5
DEPTHS = (1, 2)


def read(folder):
    return [np.fromfile(path, np.uint8) for path in sorted(Path(folder).glob("*.jpg"))]


# --- DALI, in a process of its own: one line of JSON in, one out --------------------------------------------------------------


def dali_pipeline(batch, load, depth, threads):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=batch, num_threads=threads, device_id=0, prefetch_queue_depth=depth)
    def chain():
        encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
        image = fn.decoders.image(encoded, device="mixed", hw_decoder_load=load)
        image = fn.resize(image, resize_x=SIDE, resize_y=SIDE)
        return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD)

    pipe = chain()
    pipe.build()
    return pipe


class DaliRun:
    """One pipeline of DALI's and the files that it gets in turn."""

    def __init__(self, driver, files, batch, load, depth, threads):
        self.driver, self.files, self.batch, self.depth, self.next = driver, files, batch, depth, 0
        self.pipe = dali_pipeline(batch, load, depth, threads)
        if depth > 1:
            # The first call schedules as many batches as may be in flight.
            for _ in range(depth):
                self.feed()
            self.pipe.schedule_run()
        for _ in range(WARM_BATCHES):
            self.once()

    def feed(self):
        batch = [self.files[(self.next + i) % len(self.files)] for i in range(self.batch)]
        self.next += self.batch
        self.pipe.feed_input("IMAGE", batch)

    def once(self):
        """One batch in and, at depth 1, the same one out; at greater depths the oldest out first."""
        if self.depth > 1:
            self.take()
        self.feed()
        self.pipe.schedule_run()
        if self.depth == 1:
            self.take()
            self.driver.synchronize()

    def take(self):
        outputs = self.pipe.share_outputs()
        del outputs
        self.pipe.release_outputs()

    def measure(self, seconds):
        times = []
        self.driver.synchronize()
        began = time.perf_counter()
        while True:
            start = time.perf_counter()
            self.once()
            now = time.perf_counter()
            times.append(now - start)
            if now - began > seconds:
                break
        self.driver.synchronize()
        rate = len(times) * self.batch / (time.perf_counter() - began)
        p50, p99 = np.percentile(times, [50, 99])
        return {"images_per_second": rate, "p50_us": 1e6 * p50, "p99_us": 1e6 * p99}


def dali_worker():
    # What DALI prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    runs, driver, kind = {}, None, None
    for line in sys.stdin:
        job = json.loads(line)
        seconds = job.pop("seconds")
        key = json.dumps(job)
        # Pipelines for other batches would only take memory and threads.
        if kind != (kind := (job["images"], job["batch"])):
            runs.clear()
        try:
            if key not in runs:
                job["files"] = read(job.pop("images"))
                # The process's first use of the device, so that both count the same.
                driver = driver or Driver()
                runs[key] = DaliRun(driver, **job)
            answer = runs[key].measure(seconds)
        except Exception as error:  # whatever DALI throws is the parent's to print
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


class Dali:
    """The worker process, from the first job to `close`."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--dali-worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, **job):
        print(json.dumps({name: str(v) if isinstance(v, Path) else v for name, v in job.items()}), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"its process ended with status {self.process.wait()}"}
        if "error" in answer:
            raise RuntimeError(f"DALI: {answer['error'].strip()[-500:]}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# --- Gesso ---------------------------------------------------------------------------------------------------------------------


def gesso(command, images, batch, seconds, options, instances):
    seconds = max(1, round(seconds))
    return pipeline_bench.measure(
        command, device="gpu", images=images, batch=batch, threads=options.threads, instances=instances, seconds=seconds
    )


# --- Both ----------------------------------------------------------------------------------------------------------------------


def compare(command, dali, images, batch, options):
    """Rows of one size and batch: name to the rounds' answers."""
    peers = {
        f"Gesso x{instances}": lambda instances=instances: gesso(command, images, batch, options.seconds, options, instances)
        for instances in options.instances
    }
    for load in options.loads if dali else ():
        for depth in DEPTHS:
            peers[f"DALI {load:g} depth {depth}"] = lambda load=load, depth=depth: dali(
                images=images, batch=batch, load=load, depth=depth, threads=options.threads, seconds=options.seconds
            )
    answers = {name: [] for name in peers}
    for _ in range(options.rounds):
        for name, measure in list(peers.items()):
            try:
                answers[name].append(measure())
            except RuntimeError as error:
                print(f"error: batch {batch}, {name}: {error}")
                del peers[name]
    return {name: rounds for name, rounds in answers.items() if rounds}


def show(size, batch, answers):
    """Prints a table and returns its rows."""
    rows = []
    for name, rounds in answers.items():
        rates = [answer["images_per_second"] for answer in rounds]
        median = lambda key: statistics.median(answer[key] for answer in rounds)
        rows.append(
            {"peer": name, "size": size, "batch": batch, "images_per_second": statistics.median(rates), "lowest": min(rates),
             "highest": max(rates), "p50_us": median("p50_us"), "p99_us": median("p99_us"),
             "counters": rounds[-1].get("counters"), "gpu_bytes": rounds[-1].get("gpu_bytes")}
        )  # fmt: skip
    best = {figure: [row[figure] for row in rows if row["peer"].startswith("DALI")] for figure in ("images_per_second", "p50_us")}
    for row in rows:
        ratio = ""
        if row["peer"].startswith("Gesso") and best["images_per_second"]:
            ratio = f"  {row['images_per_second'] / max(best['images_per_second']):5.2f} x DALI's best"
        print(f"{size:>9} {batch:5}  {row['peer']:17} {row['images_per_second']:9.0f}  ({row['lowest']:.0f} to {row['highest']:.0f})"
              f"  {row['p50_us']:8.0f} {row['p99_us']:8.0f}{ratio}")
    return rows


def memory(driver, command, images, options, with_dali):
    """Bytes of the device that each process takes while its one pipeline is loaded, context and modules included."""
    taken = {}
    before = driver.used_bytes()
    if with_dali:
        for load in options.loads:
            worker = Dali()
            job = dict(images=images, batch=MEMORY_BATCH, load=load, depth=1, threads=options.threads, seconds=1)
            try:
                worker(**job)
                taken[f"DALI {load:g}"] = driver.used_bytes() - before
            except RuntimeError as error:
                print(f"error: {error}")
            worker.close()
    # Gesso's program ends by itself: look while it runs, the highest value is the one with everything loaded.
    flags = ["--device", "gpu", "--images", str(images), "--batch", str(MEMORY_BATCH), "--threads", str(options.threads)]
    process = subprocess.Popen([*command, *flags, "--seconds", "2"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    highest = 0
    while process.poll() is None:
        highest = max(highest, driver.used_bytes() - before)
        time.sleep(0.02)
    if process.returncode == 0:
        taken["Gesso"] = highest
        taken["Gesso, its pool alone"] = json.loads(process.stdout.read().splitlines()[-1])["gpu_bytes"]
    return taken


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=ROOT / ".cache" / "bench-images")
    parser.add_argument("--sizes", nargs="+", choices=list(make_bench_images.SIZES), default=list(make_bench_images.SIZES))
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--loads", type=float, nargs="+", default=[0.65, 1.0], help="DALI's hw_decoder_load (default: 0.65 1.0)")
    parser.add_argument("--instances", type=int, nargs="+", default=[1], help="of Gesso, each with its own batches in flight")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement (default: %(default)s)")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything there")
    parser.add_argument("--dali-worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def has_dali():
    try:
        return importlib.util.find_spec("nvidia.dali") is not None
    except ModuleNotFoundError:
        return False


def main():
    options = arguments()
    if options.dali_worker:
        return dali_worker()
    sys.stdout.reconfigure(line_buffering=True)
    try:
        driver = Driver()
    except CudaError as error:
        print(f"skipped: {error}")
        return
    make_bench_images.make(options.images)
    command, with_dali = pipeline_bench.command(), has_dali()
    print(f"{driver.name}, {options.threads} threads, {options.rounds} rounds of {options.seconds:g} s, in turn"
          + ("" if with_dali else "; DALI is not installed"))
    print(f"{'size':>9} {'batch':>5}  {'peer':17} {'images/s':>9}  (spread)          {'p50 us':>8} {'p99 us':>8}")
    everything = {"rows": [], "memory": {}}
    dali = Dali() if with_dali else None
    for size in options.sizes:
        for batch in options.batch:
            everything["rows"] += show(size, batch, compare(command, dali, options.images / size, batch, options))
    if dali:
        dali.close()
    if not options.no_memory:
        for size in options.sizes:
            taken = memory(driver, command, options.images / size, options, with_dali)
            everything["memory"][size] = taken
            figures = ", ".join(f"{name} {size_in_bytes / 1e6:.0f} MB" for name, size_in_bytes in taken.items())
            print(f"{size:>9} memory of the device, one pipeline at batch {MEMORY_BATCH}: {figures}")
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1))


if __name__ == "__main__":
    main()
