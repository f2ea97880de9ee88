#!/usr/bin/env python3
"""What dynamic mode costs, in DALI's package and in Gesso's, on the host's CPU:

    flip, resize    one call with one picture of 224 x 224, microseconds
    eager, deferred, capture
                    the input of a ResNet-50 (`next_epoch`, decode, random resized crop, flip, normalize), images/s
    pipeline        the same input as a pipeline, images/s

dynamic.py FOLDER [--batch N] [--threads N] [--batches N] [--rounds N]

FOLDER has JPEGs. Runs in a Python that has both packages (or Gesso's by PYTHONPATH=python and GESSO_LIBRARY); the
packages take turns, each in a process of its own. Prints a table of medians, and each round's share.
"""

import argparse
import importlib
import json
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

MODES = {"gesso": "gesso.dynamic", "nvidia.dali": "nvidia.dali.experimental.dynamic"}
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
CALLS = 300
FLIP, RESIZE, EAGER, DEFERRED, CAPTURE, PIPELINE = "flip", "resize", "eager", "deferred", "capture", "pipeline"


def call_time(call):
    """Microseconds that a call takes until its result is there, the median."""
    for _ in range(20):
        call().evaluate()
    found = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call().evaluate()
        found.append((time.perf_counter() - began) * 1e6)
    return statistics.median(found)


def turn(d, files, rng, size):
    images = d.decoders.image(files)
    crops = d.random_resized_crop(images, size=[224, 224], rng=rng)
    mirror = d.random.coin_flip(batch_size=size, rng=rng)
    return d.crop_mirror_normalize(crops, mirror=mirror, mean=MEAN, std=STD, dtype=d.float32)


def rate_of_loop(d, names, size, batches, mode, capture):
    """Images a second of a loop over a reader, behind two batches that do not count."""
    reader, rng, done, began = d.readers.File(files=names), d.random.RNG(seed=1), 0, 0.0
    while True:
        for files, _ in reader.next_epoch(batch_size=size, capture=capture):
            with mode:
                turn(d, files, rng, size).evaluate()
            done += 1
            if done == 2:
                began = time.perf_counter()
            if done == batches + 2:
                return batches * size / (time.perf_counter() - began)


def rate_of_pipeline(package, names, size, batches, threads):
    fn, types = package.fn, package.types

    @package.pipeline_def(batch_size=size, num_threads=threads, device_id=None, seed=1)
    def define():
        files, _ = fn.readers.file(files=names)
        crops = fn.random_resized_crop(fn.decoders.image(files), size=[224, 224])
        mirror = fn.random.coin_flip()
        return fn.crop_mirror_normalize(crops, mirror=mirror, mean=MEAN, std=STD, dtype=types.FLOAT)

    pipeline = define()
    for _ in range(2):
        pipeline.run()
    began = time.perf_counter()
    for _ in range(batches):
        pipeline.run()
    return batches * size / (time.perf_counter() - began)


def measured(name, options):
    """Name > figure of one package."""
    package, d = importlib.import_module(name), importlib.import_module(MODES[name])
    importlib.import_module(f"{name}.fn"), importlib.import_module(f"{name}.types")
    d.set_num_threads(options.threads)
    names = sorted(str(path) for path in pathlib.Path(options.folder).iterdir() if path.suffix in (".jpg", ".jpeg"))
    # Epochs of whole batches.
    names = (names * (options.batch * 4 // len(names) + 1))[: options.batch * 4]
    picture = d.tensor(np.random.default_rng(0).integers(0, 256, (224, 224, 3), dtype=np.uint8), layout="HWC")
    loop = (d, names, options.batch, options.batches)
    return {
        FLIP: call_time(lambda: d.flip(picture, horizontal=1)),
        RESIZE: call_time(lambda: d.resize(picture, size=[112, 112])),
        EAGER: rate_of_loop(*loop, d.EvalMode.eager, False),
        DEFERRED: rate_of_loop(*loop, d.EvalMode.deferred, False),
        CAPTURE: rate_of_loop(*loop, d.EvalMode.eager, True),
        PIPELINE: rate_of_pipeline(package, names, options.batch, options.batches, options.threads),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--package", choices=MODES, help="only this one, once; prints JSON")
    options = parser.parse_args()
    if options.package:
        print(json.dumps(measured(options.package, options)))
        return
    found = {name: [] for name in MODES}
    for _ in range(options.rounds):
        for name in MODES:
            command = [sys.executable, __file__, *sys.argv[1:], "--package", name]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found[name].append(json.loads(told.splitlines()[-1]))
    print(f"{'':10}{'gesso':>12}{'DALI':>12}{'gesso / DALI':>14}  each round")
    for what in (FLIP, RESIZE, EAGER, DEFERRED, CAPTURE, PIPELINE):
        own, other = ([figures[what] for figures in found[name]] for name in MODES)
        shares = [mine / its for mine, its in zip(own, other)]
        rounds = " ".join(f"{share:.2f}" for share in shares)
        middle = statistics.median
        print(f"{what:10}{middle(own):12.1f}{middle(other):12.1f}{middle(shares):14.2f}  {rounds}")


if __name__ == "__main__":
    main()
