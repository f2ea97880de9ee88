"""The comparison on a GPU, without one: whole runs with scripts in the place of Gesso's program and of the peers, what
counts as the same output, and the picture."""

import json
import re
import sys
import xml.etree.ElementTree as tree
from types import SimpleNamespace

import gpu_peers
import make_bench_images
import numpy as np
import pytest
from drawing import lines, texts

import gpu

PROGRAM = """#!{python}
import json, sys
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
batch, lanes = int(given["--batch"]), int(given["--instances"])
rate = 1000 * batch * lanes
print(json.dumps({{"images_per_second": rate, "p50_us": 1e6 / 1000, "p99_us": 2000, "gpu_bytes": 3, "counters": "c"}}))
"""
# A peer's process: the second round of a batch of 8 ends it, one peer does not import, and one gets other images.
PEER = """
import json, os, sys
name, rounds = sys.argv[1], 0
print(json.dumps({"error": "ImportError: no library"} if name == "cvcuda" else {"versions": [name + " 1.2"]}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    rounds += job["batch"] == 8
    if name == "torchvision" and rounds == 2:
        os._exit(3)
    rate = 500 * job["batch"] * job.get("depth", 1) * job.get("load", 1)
    answer = {"images_per_second": rate, "p50_us": 4000 / job.get("depth", 1), "p99_us": 5000, "difference": 0.01}
    print(json.dumps({"error": "ValueError: image 0 differs"} if name == "nvimagecodec" else answer), flush=True)
"""


