#!/usr/bin/env python3
"""What resizing takes with each `arithmetic`, on a GPU or on one thread of the CPU: 500 x 375 pixels to about 224.

    benches/arithmetic.py [--device gpu] [--batch 128 512] [--runs 20]
    benches/arithmetic.py --device cpu [--batch 16] [--threads 1]

Needs the package `gesso` (or `PYTHONPATH=python` and `GESSO_LIBRARY`). A pipeline that resizes once and one that resizes eleven times, each to
another size, run in turn. A tenth of the difference of their fastest runs is printed: what one resize of a batch takes, without its upload.
"""

import argparse
import time

import numpy as np

from gesso import Pipeline, fn, types

WAYS = [("dali", "linear"), ("pillow", "linear"), ("pillow", "cubic"), ("torchvision", "linear"), ("torchvision-float", "linear"), ("opencv", "linear")]
ONCE, OFTEN = 1, 11
WARM_UP = 3
INTERPOLATIONS = {"linear": types.INTERP_LINEAR, "cubic": types.INTERP_CUBIC}


def pipeline(batch, arithmetic, name, times, on_gpu, threads):
    pipe = Pipeline(batch_size=batch, num_threads=threads, device_id=0 if on_gpu else None, exec_async=False, exec_pipelined=False)
    with pipe:
        images = fn.external_source(name="images", layout="HWC", dtype=types.UINT8, ndim=3)
        images = images.gpu() if on_gpu else images
        options = {"interp_type": INTERPOLATIONS[name], "arithmetic": arithmetic}
        pipe.set_outputs(*(fn.resize(images, size=[224 + i, 224], **options) for i in range(times)))
    pipe.build()
    return pipe


def seconds(pipe, images, on_gpu):
    start = time.perf_counter()
    pipe.feed_input("images", images)
    outputs = pipe.run()
    if on_gpu:
        # The last output is there when all are.
        outputs[-1].as_cpu()
    return time.perf_counter() - start


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--threads", type=int, help="default: 4 with a GPU, 1 without")
    parser.add_argument("--batch", type=int, nargs="+", help="default: 128 512 on a GPU, 16 on a CPU")
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    on_gpu = options.device == "gpu"
    threads = options.threads or (4 if on_gpu else 1)
    image = np.random.default_rng(1).integers(0, 256, (375, 500, 3), np.uint8)
    print(f"{'arithmetic':<18} {'filter':<7} {'batch':>5} {'ms a batch':>11} {'images/s':>10}")
    for batch in options.batch or ([128, 512] if on_gpu else [16]):
        images = [image] * batch
        for arithmetic, name in WAYS:
            pipes = [pipeline(batch, arithmetic, name, times, on_gpu, threads) for times in (ONCE, OFTEN)]
            taken = [[seconds(pipe, images, on_gpu) for pipe in pipes] for _ in range(WARM_UP + options.runs)][WARM_UP:]
            once, often = (min(column) for column in zip(*taken))
            each = max(often - once, 1e-9) / (OFTEN - ONCE)
            print(f"{arithmetic:<18} {name:<7} {batch:>5} {each * 1000:>11.3f} {batch / each:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
