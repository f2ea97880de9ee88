#!/usr/bin/env python3
"""What Python costs, in DALI's package and in Gesso's, in one run on the host's CPU:

    import       a fresh interpreter that imports the package, less one that imports numpy
    author       RandAugment with three augmentations (about 500 operators), defined, serialized and built
    run          `run()` of a batch of 128: arrays that are fed come out again, so that nothing but the way through
                 Python costs
    augment      `run()` of a batch of 128 pictures of 224 x 224 through RandAugment
    dynamic      one operator without a pipeline, a batch of one: the whole call, and the plan's own time in the library

    python.py [--repeats N]

Runs in a Python that has both packages (or Gesso's by PYTHONPATH=python and GESSO_LIBRARY). Prints a table of medians.
"""

import argparse
import importlib
import statistics
import subprocess
import sys
import time
import warnings

import numpy as np

BATCH = 128


def imports(package):
    """Seconds of a fresh interpreter with the package, less those of one without."""

    def took(what):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", f"import {what}"], check=True)
        return time.perf_counter() - began

    return max(took(package) - took("numpy"), 0)


def package_of(name):
    package = importlib.import_module(name)
    return package, importlib.import_module(f"{name}.auto_aug.rand_augment").rand_augment


def augmenting(package, rand_augment):
    @package.pipeline_def(batch_size=BATCH, num_threads=2, seed=1, prefetch_queue_depth=1, enable_conditionals=True)
    def define():
        images = package.fn.external_source(name="images", dtype=package.types.UINT8, ndim=3, layout="HWC")
        return rand_augment(images, n=3, m=10)

    return define()


def passing(package):
    @package.pipeline_def(batch_size=BATCH, num_threads=2, prefetch_queue_depth=1)
    def define():
        return package.fn.copy(package.fn.external_source(name="images"))

    return define()


def timed(work, repeats):
    """Seconds of each of `repeats` calls, behind one that does not count."""
    work()
    found = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return found


def author(package, rand_augment):
    pipeline = augmenting(package, rand_augment)
    pipeline.serialize()
    pipeline.build()


def taken(pipeline, batch):
    """Runs a batch and looks at each sample as an array, as a training loop does."""
    (out,) = pipeline.run(images=batch)
    return [np.asarray(out[i]) for i in range(len(out))]


def measure(name, repeats):
    """Milliseconds by what was measured."""
    package, rand_augment = package_of(name)
    small = [np.zeros((4, 4, 3), np.uint8) for _ in range(BATCH)]
    rng = np.random.default_rng(1)
    pictures = [rng.integers(0, 256, (224, 224, 3), np.uint8) for _ in range(BATCH)]
    plain, augmented = passing(package), augmenting(package, rand_augment)
    found = {
        "import": [imports(name) for _ in range(repeats)],
        "author": timed(lambda: author(package, rand_augment), max(repeats // 2, 3)),
        "run": timed(lambda: taken(plain, small), repeats * 10),
        "augment": timed(lambda: taken(augmented, pictures), max(repeats // 2, 3)),
    }
    return {what: 1e3 * statistics.median(times) for what, times in found.items()}


def one_operator(repeats):
    """(microseconds of a call of `gesso.dynamic`, of the plan's own run in the library)"""
    from gesso import dynamic

    image = np.zeros((32, 32, 3), np.uint8)
    plan, _ = dynamic._prepare(dynamic.flip.args[0], [image], None, None, {"horizontal": 1})
    plan.run([[image]])
    whole = timed(lambda: dynamic.flip(image, horizontal=1), repeats * 200)
    own = timed(plan.prepared.run_as_it_is, repeats * 200)
    return 1e6 * statistics.median(whole), 1e6 * statistics.median(own)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    theirs = measure("nvidia.dali", options.repeats)
    ours = measure("gesso", options.repeats)
    print(f"{'':10}{'DALI':>12}{'Gesso':>12}{'times':>8}")
    for what, time_of_theirs in theirs.items():
        print(f"{what:10}{time_of_theirs:9.2f} ms{ours[what]:9.2f} ms{time_of_theirs / ours[what]:8.1f}")
    whole, own = one_operator(options.repeats)
    print(f"dynamic: {whole:.1f} us a call, of which {own:.1f} us are the plan's own: {whole - own:.1f} us of Python")
    sys.exit(any(ours[what] > theirs[what] for what in theirs))


if __name__ == "__main__":
    main()