@pytest.fixture
def started(tmp_path, monkeypatch, capsys):
    """Runs the program with these arguments; returns what it prints."""
    program, peer = tmp_path / "bench", tmp_path / "peer.py"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    peer.write_text(PEER)
    monkeypatch.setenv("GESSO_BENCH", str(program))
    monkeypatch.setattr(gpu, "Driver", lambda: SimpleNamespace(name="A GPU"))
    monkeypatch.setattr(gpu_peers, "__file__", str(peer))

    def start(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpu.py", "--images", str(tmp_path / "images"), *map(str, arguments)])
        gpu.main()
        return capsys.readouterr().out

    return start


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    make_bench_images.make(folder, ["500x375"])
    return gpu_peers.read(folder / "500x375")[:3]


def row(peer, batch, rate=100, p50=2000, size="64x64"):
    return {
        "peer": peer,
        "size": size,
        "batch": batch,
        "images_per_second": rate,
        "lowest": rate,
        "highest": rate,
        "p50_us": p50,
        "p99_us": p50,
    }


def test_a_run_names_what_fails_and_goes_on(started, tmp_path):
    file, svg = tmp_path / "rows.json", tmp_path / "rows.svg"
    printed = started("--sizes", "64x64", "--batch", 1, 8, "--instances", 1, 2, "--rounds", 2, "--threads", 3, "--no-memory",
                      "--loads", 0.5, 1, "--json", file, "--svg", svg)  # fmt: skip
    assert printed.startswith(
        "A GPU, 3 threads, 2 rounds of 1 s, in turn\nDALI: dali 1.2\ntorchvision: torchvision 1.2\n"
    )
    assert "\nwithout CV-CUDA: ImportError: no library\n" in printed
    assert "\nerror: batch 1, nvImageCodec: ValueError: image 0 differs\n" in printed
    assert "\nerror: batch 8, torchvision: its process ended with status 3\n" in printed
    assert re.search(r"64x64     8  Gesso x2 +16000  \(16000 to 16000\) +1000 +2000 +2.00 x DALI 1 depth 2\n", printed)
    assert re.search(r"64x64     1  torchvision +500  \(500 to 500\) +4000 +5000\n", printed)
    written = json.loads(file.read_text())
    assert {name: written[name] for name in ("gpu", "threads", "rounds")} == {"gpu": "A GPU", "threads": 3, "rounds": 2}
    found = {(one["peer"], one["batch"]) for one in written["rows"]}
    assert ("torchvision", 1) in found and ("nvImageCodec", 1) not in found
    assert {one.get("difference") for one in written["rows"]} == {None, 0.01}
    expected = {"Gesso, 1 lane", "Gesso, 2 lanes", "DALI", "torchvision", "64x64", "64x64, latency", "images/s"}
    assert expected <= set(texts(tree.parse(svg)))

    # What is in the file is enough for the table and the picture.
    again = started("--from", file, file, "--svg", svg)
    table = lambda text: text[text.index(gpu.heading()) :]
    assert table(again) == "".join(line + "\n" for line in table(printed).splitlines() if not line.startswith("error"))


def test_peers_are_those_that_are_asked_for(started):
    options = ["--sizes", "64x64", "--batch", 1, "--rounds", 1, "--no-memory", "--peers"]
    assert not re.search("DALI|torchvision", started(*options))
    assert re.search("without CV-CUDA", started(*options, "cvcuda"))


def test_of_dali_the_picture_has_the_best_and_the_latency_of_single_batches():
    rows = [row("DALI 0.65 depth 1", 8, 10, 300), row("DALI 1 depth 1", 8, 20, 200), row("DALI 1 depth 2", 8, 30, 100)]
    assert gpu.lines_of(rows, "images_per_second") == {"DALI": [(8, 30)]}
    assert gpu.lines_of(rows, "p50_us") == {"DALI": [(8, 200)]}


def test_all_peers_and_four_numbers_of_lanes_have_a_colour():
    names = ["Gesso x1", "Gesso x2", "Gesso x4", "Gesso x8", "DALI 1 depth 1", *list(gpu_peers.LABELS.values())[1:]]
    drawn = tree.fromstring(
        gpu.picture([row(name, batch, size=size) for name in names for batch in (1, 8) for size in ("a", "b")], "title")
    )
    assert sum(map(len, lines(drawn).values())) == 4 * len(names)


def test_of_several_files_the_medians_are_shown():
    found = gpu.medians([row("cvcuda", 1, 10), row("cvcuda", 1, 30), row("cvcuda", 1, 20), row("cvcuda", 2, 5)])
    assert [(one["batch"], one["images_per_second"]) for one in found] == [(1, 20), (2, 5)]


def test_only_the_batch_of_these_files_is_accepted(files):
    good = np.stack([gpu_peers.reference(file) for file in files])
    assert good.dtype == np.float32 and gpu_peers.check(good + np.float32(0.1), files) == pytest.approx(0.1, abs=1e-3)
    broken = good.copy()
    broken[2, 0, 0, 0] = np.nan
    for values, text in [
        (good[:, ::-1], "image 0 differs from Pillow's by 0."),
        (good[[0, 2, 1]], "image 1 differs"),
        (broken, "image 2 differs from Pillow's by nan"),
        (
            good.transpose(0, 2, 3, 1),
            r"expected float32 of shape \(3, 3, 224, 224\), found float32 of \(3, 224, 224, 3\)",
        ),
        (good.astype(np.float64), "found float64"),
    ]:
        with pytest.raises(ValueError, match=text):
            gpu_peers.check(values, files)


def test_a_peer_gets_files_in_turn_and_its_first_batch_is_compared(files):
    class Pillow(gpu_peers.Run):
        def first(self):
            return np.stack([gpu_peers.reference(file) for file in self.take_inputs()])

        def once(self):
            self.take_inputs()

    run = Pillow(SimpleNamespace(synchronize=lambda: None), files, 4)
    run.warm()
    assert run.difference == 0 and run.next == 4 * (1 + gpu_peers.WARM_BATCHES)
    figures = run.measure(0)
    assert (
        figures.keys() == {"images_per_second", "p50_us", "p99_us", "difference"} and figures["images_per_second"] > 0
    )
    assert [file is files[i] for file, i in zip(run.take_inputs(), (1, 2, 0, 1))] == [True] * 4


def test_what_does_not_import_is_told_in_one_line_and_a_silent_process_is_ended(tmp_path, monkeypatch):
    (tmp_path / "cvcuda.py").write_text("raise OSError('one\\n  two')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert gpu_peers.importable(["cvcuda"]) == ({}, ["without CV-CUDA: OSError: one two"])
    (tmp_path / "cvcuda.py").write_text("import time\ntime.sleep(600)")
    worker = gpu_peers.Worker("cvcuda", limit=1)
    with pytest.raises(gpu_peers.PeerError, match="its process ended with status -9"):
        worker.launch()
        worker.versions()
    worker.close()
