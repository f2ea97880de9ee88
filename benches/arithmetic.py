#!/usr/bin/env python3
"""What resizing takes with each `arithmetic`, on a GPU or on one thread of the CPU: 500 x 375 pixels to about 224.

    benches/arithmetic.py [--device gpu] [--batch 128 512] [--runs 20]
    benches/arithmetic.py --device cpu [--batch 16] [--threads 1]
    benches/arithmetic.py --files [--threads 16]       JPEGs of several sizes and samplings in front: files to pixels,
                                                       as a stream

Needs the package `gesso` (or `PYTHONPATH=python` and `GESSO_LIBRARY`), `--files` Pillow, too. A pipeline that resizes
once and one that resizes eleven times, each to another size, run in turn. A tenth of the difference of their fastest
runs is printed: what one resize of a batch takes, without its upload. With `--files` it is the fastest of three spells
of a second or longer."""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from gesso import Pipeline, fn, types

WAYS = [
    ("dali", "linear"),
    ("pillow", "linear"),
    ("pillow", "cubic"),
    ("torchvision", "linear"),
    ("torchvision-float", "linear"),
    ("opencv", "linear"),
]
ONCE, OFTEN = 1, 11
WARM_UP = 3
INTERPOLATIONS = {"linear": types.INTERP_LINEAR, "cubic": types.INTERP_CUBIC}


def pipeline(batch, arithmetic, name, times, on_gpu, threads):
    pipe = Pipeline(
        batch_size=batch, num_threads=threads, device_id=0 if on_gpu else None, exec_async=False, exec_pipelined=False
    )
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


def draw_files(folder, count=512):
    """About 500 x 375 pixels of soft noise, every sixteenth progressive."""
    from PIL import Image

    (Path(folder) / "photos").mkdir()
    for i in range(count):
        coarse = np.random.default_rng(i).integers(0, 256, (12 + i % 5, 16, 3), np.uint8)
        photo = Image.fromarray(coarse).resize((500 - i % 7 * (i % 3), 375 + i % 11 * (i % 2)), Image.BICUBIC)
        photo.save(
            Path(folder) / "photos" / f"{i:04}.jpg", quality=75 + i % 20, subsampling=i % 3, progressive=i % 16 == 0
        )


def seconds_from_files(folder, batch, arithmetic, name, on_gpu, threads, spells=3):
    """A batch from files to resized pixels, while others are under way."""
    pipe = Pipeline(batch_size=batch, num_threads=threads, device_id=0 if on_gpu else None)
    with pipe:
        files, _ = fn.readers.file(file_root=folder)
        images = fn.decoders.image(files, device="mixed" if on_gpu else "cpu")
        pipe.set_outputs(fn.resize(images, size=[224, 224], interp_type=INTERPOLATIONS[name], arithmetic=arithmetic))
    pipe.build()
    for _ in range(WARM_UP):
        pipe.run()
    best = float("inf")
    for _ in range(spells):
        runs, start = 0, time.perf_counter()
        while runs < WARM_UP or time.perf_counter() - start < 1:
            pipe.run()
            runs += 1
        best = min(best, (time.perf_counter() - start) / runs)
    return best


def seconds_of_resize(batch, arithmetic, name, on_gpu, threads, runs):
    """One resize of a batch."""
    images = [np.random.default_rng(1).integers(0, 256, (375, 500, 3), np.uint8)] * batch
    pipes = [pipeline(batch, arithmetic, name, times, on_gpu, threads) for times in (ONCE, OFTEN)]
    taken = [[seconds(pipe, images, on_gpu) for pipe in pipes] for _ in range(WARM_UP + runs)][WARM_UP:]
    once, often = (min(column) for column in zip(*taken))
    return max(often - once, 1e-9) / (OFTEN - ONCE)


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--threads", type=int, help="default: 4 with a GPU, 1 without")
    parser.add_argument("--batch", type=int, nargs="+", help="default: 128 512 on a GPU, 16 on a CPU")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--files", action="store_true", help="from files to pixels")
    options = parser.parse_args()
    on_gpu = options.device == "gpu"
    threads = options.threads or (4 if on_gpu else 1)
    print(f"{'arithmetic':<18} {'filter':<7} {'batch':>5} {'ms a batch':>11} {'images/s':>10}")
    with tempfile.TemporaryDirectory() as folder:
        if options.files:
            draw_files(folder)
        for batch in options.batch or ([128, 512] if on_gpu else [16]):
            for way in WAYS:
                if options.files:
                    each = seconds_from_files(folder, batch, *way, on_gpu, threads)
                else:
                    each = seconds_of_resize(batch, *way, on_gpu, threads, options.runs)
                print(f"{way[0]:<18} {way[1]:<7} {batch:>5} {each * 1000:>11.3f} {batch / each:>10.0f}", flush=True)


if __name__ == "__main__":
    main()
