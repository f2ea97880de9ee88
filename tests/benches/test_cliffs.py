"""The search for cliffs: what it finds in figures, and whole runs with a script in the place of the program that
measures."""

import json
import re
import sys
import xml.etree.ElementTree as tree
from types import SimpleNamespace

import cliffs
import pytest
from cliffs import Cell
from drawing import lines

# Images/s go up with batches and lanes, but with two lanes from 512 on; the largest is no more to be had, and one
# hangs.
PROGRAM = """#!{python}
import json, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
open({log!r}, "a").write(json.dumps(given) + "\\n")
batch, lanes = int(given["--batch"]), int(given["--instances"])
if (batch, lanes) == (1024, 4):
    sys.exit("a first line\\nError: out of memory")
if (batch, lanes) == (1024, 2):
    time.sleep(600)
rate = 1000 * batch / (batch + 40) * lanes * (0.25 if batch == 512 and lanes == 2 else 1)
print("a line of something else")
print(json.dumps({{"images_per_second": rate, "p50_us": 1, "p99_us": 2, "gpu_bytes": 3, "counters": "c"}}))
"""
OPTIONS = [
    "--sizes",
    "64x64",
    "224x224",
    "--batches",
    "1",
    "2",
    "128",
    "512",
    "1024",
    "--lanes",
    "1",
    "2",
    "4",
    "--cell-limit",
    "3",
]


@pytest.fixture
def started(tmp_path, monkeypatch, capsys):
    """Runs the program with these arguments; returns what it prints and what each of its processes was asked for."""
    program, log = tmp_path / "bench", tmp_path / "log"
    program.write_text(PROGRAM.format(python=sys.executable, log=str(log)))
    program.chmod(0o755)
    monkeypatch.setenv("GESSO_BENCH", str(program))
    monkeypatch.setattr(cliffs, "Driver", lambda: SimpleNamespace(name="A GPU"))

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["cliffs.py", "--images", str(tmp_path / "images"), *map(str, arguments)])
        log.write_text("")
        cliffs.main()
        return capsys.readouterr().out, [json.loads(line) for line in log.read_text().splitlines()]

    return start


def rows(**rates):
    """Of names such as b8x2."""
    cells = [map(int, re.findall(r"\d+", name)) for name in rates]
    return [Cell("64x64", *cell)._asdict() | {"images_per_second": rate} for cell, rate in zip(cells, rates.values())]


def found(**rates):
    return [
        (cliff.cell[1:], cliff.better[1:], round(cliff.ratio, 2))
        for cliff in cliffs.cliffs(cliffs.medians(rows(**rates))[0])
    ]


def test_a_cliff_is_below_nine_tenths_of_a_smaller_batch_or_of_fewer_lanes():
    assert found(b1x1=100, b2x1=91, b4x1=89) == [((4, 1), (1, 1), 0.89)]
    assert found(b8x1=100, b8x2=91, b8x4=50) == [((8, 4), (8, 1), 0.5)]


def test_neither_other_sizes_nor_larger_batches_nor_both_at_once_count():
    assert found(b1x1=10, b2x1=100, b1x2=90) == []
    assert found(b1x1=100, b2x2=10) == []
    rates = {Cell("64x64", 1, 1): 100, Cell("224x224", 2, 1): 10}
    assert cliffs.cliffs(rates) == []


def test_cliffs_are_compared_with_the_best_and_the_worst_is_first():
    assert found(b1x1=100, b2x1=120, b4x1=80, b1x2=200, b4x2=50) == [((4, 2), (1, 2), 0.25), ((4, 1), (2, 1), 0.67)]


def test_of_several_files_the_medians_count_and_one_figure_is_better_than_an_error():
    failed = [{"size": "64x64", "batch": batch, "lanes": 1, "error": "status 1"} for batch in (1, 2)]
    rates, errors = cliffs.medians([*failed, *rows(b1x1=10), *rows(b1x1=30), *rows(b1x1=11)])
    assert (rates, errors) == ({Cell("64x64", 1, 1): 11}, {Cell("64x64", 2, 1): "status 1"})


def test_all_sizes_have_a_batch_before_the_next_and_batches_far_apart_come_first():
    cells = list(cliffs.order(["64x64", "224x224"], [1, 2, 4, 8, 1024], [1, 8]))
    assert [(group[0].size, group[0].batch) for group in cells[:4]] == [
        ("64x64", 1),
        ("224x224", 1),
        ("64x64", 1024),
        ("224x224", 1024),
    ]
    assert [group[0].batch for group in cells[4::2]] == [8, 2, 4]
    assert all([cell.lanes for cell in group] == [1, 8] for group in cells)


def test_a_run_measures_each_cell_and_reports_cliffs_and_failures(started, tmp_path):
    file, svg = tmp_path / "cells.json", tmp_path / "cells.svg"
    printed, asked = started(*OPTIONS, "--json", file, "--svg", svg)
    assert len(asked) == 30
    assert asked[0] == {
        "--device": "gpu", "--images": str(tmp_path / "images" / "64x64"), "--batch": "1", "--instances": "1", "--threads": "16", "--seconds": "1"
    }  # fmt: skip
    assert len(list((tmp_path / "images" / "224x224").glob("*.jpg"))) == 24
    assert "|       128 |       762 |     1,524 |     3,048 |" in printed
    assert "|      1024 |       962 |    failed |    failed |" in printed
    assert "- 64x64, batch 1024, 4 lanes: ended with status 1: Error: out of memory\n" in printed
    assert "- 224x224, batch 1024, 2 lanes: not done after 3 s\n" in printed
    assert "2 of 26 cells have less" in printed
    assert "- 0.30: 224x224, batch 512, 2 lanes: 464; batch 128, 2 lanes: 1,524\n" in printed
    written = json.loads(file.read_text())
    assert {name: written[name] for name in ("gpu", "threads", "seconds")} == {
        "gpu": "A GPU",
        "threads": 16,
        "seconds": 1,
    }
    figures = {"images_per_second": 1000 / 41, "p50_us": 1, "p99_us": 2, "gpu_bytes": 3, "counters": "c"}
    assert written["cells"][0] == {"size": "64x64", "batch": 1, "lanes": 1, **figures}
    assert [list(map(len, corners)) for corners in lines(tree.parse(svg)).values()] == [[5, 5], [4, 4], [4, 4]]

    # What is in the file is not measured again, and is enough for the report.
    again, asked = started(*OPTIONS, "--batches", "1", "2", "4", "--json", file)
    assert {given["--batch"] for given in asked} == {"4"} and len(asked) == 6
    report, asked = started("--from", file)
    assert asked == [] and report == again[again.index("\nA GPU") :]


def test_what_there_is_no_time_for_is_named(started, tmp_path):
    printed, asked = started(*OPTIONS, "--sizes", "64x64", "--limit", "1e-9", "--json", tmp_path / "cells.json")
    assert asked == []
    assert "15 cells:\n\n- 64x64, batch 1, lanes 1, 2, 4\n" in printed


def test_cells_of_other_conditions_are_not_mixed_in(started, tmp_path):
    file = tmp_path / "cells.json"
    file.write_text(json.dumps({"gpu": "Another", "threads": 16, "seconds": 1, "cells": []}))
    with pytest.raises(SystemExit, match="expected cells of A GPU, 16 threads, 1 s a cell in .*, found Another"):
        started("--sizes", "64x64", "--json", file)
