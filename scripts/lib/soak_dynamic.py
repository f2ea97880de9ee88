#!/usr/bin/env python3
"""Calls operators of dynamic mode for a long time, in all ways that a program has, and tells whether it grows: memory,
threads, open files, processes.

    PYTHONPATH=python GESSO_LIBRARY=target/release/libtriton_gesso.so python3 scripts/lib/soak_dynamic.py [--calls
    500000]

A round is: calls at once with pictures of other sizes, batches, numbers that differ, deferred expressions of which some
are never asked for, random draws, calls that fail, readers that are left in the middle, loops with `capture`, another
thread with a context of its own, and a checkpoint. Until about 200,000 calls plans are added to those that are kept,
and with them their threads. Needs numpy and pillow."""

import argparse
import io
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from gesso import dynamic as d
from PIL import Image
from soak_training import Look, grows

FILES, LOOKS = 24, 60
# Sizes of pictures and of results: more kinds than there are plans that are kept.
LARGEST = 64


def make(folder):
    """The names of small pictures."""
    numbers = np.random.default_rng(0)
    for i in range(FILES):
        data = io.BytesIO()
        Image.fromarray(numbers.integers(0, 255, (32, 40, 3), np.uint8)).save(data, "JPEG")
        (folder / f"{i}.jpg").write_bytes(data.getvalue())
    return sorted(str(path) for path in folder.glob("*.jpg"))


class Rounds:
    """Rounds of calls, and how many there were."""

    def __init__(self, files):
        self.files, self.calls, self.failures = files, 0, 0
        self._numbers, self._rng = np.random.default_rng(1), d.random.RNG(seed=1)

    def _call(self, function, *inputs, **arguments):
        self.calls += 1
        return function(*inputs, **arguments)

    def _picture(self):
        height, width = self._numbers.integers(1, LARGEST, 2)
        return d.tensor(np.zeros((height, width, 3), np.uint8), layout="HWC")

    def at_once(self):
        """Pictures, batches, numbers and draws."""
        for _ in range(20):
            height, width = (int(value) for value in self._numbers.integers(1, LARGEST, 2))
            small = self._call(d.resize, self._picture(), size=[height, width])
            turned = self._call(d.rotate, d.batch([small, small]), angle=float(self._numbers.uniform(0, 90)))
            self._call(d.crop_mirror_normalize, turned, crop=[8, 8], out_of_bounds_policy="pad", mean=[1.0], std=[2.0])
            self._call(d.random.uniform, shape=[3], batch_size=4, rng=self._rng)

    def deferred(self):
        """Expressions, every second of which nobody asks for."""
        for number in range(10):
            with d.EvalMode.deferred:
                bright = self._call(d.brightness, self._picture(), brightness=1.5)
                made = self._call(d.cast, self._call(d.flip, bright), dtype=d.float32) + 1.0
            if number % 2:
                np.asarray(made)

    def failing(self):
        """Files that are no pictures, at once and deferred."""
        for mode in (d.EvalMode.eager, d.EvalMode.deferred):
            try:
                with mode:
                    np.asarray(self._call(d.decoders.image, d.tensor(np.arange(30, dtype=np.uint8))))
            except RuntimeError:
                self.failures += 1

    def readers(self, capture):
        """A reader that goes through an epoch, and is left in the middle of the next one."""
        reader = d.readers.File(files=self.files)
        for left_at in (len(self.files), 2):
            for number, (encoded, _) in enumerate(reader.next_epoch(batch_size=4, capture=capture)):
                pictures = self._call(d.decoders.image, encoded)
                np.asarray(self._call(d.resize, pictures, size=[20, 20]).tensors[0])
                if number == left_at:
                    break

    def in_a_thread(self):
        """Calls in another thread, with a context of its own."""

        def work():
            with d.EvalContext(num_threads=1):
                self.at_once()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def checkpoint(self):
        """The state of a generator as a text, and back."""
        saved, again = d.checkpoint.Checkpoint(), d.checkpoint.Checkpoint()
        saved.register(self._rng, "rng")
        saved.collect()
        again.deserialize(saved.serialize())
        again.register(d.random.RNG(seed=2), "rng")

    def one(self):
        """All of it."""
        self.at_once()
        self.deferred()
        self.failing()
        self.readers(capture=False)
        self.readers(capture=True)
        self.in_a_thread()
        self.checkpoint()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=500_000)
    options = parser.parse_args()
    looks, began = [], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(make(Path(folder)))
        while rounds.calls < options.calls:
            until = rounds.calls + options.calls / LOOKS
            while rounds.calls < until:
                rounds.one()
            looks.append(Look.now())
    print(f"{rounds.calls:,} calls in {time.monotonic() - began:.0f} s; {rounds.failures:,} failed, as they should")
    sys.exit(grows(looks))


if __name__ == "__main__":
    main()
