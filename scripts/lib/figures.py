"""Tables and charts of measurements, made of the records in benches/results, so that no page has a number of its own.

    .venv/bin/python scripts/lib/figures.py            writes all of them anew
    .venv/bin/python scripts/lib/figures.py --check    exit status 1 if one is not what its records say

A record is a JSON file SERIES.DATE.json; `records.py` says what is in it. A page shows one between two comments,
`<!-- figures: WHAT -->` and `<!-- end -->`, where WHAT is one of

    SERIES          the newest record of the series
    SERIES DATE     that one, for pages that tell a history
    front           the comparison with DALI and torchvision of the README, out of the newest records of several series
    newest          the newest record of each series that is compared with others, with machine and command
    history         every record, the newest first
"""

import argparse
import re
import sys
from pathlib import Path

import chart
import records

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- figures: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
CHART = "docs/benchmarks/peers.svg"
PEERS = "gpu-peers"
# Of the README's comparison: what it is called, the series, the row's first cell, Gesso's column, DALI's, and
# torchvision's if it ran, too.
FRONT = (
    ("one H200, batches of 128, four at a time", PEERS, "500 x 375, 128", "four", "DALI 2.4, best", "torchvision"),
    ("one H200, batches of 512, four at a time", PEERS, "500 x 375, 512", "four", "DALI 2.4, best", "torchvision"),
    ("one H200, one image at a time", PEERS, "500 x 375, 1", "Gesso, one", "DALI 2.4, best", "torchvision"),
    ("two CPU cores, batches of 32", "cpu-peers", "500 x 375", "Gesso", "DALI 2.4, CPU", None),
)
# Columns of the record of peers that the chart has, and what it calls them.
DRAWN = {
    "four": "Gesso, four batches at a time",
    "Gesso, one": "Gesso, one at a time",
    "DALI 2.4, best": "DALI 2.4, at its best",
    "torchvision": "torchvision",
    "nvImageCodec": "nvImageCodec",
    "CV-CUDA": "CV-CUDA",
}
# A row for each loader there.
TRAINING = (
    "two CPU cores, training: files, random crop, flip",
    "training-cpu",
    "Gesso, files",
    "DALI 2.4, CPU, files",
    "PyTorch's `DataLoader`, torchvision",
    "images/s",
)
# What a reader of the front page of benchmarks compares.
COMPARED = (
    PEERS,
    "cpu-peers",
    "training-cpu",
    "triton-gpu",
    "behind-model-part",
    "video-cpu",
    "python-cost",
    "neighbours",
)


def number(text):
    """`243,739` or 243739 as a number."""
    return float(str(text).split(" (")[0].split(" images")[0].replace(",", ""))


def cell(value):
    """A value as tables show it."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def rows(head, body):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *body]
    return "".join(
        "|" + "|".join(f" {cell(value)} " if value != "" else " " for value in line) + "|\n" for line in lines
    )


def source(record):
    """Under a table: where its numbers are from."""
    spread = f"; {record['spread']}" if record["spread"] else ""
    command = f"`{record['command']}`" if record["command"] else "The command was not recorded."
    return f"Measured on {record['machine']}, {record['date']}, commit {record['commit']}{spread}. {command}"


def shown(record):
    return rows(record["columns"], record["rows"])


def picked(record, first, column):
    """The cell of that row and column."""
    lines = record["rows"]
    line = next((line for line in lines if line[0] == first), None) or next(
        line for line in lines if line[0].startswith(first)
    )
    return number(line[record["columns"].index(column)])


def compared():
    """What the README compares: where, Gesso's rate, DALI's, torchvision's or None, the program that measures."""
    found = []
    for name, series, first, *columns in FRONT:
        record = records.newest(series)
        found.append(
            (name, *(column and picked(record, first, column) for column in columns), record["command"].split()[0])
        )
    name, series, *loaders, column = TRAINING
    record = records.newest(series)
    return [*found, (name, *(picked(record, loader, column) for loader in loaders), record["command"].split()[0])]


def front():
    """The README's comparison as a table."""

    def beside(own, other):
        if other is None:
            return ["", ""]
        ratio = own / other
        return [int(other), f"{ratio:.0f} times" if ratio >= 10 else f"{ratio:.1f} times"]

    body = [
        [name, int(own), *beside(own, dali), *beside(own, torch), f"`{command}`"]
        for name, own, dali, torch, command in compared()
    ]
    return rows(["where", "Gesso", "DALI 2.4", "", "torchvision", "", "command"], body)


def newest():
    """The newest records, one under the other."""
    parts = []
    for series in COMPARED:
        record = records.newest(series)
        parts.append(f"\n### {record['title']}\n\n{shown(record)}\n{source(record)}\n")
    return "".join(parts) + "\n"


def history():
    """One row for each record."""
    found = sorted(records.all_records(), key=lambda record: (record["date"], record["series"]), reverse=True)
    body = [
        [r["date"], f"`{r['series']}`", r["title"], r["machine"], r["spread"] or "not recorded", f"`{r['commit']}`"]
        for r in found
    ]
    return rows(["date", "record", "what", "machine", "spread", "commit"], body)


VIEWS = {"front": front, "newest": newest, "history": history}


def block(what):
    """What a page has between its two comments."""
    if what in VIEWS:
        return VIEWS[what]()
    series, _, date = what.partition(" ")
    return shown(records.of_date(series, date) if date else records.newest(series))


def picture():
    """Images a second by batch, a panel for each size."""
    record = records.newest(PEERS)
    sizes = {}
    for line in record["rows"]:
        size, _, batch = line[0].rpartition(", ")
        series = sizes.setdefault(size, {})
        for column, value in zip(record["columns"][1:], line[1:]):
            if column in DRAWN:
                series.setdefault(DRAWN[column], []).append((int(batch), number(value)))
    panels = [
        chart.Panel(f"JPEGs of {size}", "images a batch", "images/s", series, log_y=True)
        for size, series in sizes.items()
    ]
    return chart.panels(f"Decode, resize to 224 x 224, normalize: {record['machine']}, {record['date']}", panels)


def pages():
    """Pages that may show figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def made():
    """Each file that shows figures, and what it should hold."""
    found = {ROOT / CHART: picture()}
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if BLOCK.search(text):
            found[path] = BLOCK.sub(lambda match: match[1] + block(match[2]) + match[3], text)
    return found


def main(words):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if something would change")
    options = parser.parse_args(words)
    stale = [path for path, text in made().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if options.check:
        for path in stale:
            name = path.relative_to(ROOT)
            print(f"{name} is not what benches/results says: run `.venv/bin/python scripts/lib/figures.py`")
        return bool(stale)
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
