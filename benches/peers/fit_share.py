#!/usr/bin/env python3
"""Fits the constants of src/gpu/jpeg/share.rs to what `cargo bench --bench sweep -- --json FILE` measured.

    benches/peers/fit_share.py FILE [--quality-from 75]

Least squares of relative errors, so that small batches count as much as large ones. Prints each constant with its value, how far
the fitted and the present expectations are off, and what a term for pixels would change. Needs numpy.
"""
import argparse
import json
import pathlib

import numpy as np


def fit(terms, times):
    """Coefficients that are not negative; the term that would be most so is left out, one by one."""
    weighted = np.stack(terms, 1) / times[:, None]
    scale = weighted.max(0)
    kept = list(range(len(terms)))
    while kept:
        found, *_ = np.linalg.lstsq(weighted[:, kept] / scale[kept], np.ones(len(times)), rcond=None)
        if found.min() >= 0:
            break
        del kept[int(found.argmin())]
    result = np.zeros(len(terms))
    result[kept] = found / scale[kept]
    return result


def errors(expected, times):
    off = np.abs(expected / times - 1) * 100
    return f"off by {np.median(off):.0f} % in the median, {np.percentile(off, 90):.0f} % in the worst tenth"


def report(name, cells, make_terms, constants):
    """`make_terms` of arrays by name; `constants` of coefficients."""
    cells = [cell for cell in cells if name in cell["measured_us"]]
    if len(cells) < 8:
        print(f"{name}: {len(cells)} cells, too few to fit")
        return
    arrays = {key: np.array([cell[key] for cell in cells], float) for key in ("bytes", "largest", "pixels", "batch")}
    times = np.array([cell["measured_us"][name] for cell in cells]) / 1e6
    present = np.array([cell["expected_us"][name] for cell in cells]) / 1e6
    terms = make_terms(arrays)
    found = fit(terms, times)
    print(f"{name}, {len(cells)} cells: now {errors(present, times)}; fitted {errors(np.stack(terms, 1) @ found, times)}")
    for constant, value, unit in constants(found):
        print(f"    {constant:17}{value:12.4g} {unit}")
    # Threads upload pixels: their terms have them.
    if name == "threads":
        return
    more = [*terms, arrays["pixels"]]
    with_pixels = fit(more, times)
    if with_pixels[-1] > 0:
        print(f"    with {with_pixels[-1] * 1e9:.3f} ns a pixel: {errors(np.stack(more, 1) @ with_pixels, times)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--quality-from", type=int, default=0, help="leave out files of lower quality")
    options = parser.parse_args()
    sweep = json.loads(options.file.read_text())
    cells = [cell for cell in sweep["cells"] if cell["quality"] >= options.quality_from]
    engines, threads, multiprocessors = max(1, sweep["engines"]), sweep["threads"], sweep["multiprocessors"]
    print(f"{sweep['gpu']}: {multiprocessors} multiprocessors, {engines} engines, {threads} threads")

    def speed(seconds_a_byte):
        return 1 / seconds_a_byte if seconds_a_byte > 0 else float("inf")

    one = np.ones_like
    report(
        "cores", cells, lambda a: [one(a["bytes"]), a["bytes"]],
        lambda c: [("CORES_START", c[0] * 1e6, "us"), ("CORE_SPEED", speed(c[1]) / multiprocessors, "bytes/s")],
    )
    report(
        "engines", cells, lambda a: [one(a["bytes"]), a["largest"], a["bytes"] - a["largest"]],
        lambda c: [
            ("ENGINES_OVERHEAD", c[0] * 1e6, "us"), ("ENGINE_SPEED", speed(c[1]), "bytes/s"),
            ("FOLLOWING", c[1] / (engines * c[2]) if c[2] > 0 else float("inf"), ""),
        ],
    )
    # The fullest thread: files of a cell are alike.
    report(
        "threads", cells, lambda a: [one(a["bytes"]), np.ceil(a["batch"] / threads) * a["bytes"] / a["batch"], 3 * a["pixels"]],
        lambda c: [
            ("THREADS_START", c[0] * 1e6, "us"), ("THREAD_SPEED", speed(c[1]), "bytes/s"), ("UPLOAD_SPEED", speed(c[2]), "bytes/s"),
        ],
    )


if __name__ == "__main__":
    main()
