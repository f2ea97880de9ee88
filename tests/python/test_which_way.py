"""The pages that show the same task in several ways, and frameworks beside PyTorch: each program runs as it stands."""

import io
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"


def sections(page):
    """Heading > its programs, joined."""
    text = (GUIDES / page).read_text(encoding="utf-8")
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    program = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return {name: "\n".join(program.findall(part)) for name, part in zip(parts[1::2], parts[2::2])}


@pytest.fixture
def images(tmp_path, monkeypatch):
    """70 pictures of two classes, in the working directory."""
    picture = pytest.importorskip("PIL.Image")
    for i in range(70):
        folder = tmp_path / "images" / ("cat", "dog")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        data = io.BytesIO()
        picture.fromarray(np.full((40, 60, 3), i * 3, np.uint8)).save(data, "JPEG")
        (folder / f"{i}.jpg").write_bytes(data.getvalue())
    monkeypatch.chdir(tmp_path)


WAYS = {
    "Pipeline": ["torch"],
    "Dynamic mode": ["torch"],
    "torchvision's transforms": ["torch", "torchvision"],
    "DataLoader": ["torch"],
    "TensorFlow": ["tensorflow"],
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_does_the_task(images, capsys, way):
    for package in WAYS[way]:
        pytest.importorskip(package)
    Path("program.py").write_text(sections("which-way.md")[way])
    runpy.run_path("program.py")
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("(")]
    assert len(lines) == 9
    assert all(line.startswith("(8, 3, 224, 224)") for line in lines[:-1])
    labels = [int(word) for line in lines for word in re.findall(r"\d+", line.partition("[")[2])]
    assert set(labels) == {0, 1}
    # An epoch: each file once; the last batch of dynamic mode and TensorFlow is filled with those of the next.
    assert len(labels) == (72 if way in ("Dynamic mode", "TensorFlow") else 70)


def test_every_way_is_run():
    assert sections("which-way.md").keys() == WAYS.keys()


def test_the_page_of_tensorflow(images, capsys):
    pytest.importorskip("tensorflow")
    Path("program.py").write_text(sections("tensorflow.md")["TensorFlow"])
    runpy.run_path("program.py")
    printed = capsys.readouterr().out
    assert printed.count("(8, 64, 64, 3) (8,)") == 3 and printed.count("(4, 20, 30, 3)") == 2


def test_the_page_of_paddle(images, capsys):
    pytest.importorskip("paddle")
    Path("program.py").write_text(sections("tensorflow.md")["PaddlePaddle"])
    runpy.run_path("program.py")
    assert len(re.findall(r"\[8, 64, 64, 3\]\)? \S*\[8, 1\]", capsys.readouterr().out)) == 9
