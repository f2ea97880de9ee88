#!/usr/bin/env python3
"""Where more at once is slower: decode + resize to 224x224 + normalize in process on a GPU, by size, batch and batches
at a time (lanes).

    benches/cliffs.py --json FILE --limit 540               cells for 540 seconds at most; another call measures
                                                            those that are left
    benches/cliffs.py --sizes 500x375 --batches 128 256 512 --lanes 1 4 --seconds 3
    benches/cliffs.py --sizes 500x375-mixed 1920x1080-progressive --batches 1 32 512      other kinds of files
    benches/cliffs.py --from FILE... --svg FILE             the report and the picture of what was measured before

A cell is a process of its own: the program in $GESSO_BENCH or else `cargo bench --bench pipeline`. It is a cliff where
it has less than 0.9 of the images/s of a smaller batch with as many lanes, or of fewer lanes with the same batch. All
sizes have their turn with a batch before the next batch, and a few batches far apart come first, so that a run that
ends early has seen everything coarsely. With `--json` cells are kept after every size, and those in the file are not
measured again. Of cells in several files of `--from` the medians are shown. Images are made when they are not there.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "lib"))
import chart  # noqa: E402
import make_bench_images  # noqa: E402
import pipeline_bench  # noqa: E402
from cuda_driver import CudaError, Driver  # noqa: E402

SIZES = ["64x64", "224x224", "500x375", "1280x720", "1920x1080", "4000x3000"]
# Others come when they are asked for.
KNOWN = SIZES + [name for name in make_bench_images.ALL_SIZES if name not in SIZES]
BATCHES = [1 << i for i in range(11)]
# Those that come first, far apart.
COARSE = (1, 1024, 128, 8, 512, 64)
LANES = [1, 2, 4, 8]
NEAR = 0.9
FIGURES = ("images_per_second", "p50_us", "p99_us", "gpu_bytes", "counters")


class Cell(NamedTuple):
    size: str
    batch: int
    lanes: int

    @property
    def load(self):
        return f"batch {self.batch}, {lanes_text(self.lanes)}"

    def __str__(self):
        return f"{self.size}, {self.load}"


class Cliff(NamedTuple):
    """A cell, its images/s, and the better one that is smaller."""

    cell: Cell
    rate: float
    better: Cell
    better_rate: float

    @property
    def ratio(self):
        return self.rate / self.better_rate


# --- Measuring
# -----------------------------------------------------------------------------------------------------------------


def read(path):
    """Under which conditions cells were measured, and their rows: figures or an error."""
    found = json.loads(path.read_text())
    rows = found.pop("cells")
    return found, rows


class Measured:
    """Rows of cells that are measured under the same conditions, kept in a file if it has a path."""

    def __init__(self, path, head):
        self.path, self.head, self.rows = path, head, []
        if path and path.exists():
            found, self.rows = read(path)
            if found != head:
                raise SystemExit(f"error: expected cells of {described(head)} in `{path}`, found {described(found)}")

    def cells(self):
        return {cell_of(row) for row in self.rows}

    def keep(self):
        """Writes a new file in the place of the old one, so that there is always a whole one."""
        if self.path:
            partial = self.path.with_name(self.path.name + ".part")
            partial.write_text(json.dumps({**self.head, "cells": self.rows}, indent=1) + "\n")
            partial.replace(self.path)


def lanes_text(lanes):
    return f"{lanes} lane{'s' if lanes > 1 else ''}"


def cell_of(row):
    return Cell(row["size"], row["batch"], row["lanes"])


def order(sizes, batches, lanes):
    """Batches and sizes in the order in which they are measured, each with its cells."""
    first = [batch for batch in COARSE if batch in batches]
    for batch in first + [batch for batch in batches if batch not in first]:
        for size in sizes:
            yield [Cell(size, batch, count) for count in lanes]


def measure(cell, command, options):
    row = cell._asdict()
    asked = {"device": "gpu", "images": options.images / cell.size, "batch": cell.batch, "instances": cell.lanes}
    try:
        figures = pipeline_bench.measure(
            command, options.cell_limit, **asked, threads=options.threads, seconds=options.seconds
        )
    except pipeline_bench.BenchError as error:
        print(f"error: {cell}: {error}")
        return row | {"error": str(error)}
    return row | {name: figures.get(name) for name in FIGURES}


def measure_all(measured, command, options, began):
    """Adds to `measured` what is not there; prints a line for each batch of a size. Returns the cells for which there
    was no time."""
    done, left = measured.cells(), []
    for cells in order(options.sizes, options.batches, options.lanes):
        rates = {}
        for cell in cells:
            if cell in done:
                continue
            if options.limit and time.monotonic() - began > options.limit:
                left.append(cell)
                continue
            row = measure(cell, command, options)
            measured.rows.append(row)
            rates[cell.lanes] = figure(row.get("images_per_second"))
        if rates:
            measured.keep()
            columns = " ".join(f"x{lanes} {rate:>9}" for lanes, rate in rates.items())
            print(f"{time.monotonic() - began:6.0f} s {cells[0].size:>10} {cells[0].batch:5}  {columns}")
    return left


# --- The report
# ----------------------------------------------------------------------------------------------------------------


def medians(rows):
    """Cells to images/s, and cells to the error of those that never had any."""
    rates, errors = {}, {}
    for row in rows:
        if "error" in row:
            errors[cell_of(row)] = row["error"]
        else:
            rates.setdefault(cell_of(row), []).append(row["images_per_second"])
    rates = {cell: statistics.median(found) for cell, found in rates.items()}
    return rates, {cell: text for cell, text in errors.items() if cell not in rates}


def cliffs(rates):
    """Cells that are worse than one of the same size that asks for less, the worst first."""
    found = []
    for cell, rate in rates.items():
        smaller = {
            other: other_rate
            for other, other_rate in rates.items()
            if other.size == cell.size
            and (
                other.batch < cell.batch
                and other.lanes == cell.lanes
                or other.batch == cell.batch
                and other.lanes < cell.lanes
            )
        }
        if smaller:
            best = max(smaller, key=smaller.get)
            if rate < NEAR * smaller[best]:
                found.append(Cliff(cell, rate, best, smaller[best]))
    return sorted(found, key=lambda cliff: cliff.ratio)


def figure(rate):
    return "failed" if rate is None else f"{rate:,.0f}"


def table(size, rates, errors):
    """Lines of Markdown: a row for each batch, a column for each number of lanes."""
    known = [cell for cell in (*rates, *errors) if cell.size == size]
    batches, lanes = (sorted(set(column)) for column in list(zip(*known))[1:])
    yield f"| {size:>9} |" + "".join(f" {'x' + str(count):>9} |" for count in lanes)
    yield "| --------- |" + " --------: |" * len(lanes)
    for batch in batches:
        cells = [Cell(size, batch, count) for count in lanes]
        yield f"| {batch:>9} |" + "".join(f" {figure(rates.get(cell)) if cell in known else '':>9} |" for cell in cells)


def sizes_of(cells):
    return sorted({cell.size for cell in cells}, key=KNOWN.index)


def report(rows):
    """The page that is printed: tables of images/s, cells without, and cliffs."""
    rates, errors = medians(rows)
    lines = []
    for size in sizes_of((*rates, *errors)):
        lines += [*table(size, rates, errors), ""]
    if errors:
        lines += ["Cells without a figure:", "", *(f"- {cell}: {text}" for cell, text in errors.items()), ""]
    found = cliffs(rates)
    end = ", the worst first:\n" if found else "."
    lines.append(
        f"{len(found)} of {len(rates)} cells have less than {NEAR} of the images/s of a smaller batch or of fewer lanes{end}"
    )
    for cliff in found:
        lines.append(
            f"- {cliff.ratio:.2f}: {cliff.cell}: {figure(cliff.rate)}; {cliff.better.load}: {figure(cliff.better_rate)}"
        )
    return "\n".join(lines)


def picture(rows, title):
    rates, _ = medians(rows)
    panels = []
    for size in sizes_of(rates):
        series = {}
        for cell in sorted(cell for cell in rates if cell.size == size):
            # A log axis has no 0.
            if rates[cell] > 0:
                series.setdefault(cell.lanes, []).append((cell.batch, rates[cell]))
        series = {lanes_text(lanes): series[lanes] for lanes in sorted(series)}
        panels.append(chart.Panel(size, "batch", "images/s", series, log_y=True))
    return chart.panels(title, panels)


def left_out(cells):
    lines = {}
    for cell in cells:
        lines.setdefault((cell.size, cell.batch), []).append(cell.lanes)
    return "\n".join(
        f"- {size}, batch {batch}, lanes {', '.join(map(str, lanes))}" for (size, batch), lanes in lines.items()
    )


def described(head):
    return f"{head['gpu']}, {head['threads']} threads, {head['seconds']} s a cell"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=ROOT / ".cache" / "bench-images")
    parser.add_argument(
        "--sizes", nargs="+", choices=KNOWN, default=SIZES, help="also kinds of files, such as 500x375-png"
    )
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--lanes", type=int, nargs="+", default=LANES, help="batches at a time (default: 1 2 4 8)")
    parser.add_argument("--threads", type=int, default=16, help="of the host for each lane (default: %(default)s)")
    parser.add_argument("--seconds", type=int, default=1, help="of each cell, without its start (default: %(default)s)")
    parser.add_argument(
        "--cell-limit",
        type=float,
        default=40,
        metavar="SECONDS",
        help="of a cell; longer is a failure (default: %(default)s)",
    )
    parser.add_argument(
        "--limit", type=float, metavar="SECONDS", help="begin no cell after that; the last may take its own limit"
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="keep what is measured there; cells that it has are not measured again",
    )
    parser.add_argument(
        "--from", type=Path, nargs="+", metavar="FILE", dest="sources", help="measure nothing: show what these hold"
    )
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also draw images/s by batch, a panel for each size")
    options = parser.parse_args()
    if options.svg and not chart.can_draw():
        parser.error("--svg needs matplotlib: measure with --json, then draw with --from where it is installed")
    return options


def main():
    began = time.monotonic()
    options = arguments()
    sys.stdout.reconfigure(line_buffering=True)
    if options.sources:
        found = [read(path) for path in options.sources]
        heads, rows, left = (
            list(dict.fromkeys(described(head) for head, _ in found)),
            [row for _, rows in found for row in rows],
            [],
        )
    else:
        try:
            head = {"gpu": Driver().name, "threads": options.threads, "seconds": options.seconds}
        except CudaError as error:
            print(f"skipped: {error}")
            return
        measured = Measured(options.json, head)
        make_bench_images.make(options.images, options.sizes)
        left = measure_all(measured, pipeline_bench.command(), options, began)
        heads, rows = [described(head)], measured.rows
    title = "; ".join(heads)
    print(f"\n{title}: images/s by batch and lanes\n\n{report(rows)}")
    if left:
        print(f"\nleft out after {options.limit:g} s, {len(left)} cells:\n\n{left_out(left)}")
    if options.svg:
        options.svg.write_text(picture(rows, f"Decode, resize to 224 x 224, normalize: {title}"))


if __name__ == "__main__":
    main()
