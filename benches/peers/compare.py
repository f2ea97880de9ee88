#!/usr/bin/env python3
"""Decode + resize to 224x224 + normalize, in process: Gesso, DALI and Pillow with numpy on the same files, in turn.

    benches/peers/compare.py [--threads 2] [--batch 32] [--rounds 5]

Needs the packages nvidia-dali-cuda130 and pillow (no GPU) and cargo. Builds `cargo bench --bench pipeline`, makes the
images in .cache/bench, and runs every peer once a round; prints the median images/s of the rounds, their spread, and
ratios. With --make it only writes the pipelines: benches/pipeline.dali, which Gesso runs here, the same for a GPU, one
that hands its input on, and one that makes it as long as the others' output. `gpu.py` is the comparison on a GPU,
`triton.py` the one through a server."""

import argparse
import io
import json
import pathlib
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts" / "lib"))
import records  # noqa: E402
from photos import IMAGES, SIZES, files, make  # noqa: E402

SIDE = 224
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
SECONDS = 3


@pipeline_def(batch_size=256, num_threads=2, device_id=None, prefetch_queue_depth=1)
def chain(device="cpu"):
    image = fn.decoders.image(fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1), device=device)
    image = fn.resize(image, resize_x=SIDE, resize_y=SIDE)
    return fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="CHW", mean=MEAN, std=STD, name="PIXELS")


@pipeline_def(batch_size=256, num_threads=2, device_id=None, prefetch_queue_depth=1)
def identity():
    return fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1).gpu()


@pipeline_def(batch_size=256, num_threads=2, device_id=None, prefetch_queue_depth=1)
def pad():
    image = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
    return fn.pad(image, axes=[0], shape=[3 * SIDE * SIDE * 4], name="PADDED")


def timed(run, batch):
    """Images/s of `run`, called for SECONDS after a warm-up."""
    run()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        run()
        count += batch
    return count / (time.perf_counter() - began)


class Gesso:
    def __init__(self, name, batch, threads):
        self.command = [
            "cargo",
            "bench",
            "--quiet",
            "--bench",
            "pipeline",
            "--",
            "--images",
            str(IMAGES / name),
            "--batch",
            str(batch),
            "--threads",
            str(threads),
            "--seconds",
            str(SECONDS),
        ]
        subprocess.run(["cargo", "bench", "--bench", "pipeline", "--no-run"], cwd=ROOT, check=True)

    def __call__(self):
        done = subprocess.run(self.command, cwd=ROOT, check=True, capture_output=True, text=True)
        return json.loads(done.stdout.splitlines()[-1])["images_per_second"]


class Dali:
    def __init__(self, name, batch, threads):
        self.pipe = chain(batch_size=batch, num_threads=threads)
        self.pipe.build()
        self.arrays = [np.frombuffer(data, np.uint8) for data in files(name, batch)]

    def __call__(self):
        def run():
            self.pipe.feed_input("IMAGE", self.arrays)
            self.pipe.run()

        return timed(run, len(self.arrays))


class Pillow:
    def __init__(self, name, batch, threads):
        self.files = files(name, batch)
        self.pool = ThreadPoolExecutor(threads)
        self.mean, self.scale = np.float32(MEAN), np.float32(1) / np.float32(STD)

    def one(self, data):
        image = Image.open(io.BytesIO(data)).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
        return ((np.asarray(image, np.float32) - self.mean) * self.scale).transpose(2, 0, 1).copy()

    def __call__(self):
        return timed(lambda: np.stack(list(self.pool.map(self.one, self.files))), len(self.files))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--make", action="store_true")
    parser.add_argument(
        "--record", action="store_true", help="also keep the run in benches/results, which pages are made of"
    )
    options = parser.parse_args()
    dali_trace.set_tracing(enabled=False)
    if options.make:
        made_of = {"pipeline": chain(), "pipeline_gpu": chain("mixed"), "identity": identity(), "pad": pad()}
        for name, made in made_of.items():
            made.serialize(filename=str(ROOT / "benches" / f"{name}.dali"))
        return
    make()
    kept = []
    for name in SIZES:
        peers = {peer.__name__: peer(name, options.batch, options.threads) for peer in (Gesso, Dali, Pillow)}
        rates = {peer: [] for peer in peers}
        for _ in range(options.rounds):
            for peer, measure in peers.items():
                rates[peer].append(measure())
        size = sum(map(len, files(name, 12))) / 12
        print(f"{name}, {size / 1e3:.0f} kB, batch {options.batch}, {options.threads} threads, {options.rounds} rounds")
        gesso = statistics.median(rates["Gesso"])
        kept.append(
            [
                f"{name.replace('x', ' x ')}, {size / 1e3:.0f} kB",
                *(round(statistics.median(rates[peer])) for peer in peers),
            ]
        )
        for peer, values in rates.items():
            median = statistics.median(values)
            ratio = "" if peer == "Gesso" else f"  Gesso is {gesso / median:.2f} times as fast"
            print(f"    {peer:8} {median:8.0f} images/s  ({min(values):.0f} to {max(values):.0f}){ratio}")
    if options.record:
        spread = f"medians of {options.rounds} rounds in turn"
        command = (
            f"benches/peers/compare.py --threads {options.threads} --batch {options.batch} --rounds {options.rounds}"
        )
        columns = ["images", "Gesso", "DALI 2.4, CPU", "Pillow + numpy"]
        print(
            records.write("cpu-peers", "Decode, resize, normalize on a CPU, images/s", command, spread, columns, kept)
        )


if __name__ == "__main__":
    main()
