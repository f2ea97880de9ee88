#!/usr/bin/env python3
"""Fits the constants of src/gpu/jpeg/share.rs to what `cargo bench --bench sweep -- --json FILE` measured.

    benches/peers/fit_share.py FILE [--quality-from 75]

A search at random for the least mean of |log(expected / measured)|, so that small batches count as much as large ones
and a path that is held up once does not. Prints each constant with its value, how far the fitted and the present
expectations are off, and how long batches would take on the paths that the fitted constants choose. Needs numpy.
"""

import argparse
import json
import pathlib

import numpy as np

STEPS = 8000
# By how much the search changes the logarithm of a constant at first.
WIDTH = 0.3


def fit(expected, first, times):
    """The constants, from `first` on, for which `expected` is nearest to `times`."""
    rng = np.random.default_rng(0)
    found, width = np.log(np.array(first)), WIDTH
    loss = lambda logs: np.abs(np.log(expected(np.exp(logs)) / times)).mean()
    best = loss(found)
    for step in range(1, STEPS + 1):
        tried = found + width * rng.normal(size=len(found)) * (rng.random(len(found)) < 0.5)
        if (now := loss(tried)) < best:
            found, best = tried, now
        if step % (STEPS // 6) == 0:
            width /= 2
    return np.exp(found)


def errors(expected, times):
    off = np.abs(expected / times - 1) * 100
    return f"off by {np.median(off):.0f} % in the median, {np.percentile(off, 90):.0f} % in the worst tenth"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--quality-from", type=int, default=0, help="leave out files of lower quality")
    options = parser.parse_args()
    sweep = json.loads(options.file.read_text())
    engines, threads = max(1, sweep["engines"]), sweep["threads"]
    print(f"{sweep['gpu']}: {sweep['multiprocessors']} multiprocessors, {engines} engines, {threads} threads")
    paths = ("cores", "engines", "threads")
    cells = [
        c for c in sweep["cells"] if c["quality"] >= options.quality_from and all(p in c["measured_us"] for p in paths)
    ]
    column = lambda key: np.array([cell[key] for cell in cells], float)
    batch, size, largest, pixels, piece = map(column, ("batch", "bytes", "largest", "pixels", "piece_bits"))

    def shared(among, image, byte, pixel):
        # The fullest of so many: files of a cell are alike.
        return np.ceil(batch / among) * (image + byte * size / batch + pixel * pixels / batch)

    models = {
        "cores": (
            lambda p: p[0] + p[1] * piece + p[2] * largest + p[3] * batch + p[4] * size + p[5] * pixels,
            {
                "CORES_START": 1e-4,
                "CORES_PIECE_BIT": 2e-7,
                "CORES_LARGEST_BYTE": 1e-10,
                "CORES_EACH": 2e-6,
                "CORES + KERNELS, byte": 1e-10,
                "CORES + KERNELS, pixel": 1e-11,
            },
        ),
        "engines": (
            lambda p: p[0] + np.maximum(shared(engines, *p[2:]), p[1] * batch),
            {
                "ENGINES_OVERHEAD": 3e-5,
                "ENGINES_EACH": 2e-5,
                "ENGINE.image": 4e-5,
                "ENGINE.byte": 2e-9,
                "ENGINE.pixel": 1e-9,
            },
        ),
        "threads": (
            lambda p: p[0] + shared(threads, *p[2:]) + 3 * pixels / p[1],
            {
                "THREADS_START": 1e-4,
                "UPLOAD_SPEED": 1e10,
                "THREAD.image": 1e-5,
                "THREAD.byte": 1e-8,
                "THREAD.pixel": 1e-9,
            },
        ),
    }
    measured, fitted = {}, {}
    for name, (expected, first) in models.items():
        measured[name], present = (
            np.array([cell[key][name] for cell in cells]) / 1e6 for key in ("measured_us", "expected_us")
        )
        constants = fit(expected, list(first.values()), measured[name])
        fitted[name] = expected(constants)
        print(
            f"{name}, {len(cells)} cells: now {errors(present, measured[name])}; fitted {errors(fitted[name], measured[name])}"
        )
        for constant, value in zip(first, constants):
            print(f"    {constant:24}{value:10.3g}")
    best = np.minimum(measured["cores"], measured["engines"])
    cost = np.where(fitted["cores"] < fitted["engines"], measured["cores"], measured["engines"]) / best
    print(
        f"chosen so, {np.mean(cost <= 1.1):.1%} of batches take at most 1.1 times as long as on the better of cores and engines, at most {cost.max():.2f} times"
    )


if __name__ == "__main__":
    main()
