#!/usr/bin/env python3
"""Trains on tiny images for a long time, as far as the loader is concerned, and tells whether it grows: memory,
threads, open files, processes.

    PYTHONPATH=python GESSO_LIBRARY=target/release/libtriton_gesso.so python3 scripts/lib/soak_training.py [--minutes
    10]

An epoch is 8,000 images of 32 x 32 as files, shuffled, of which some are missing and some are no images, the same in
tar archives, and 2,000 samples of a source in two worker processes. The state is saved in every epoch; in every tenth
all pipelines are made anew from it. Needs numpy and pillow."""

import argparse
import collections
import gc
import io
import logging
import os
import statistics
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from gesso import Pipeline, fn, types

IMAGES, ARCHIVES, SAMPLES, BATCH = 8000, 4, 2000, 64
# Every so many images one is missing, and one is no image.
MISSING, BROKEN = 501, 333
# Pipelines are made anew in every so many epochs.
AGAIN = 10
# The first part of the run, in which pools and caches fill, is no measure for growth.
WARM_UP = 0.2
# What the last third may have more than the first one: noise, not growth.
MEMORY_BYTES, THREADS, FILES = 12e6, 2, 4


class Look(NamedTuple):
    """The process at one moment: bytes of memory, threads, open files, processes that it started."""

    memory: float
    threads: float
    files: float
    children: float

    @classmethod
    def now(cls):
        gc.collect()
        with open("/proc/self/statm") as file:
            memory = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        tasks = os.listdir("/proc/self/task")
        children = sum(len(Path(f"/proc/self/task/{task}/children").read_text().split()) for task in tasks)
        return cls(memory, len(tasks), len(os.listdir("/proc/self/fd")), children)


def make(folder):
    """Files, and archives with the same images."""
    from PIL import Image

    numbers, archives = np.random.default_rng(0), [tarfile.open(folder / f"{k}.tar", "w") for k in range(ARCHIVES)]
    for label in range(10):
        (folder / "images" / f"{label}").mkdir(parents=True)
    for i in range(IMAGES):
        data = io.BytesIO()
        Image.fromarray(numbers.integers(0, 255, (32, 32, 3), np.uint8)).save(data, "JPEG")
        content = b"no image" if i % BROKEN == 1 else data.getvalue()
        (folder / "images" / f"{i % 10}" / f"{i:05}.jpg").write_bytes(content)
        info = tarfile.TarInfo(f"{i:05}.jpg")
        info.size = len(content)
        archives[i % ARCHIVES].addfile(info, io.BytesIO(content))
    for archive in archives:
        archive.close()


def source(info):
    """A sample of the source in worker processes."""
    if info.idx_in_epoch >= SAMPLES:
        raise StopIteration
    return np.full((16, 16), info.idx_in_epoch % 256, np.uint8)


class Loader:
    """The three pipelines of a training run."""

    def __init__(self, folder, states):
        files = sorted(str(path) for path in folder.glob("images/*/*.jpg"))
        files = [path + ".gone" if i % MISSING == 2 else path for i, path in enumerate(files)]
        archives = [str(folder / f"{k}.tar") for k in range(ARCHIVES)]
        of_files = {"files": files, "random_shuffle": True, "on_missing": "skip"}
        self.pipelines = {
            "files": self._make(lambda: self._train(fn.readers.file(**of_files)[0]), states.get("files")),
            "archives": self._make(
                lambda: self._train(fn.readers.webdataset(paths=archives, ext=["jpg"], random_shuffle=True)),
                states.get("archives"),
            ),
            "workers": self._make(
                lambda: fn.cast(fn.external_source(source, batch=False, parallel=True), dtype=types.FLOAT), None
            ),
        }

    def _make(self, define, state):
        pipeline = Pipeline(
            BATCH, 2, seed=5, on_error="skip", py_num_workers=2, enable_checkpointing=True, checkpoint=state
        )
        with pipeline:
            pipeline.set_outputs(define())
        pipeline.build()
        return pipeline

    def _train(self, encoded):
        images = fn.random_resized_crop(fn.decoders.image(encoded), size=[24, 24])
        return fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, mean=[127.5], std=[127.5]
        )

    def epoch(self):
        """How many samples came, and how many failed."""
        counts = collections.Counter()
        for name in ("files", "archives"):
            pipeline = self.pipelines[name]
            for _ in range(IMAGES // BATCH):
                (images,) = pipeline.run()
                counts["failed"] += len(pipeline.errors)
                counts["good"] += len(images.as_array())
        for (samples,) in self.pipelines["workers"]:
            counts["good"] += len(samples.as_array())
        return counts

    def states(self):
        """What goes on from here."""
        return {name: self.pipelines[name].checkpoint() for name in ("files", "archives")}


def grows(looks):
    """Tells how the last third of the looks differs from the first one, without those of warming up; whether it is more
    than noise."""
    looks = looks[int(WARM_UP * len(looks)) :]
    third = len(looks) // 3
    early, late = (Look(*map(statistics.median, zip(*part))) for part in (looks[:third], looks[-third:]))
    print(
        f"first third after warming up, last third: memory {early.memory / 1e6:.1f} and {late.memory / 1e6:.1f} MB, threads {early.threads:.0f} and "
        f"{late.threads:.0f}, files {early.files:.0f} and {late.files:.0f}, processes {early.children:.0f} and {late.children:.0f}"
    )
    return (
        late.memory > early.memory + MEMORY_BYTES
        or late.threads > early.threads + THREADS
        or late.files > early.files + FILES
        or late.children > early.children
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    # Each missing file is a warning.
    logging.getLogger("gesso").setLevel(logging.ERROR)
    total, looks, began = collections.Counter(), [], time.monotonic()
    with tempfile.TemporaryDirectory() as root:
        make(Path(root))
        loader, until = Loader(Path(root), {}), time.monotonic() + 60 * options.minutes
        while time.monotonic() < until or len(looks) < 3 * AGAIN:
            total += loader.epoch()
            states = loader.states()
            if len(looks) % AGAIN == AGAIN - 1:
                del loader
                loader = Loader(Path(root), states)
            looks.append(Look.now())
            if sys.stderr.isatty():
                print(f"\repoch {len(looks)}: {looks[-1].memory / 1e6:.0f} MB", end="", file=sys.stderr)
        del loader
    print(
        f"{total['good']:,} samples in {time.monotonic() - began:.0f} s, {len(looks)} epochs; {total['failed']:,} failed and were left out"
    )
    sys.exit(grows(looks))


if __name__ == "__main__":
    main()
