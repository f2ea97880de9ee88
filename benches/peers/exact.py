#!/usr/bin/env python3
"""Decode + resize to 224x224 + normalize on one CPU thread, with each `arithmetic`, beside Pillow's and torchvision's
own chains, in turn.

    benches/peers/exact.py [--batch 32] [--rounds 5] [--record]

Needs the packages gesso (or `PYTHONPATH=python` and `GESSO_LIBRARY`), pillow, torch and torchvision; without the last
two torchvision's chain is left out. Makes the images in .cache/bench, as `compare.py` does. Prints the median images/s
of the rounds, their spread, and the ratio to `dali`."""

import argparse
import io
import pathlib
import statistics
import sys
import time

import numpy as np
from gesso import fn, pipeline_def, types
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts" / "lib"))
import photos  # noqa: E402
import records  # noqa: E402

# torch imports a package `triton`, which is not the program beside this one.
sys.path.remove(str(pathlib.Path(__file__).resolve().parent))

SIDE = 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
# `arithmetic` of the resize, of the decoder and of the normalization.
WAYS = {
    "dali": ("dali", "dali", "dali"),
    "pillow": ("pillow", "pillow", "torchvision"),
    "pillow13": ("pillow13", "pillow", "torchvision"),
    "torchvision": ("torchvision", "pillow", "torchvision"),
    "torchvision-float": ("torchvision-float", "pillow", "torchvision"),
    "opencv": ("opencv", "pillow", "torchvision"),
}
SECONDS = 2


@pipeline_def(num_threads=1, device_id=None, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)
def chain(resize, decode, normalize):
    """Bytes of files > normalized float32, CHW."""
    encoded = fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)
    images = fn.resize(fn.decoders.image(encoded, arithmetic=decode), size=[SIDE, SIDE], arithmetic=resize)
    scale = 255 if normalize == "dali" else 1
    mean, std = ([value * scale for value in values] for values in (MEAN, STD))
    return fn.crop_mirror_normalize(images, mean=mean, std=std, output_layout="CHW", arithmetic=normalize)


def gesso(way, files):
    """Runs Gesso's chain once."""
    pipe = chain(*WAYS[way], batch_size=len(files))
    pipe.build()

    def run():
        pipe.feed_input("IMAGE", files)
        pipe.run()

    return run


def pillow(files):
    """Runs Pillow's, with numpy behind it."""
    mean, std = np.float32(MEAN), np.float32(STD)

    def one(file):
        image = Image.open(io.BytesIO(file)).convert("RGB").resize((SIDE, SIDE), Image.BILINEAR)
        return ((np.asarray(image, np.float32) / 255 - mean) / std).transpose(2, 0, 1).copy()

    return lambda: np.stack([one(file) for file in files])


def torchvision(files):
    """Runs torchvision's, of uint8 tensors."""
    import torch
    from torchvision.io import decode_jpeg
    from torchvision.transforms.v2 import functional

    torch.set_num_threads(1)
    files = [torch.from_numpy(file.copy()) for file in files]

    def one(file):
        image = functional.resize(decode_jpeg(file), [SIDE, SIDE], antialias=True)
        return functional.normalize(functional.to_dtype(image, torch.float32, scale=True), MEAN, STD)

    return lambda: torch.stack([one(file) for file in files])


def rate(run, batch):
    """Images/s."""
    run()
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < SECONDS:
        run()
        count += batch
    return count / (time.perf_counter() - began)


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--record", action="store_true", help="also keep the run in benches/results, which pages are made of"
    )
    options = parser.parse_args()
    files = [np.frombuffer(file, np.uint8) for file in photos.files("500x375", options.batch)]
    runs = {way: gesso(way, files) for way in WAYS} | {"Pillow + numpy": pillow(files)}
    try:
        runs["torchvision's own"] = torchvision(files)
    except ImportError as error:
        print(f"torchvision's chain is left out: {error}")
    rates = {name: [] for name in runs}
    for _ in range(options.rounds):
        for name, run in runs.items():
            rates[name].append(rate(run, options.batch))
    dali, rows = statistics.median(rates["dali"]), []
    for name, values in rates.items():
        median = statistics.median(values)
        print(
            f"{name:18} {median:7.0f} images/s  ({min(values):.0f} to {max(values):.0f})  {median / dali:.2f} of dali"
        )
        rows.append([name, f"{median:,.0f} ({min(values):,.0f} to {max(values):,.0f})", f"{median / dali:.2f}"])
    if options.record:
        command = f"benches/peers/exact.py --batch {options.batch} --rounds {options.rounds}"
        title = "JPEG of 500 x 375 to 224 x 224, normalized, on one CPU thread"
        spread = f"medians of {options.rounds} rounds in turn, least and most"
        print(records.write("exact-cpu", title, command, spread, ["`arithmetic`", "images/s", "of `dali`"], rows))


if __name__ == "__main__":
    main()
