"""Images/s of a classifier's training input: JPEG files of a folder, decode, random resized crop to 224, flip, normalize.

    python benches/peers/training.py make FOLDER                 5,000 files of 500 x 375, 10 classes
    python benches/peers/training.py gesso|dali|torch FOLDER     each with the interpreter that has it

torch is `DataLoader` with torchvision's transforms and Pillow. All use two workers: threads, or processes for torch.
"""

import argparse
import io
import multiprocessing
import os
import sys
import time
from pathlib import Path

import numpy as np

BATCH, WORKERS, SIDE = 64, 2, 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SECONDS = 15


def make(folder):
    from PIL import Image

    for label in range(10):
        (folder / f"class{label}").mkdir(parents=True, exist_ok=True)
    width, height = 500, 375
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    for i in range(5000):
        rng = np.random.default_rng(i)
        coarse = rng.normal(0, 40, (height // 12 + 1, width // 12 + 1, 3)).clip(-120, 120)
        coarse = np.asarray(Image.fromarray((coarse + 128).astype(np.uint8)).resize((width, height), Image.BICUBIC))
        wave = 30 * np.sin(x * rng.uniform(0.02, 0.2) + y * rng.uniform(0.02, 0.2))
        pixels = coarse + wave[..., None] + rng.normal(0, 7, (height, width, 1))
        data = io.BytesIO()
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(data, "JPEG", quality=(75, 88, 95)[i % 3])
        (folder / f"class{i % 10}" / f"{i:04}.jpg").write_bytes(data.getvalue())


def pipeline(fn, types, pipeline_def, folder):
    @pipeline_def(batch_size=BATCH, num_threads=WORKERS, device_id=None, seed=1)
    def define():
        encoded, labels = fn.readers.file(file_root=str(folder), random_shuffle=True, name="reader", prefetch_queue_depth=2)
        image = fn.decoders.image_random_crop(encoded, random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3])
        image = fn.resize(image, size=[SIDE, SIDE])
        image = fn.crop_mirror_normalize(
            image,
            dtype=types.FLOAT,
            output_layout="CHW",
            mean=[255 * value for value in MEAN],
            std=[255 * value for value in STD],
            mirror=fn.random.coin_flip(),
        )
        return image, labels

    made = define()
    made.build()
    while True:
        images, _ = made.run()
        images.as_tensor()
        yield BATCH


def gesso(folder):
    from gesso import fn, pipeline_def, types

    return pipeline(fn, types, pipeline_def, folder)


def dali(folder):
    from nvidia.dali import fn, pipeline_def, types

    return pipeline(fn, types, pipeline_def, folder)


def torch(folder):
    sys.path.pop(0)  # this folder has a `triton.py`, which is not what torch wants
    from torch.utils.data import DataLoader
    from torchvision import datasets, transforms

    steps = [transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize(MEAN, STD)]
    data = datasets.ImageFolder(str(folder), transforms.Compose(steps))
    loader = DataLoader(data, BATCH, shuffle=True, num_workers=WORKERS, drop_last=True, persistent_workers=True)
    while True:
        for images, _ in loader:
            yield len(images)


def cpu_seconds():
    """What this process and its workers have computed."""
    total = sum(os.times()[:2])
    for child in multiprocessing.active_children():
        with open(f"/proc/{child.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["make", "gesso", "dali", "torch"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    options = parser.parse_args()
    if options.what == "make":
        return make(options.folder)
    batches = globals()[options.what](options.folder)
    for _ in range(4):
        next(batches)
    began, used, count = time.perf_counter(), cpu_seconds(), 0
    while time.perf_counter() - began < options.seconds:
        count += next(batches)
    wall, used = time.perf_counter() - began, cpu_seconds() - used
    print(f"{options.what}: {count / wall:.0f} images/s, {1000 * used / count:.2f} ms of a core for an image", flush=True)


if __name__ == "__main__":
    main()
