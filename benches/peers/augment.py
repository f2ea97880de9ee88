#!/usr/bin/env python3
"""What a graph of hundreds of small operators costs a batch: automatic augmentation in Gesso and in DALI, in turn.

    benches/peers/augment.py [--gpu] [--threads 2] [--batch 1 8 64] [--side 32 224] [--rounds 3]

Needs the package nvidia-dali-cuda130, and cargo or `--program`, a `gesso` that is there; a GPU only for `--gpu`, with
which images come from the host and the operators run on the device. Images of 32x32 show the graph, those of 224x224
what it is like in use. Prints the median time of a batch in milliseconds, and how long the pipeline takes to be ready.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from nvidia.dali import Pipeline, fn, pipeline_def, types
from nvidia.dali.auto_aug import auto_augment, rand_augment, trivial_augment

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
from cuda_driver import Driver  # noqa: E402

AUGMENT = {
    "rand_augment": lambda image: rand_augment.rand_augment(image, n=3, m=15),
    "auto_augment": lambda image: auto_augment.auto_augment(image, "image_net"),
    "trivial_augment_wide": trivial_augment.trivial_augment_wide,
}
SECONDS = 2
WARM_UP = 3


def serialized(name, threads, gpu):
    @pipeline_def(
        batch_size=64, num_threads=threads, device_id=None, prefetch_queue_depth=1, enable_conditionals=True, seed=42
    )
    def augmented():
        image = fn.external_source(name="X", dtype=types.UINT8, ndim=3, layout="HWC")
        return AUGMENT[name](image.gpu() if gpu else image)

    return augmented().serialize()


def dali(file, images, batch, driver):
    """Milliseconds until the pipeline is ready, and of a batch. With a driver it runs on the device, and a batch is
    done when that is."""
    began = time.perf_counter()
    pipeline = Pipeline.deserialize(file, batch_size=batch, device_id=0 if driver else None)
    pipeline.build()
    ready = time.perf_counter() - began
    samples = [images[i % len(images)] for i in range(batch)]
    times = []
    end = None
    while end is None or time.perf_counter() < end:
        began = time.perf_counter()
        pipeline.feed_input("X", samples)
        pipeline.run()
        if driver:
            driver.synchronize()
        times.append(time.perf_counter() - began)
        if len(times) == WARM_UP:
            end = time.perf_counter() + SECONDS
    return ready * 1e3, statistics.median(times[WARM_UP:]) * 1e3


def gesso(program, path, inputs, batch, threads, gpu):
    arguments = [
        path,
        "--input",
        "X=" + ",".join(map(str, inputs)),
        "--batch",
        batch,
        "--threads",
        threads,
        "--seconds",
        SECONDS,
    ]
    arguments += ["--device", "gpu"] if gpu else []
    began = time.perf_counter()
    subprocess.run([program, "inspect", "--plan", path], check=True, capture_output=True)
    ready = time.perf_counter() - began
    told = json.loads(subprocess.check_output([program, "bench", "--json", *map(str, arguments)]))
    (row,) = told
    return ready * 1e3, row["p50_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--program", type=pathlib.Path, help="a `gesso` to measure instead of the one built here")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--side", type=int, nargs="+", default=[32, 224])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    program = options.program or ROOT / "target" / "release" / "gesso"
    if not options.program:
        subprocess.run(["cargo", "build", "--release", "--bin", "gesso"], cwd=ROOT, check=True)
    driver = Driver() if options.gpu else None
    print(
        f"{'pipeline':22}{'operators':>10}{'side':>6}{'batch':>6}{'Gesso ms':>10}{'DALI ms':>9}{'ratio':>7}   ready: Gesso, DALI ms"
    )
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name in AUGMENT:
            file = serialized(name, options.threads, options.gpu)
            (folder / f"{name}.dali").write_bytes(file)
            told = json.loads(subprocess.check_output([program, "inspect", "--json", folder / f"{name}.dali"]))
            operators = len(told["pipeline"]["operators"])
            for side in options.side:
                images = [np.random.default_rng(i).integers(0, 256, (side, side, 3), np.uint8) for i in range(8)]
                paths = [folder / f"{side}_{i}.npy" for i in range(len(images))]
                for path, image in zip(paths, images):
                    np.save(path, image)
                for batch in options.batch:
                    ours, theirs = [], []
                    for _ in range(options.rounds):
                        ours.append(gesso(program, folder / f"{name}.dali", paths, batch, options.threads, options.gpu))
                        theirs.append(dali(file, images, batch, driver))
                    (ready, ms), (dali_ready, dali_ms) = (map(statistics.median, zip(*rows)) for rows in (ours, theirs))
                    print(
                        f"{name:22}{operators:10}{side:6}{batch:6}{ms:10.2f}{dali_ms:9.2f}{dali_ms / ms:6.1f}x"
                        f"{ready:12.0f}{dali_ready:8.0f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
