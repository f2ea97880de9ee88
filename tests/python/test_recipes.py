"""The guides for tasks do what they say: their Python runs as it stands, from top to bottom, on data with the names
that they use."""

import importlib.util
import io
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import gesso
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDES = ROOT / "docs" / "guides"


def blocks(page, language="python"):
    """Those of a page; an end of one is no beginning of another."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", (GUIDES / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def run(program):
    Path("program.py").write_text(program)
    return runpy.run_path("program.py")


def jpeg(shade=0):
    data = io.BytesIO()
    pytest.importorskip("PIL.Image").fromarray(np.full((40, 60, 3), shade, np.uint8)).save(data, "JPEG")
    return data.getvalue()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_training_with_pytorch(here, capsys):
    torch = pytest.importorskip("torch")
    for part, count in (("images", 70), ("valid", 35)):
        for i in range(count):
            folder = here / part / ("cat", "dog")[i % 2]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{i}.jpg").write_bytes(jpeg(200 * (i % 2)))
    names = run("".join(blocks("pytorch.md")))
    printed = capsys.readouterr().out
    assert (
        re.findall(r"^epoch \d: loss ", printed, re.MULTILINE) == ["epoch 0: loss ", "epoch 1: loss "]
        and "(8, 224, 224, 3)" in printed
    )
    # Each file once, the last batch of three among them.
    assert printed.count(" of 35 images") == 2
    assert names["numbers"].tolist() == list(range(8)) and torch.isfinite(names["loss"])


def test_many_files_offline(here, capsys):
    (here / "photos").mkdir()
    for i in range(9):
        (here / "photos" / f"{i}.jpg").write_bytes(b"no image" if i == 4 else jpeg(20 * i))
    job = next(block for block in blocks("offline.md") if block.startswith("# batch_job.py"))
    with pytest.raises(SystemExit, match="photos/4.jpg"):
        run(job)
    assert capsys.readouterr().out == "8 of 9 files\n"
    made = np.load("pixels.npy")
    for i in range(9):
        assert (abs(made[i].astype(int) - (0 if i == 4 else 20 * i)) <= 2).all(), i
    # Without a broken file it says how many, and nothing else.
    (here / "photos" / "4.jpg").write_bytes(jpeg(80))
    assert sorted(run(job)["done"]) == list(range(9)) and capsys.readouterr().out == "9 of 9 files\n"
    for file in (here / "photos").iterdir():
        file.unlink()
    with pytest.raises(SystemExit, match="no file fits"):
        run(job)


@pytest.mark.parametrize(
    ("page", "library"),
    [("serve-hugging-face.md", "transformers"), ("serve-timm.md", "timm"), ("serve-yolo.md", "ultralytics")],
)
def test_a_model_of_others(page, library, here, capsys):
    names = run("".join(blocks(page)))
    (shown,) = [block.splitlines() for block in blocks(page, "") if block.startswith("$ gesso from")]
    done = subprocess.run(
        shown[0].replace("$ gesso", f"{sys.executable} -m gesso", 1), shell=True, capture_output=True, text=True
    )
    printed = done.stdout.splitlines()
    if importlib.util.find_spec(library) is None:
        assert "the library is not installed" in printed[0], done.stderr
        printed = [line for line in shown[1:] if "equal to the bit" in line] + printed[1:]
    assert [line.replace(f"{here}/", "") for line in printed] == shown[1:], done.stderr
    assert "def preprocess():" in capsys.readouterr().out
    if page == "serve-yolo.md":
        assert names["to_image"](0, 80, (300, 400)) == (0, 0) and names["to_image"](640, 560, (300, 400)) == (400, 300)
    check(here / "models")


def test_transforms_of_training(here, capsys, monkeypatch):
    pytest.importorskip("torchvision")
    for i in range(70):
        folder = here / "images" / ("cat", "dog")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.jpg").write_bytes(jpeg(i))
    transforms, program, mixed = blocks("training/replace-torchvision.md")
    Path("transforms.py").write_text(transforms)
    run(program)
    assert capsys.readouterr().out.splitlines() == [
        f"torch.Size([{count}, 3, 224, 224]) torch.Size([{count}])" for count in (64, 6)
    ]
    monkeypatch.syspath_prepend(str(here))
    run(mixed)
    assert capsys.readouterr().out == "(8, 3, 224, 224) (8, 2)\n"


def check(models):
    done = subprocess.run([sys.executable, "-m", "gesso", "check", str(models)], capture_output=True, text=True)
    if "has no command line" in done.stderr:
        pytest.skip("the library was built without the command line")
    assert "ok       preprocess" in done.stdout, done.stdout + done.stderr


def test_the_command_for_many_files(here):
    program = next(block for block in blocks("offline.md") if block.startswith("# preprocess.py"))
    (here / "preprocess.py").write_text(program)
    written, command = [block for block in blocks("offline.md", "") if block.startswith("gesso")]
    subprocess.run(written.replace("gesso", f"{sys.executable} -m gesso", 1), shell=True, check=True)
    (here / "photos").mkdir()
    for name in "ab":
        (here / "photos" / f"{name}.jpg").write_bytes(jpeg())
    done = subprocess.run(
        command.replace("gesso", f"{sys.executable} -m gesso", 1), shell=True, capture_output=True, text=True
    )
    if "has no command line" in done.stderr:
        pytest.skip("the library was built without the command line")
    assert done.returncode == 0 and len(list((here / "out").glob("*.npy"))) == 2, done.stderr
    assert (here / "out" / "PIXELS.0.a.npy").exists()
    (here / "photos" / "b.jpg").write_bytes(b"no image")
    command = command.rstrip() + " --overwrite"
    done = subprocess.run(
        command.replace("gesso", f"{sys.executable} -m gesso", 1), shell=True, capture_output=True, text=True
    )
    assert done.returncode == 1 and "photos/b.jpg" in done.stdout + done.stderr


def test_a_part_of_the_files(here):
    """The piece of the page about shards, in a definition."""
    from gesso import fn, pipeline_def

    (here / "photos").mkdir()
    files = [f"photos/{i}.jpg" for i in range(8)]
    for i, name in enumerate(files):
        Path(name).write_bytes(jpeg(i))
    names = {"fn": fn, "files": files}

    @pipeline_def(batch_size=2, num_threads=1)
    def quarter():
        exec(next(block for block in blocks("offline.md") if block.startswith("encoded, number")), names)
        return names["number"]

    (numbers,) = quarter().run()
    assert numbers.as_array().ravel().tolist() == [2, 3]


def test_the_programs_of_the_readme(here, capsys):
    """The one for training needs PyTorch."""
    first, *others = blocks("../../README.md")
    (here / "photo.jpg").write_bytes(jpeg(7))
    run(first)
    assert capsys.readouterr().out == "(224, 224, 3)\n"
    pytest.importorskip("torch")
    for i in range(70):
        folder = here / "images" / ("cat", "dog")[i % 2]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{i}.jpg").write_bytes(jpeg(i))
    run("".join(others))
    shapes = [f"torch.Size([{count}, 3, 224, 224]) torch.Size([{count}])" for count in (64, 6)]
    assert capsys.readouterr().out.splitlines() == shapes


def test_the_comparison_with_dali(here, capsys):
    """The program of the page, with Gesso under DALI's name on its side, too: where DALI is, tests/conformance compares
    with it."""
    from gesso import fn, pipeline_def, types

    @pipeline_def(batch_size=8, num_threads=1)
    def model():
        images = fn.resize(
            fn.decoders.image(fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1)), size=[20, 20]
        )
        return fn.crop_mirror_normalize(images, dtype=types.FLOAT, mean=[127.5], std=[127.5])

    model().serialize(filename="model.dali")
    for name, shade in (("a", 0), ("b", 255)):
        Path(f"{name}.jpg").write_bytes(jpeg(shade))
    command = [sys.executable, "-m", "gesso", "run", "model.dali", "--input", "IMAGE=a.jpg,b.jpg", "--out", "out"]
    done = subprocess.run(command, capture_output=True, text=True)
    if "has no command line" in done.stderr:
        pytest.skip("the library was built without the command line")
    assert done.returncode == 0, done.stderr
    program = "import gesso.as_dali\n" + "".join(blocks("from-dali.md"))
    Path("program.py").write_text(program)
    # In a process of its own: DALI's name stays taken.
    paths = os.pathsep.join([str(Path(gesso.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "program.py"], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert done.stdout.splitlines() == ["a.jpg: at most 0.0 apart", "b.jpg: at most 0.0 apart"], done.stderr
