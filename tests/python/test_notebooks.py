"""The notebooks in examples/notebooks run from top to bottom, and are kept without outputs."""

import json
import os
import subprocess
import sys
import urllib.parse
from importlib.util import find_spec
from pathlib import Path

import gesso
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "notebooks"
# What each needs beside Gesso, and a line that it has printed at its end.
NEEDS = {
    "first_steps": (["PIL"], "samples, and: `lying/broken.jpg`"),
    "augmentation": (["PIL", "matplotlib"], ""),
    "training_loop": (["PIL", "torch"], "epoch 7: loss "),
    "serving": (["PIL"], "no TRITON_URL"),
}
TIMEOUT = 300


def notebook(name):
    return json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))


def code(name):
    return ["".join(cell["source"]) + "\n" for cell in notebook(name)["cells"] if cell["cell_type"] == "code"]


def run(program, folder, **more):
    (folder / "program.py").write_text(program)
    paths = os.pathsep.join([str(Path(gesso.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"} | more
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=TIMEOUT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_each_notebook_is_known():
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == set(NEEDS)


@pytest.mark.parametrize("name", NEEDS)
def test_no_notebook_has_outputs(name):
    for cell in notebook(name)["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)


@pytest.mark.parametrize("name", NEEDS)
def test_notebooks_run(name, tmp_path):
    modules, printed = NEEDS[name]
    for module in modules:
        pytest.importorskip(module)
    assert printed in run("\n".join(code(name)), tmp_path)


def test_the_loop_of_the_notebook_learns(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    out = run("\n".join([*code("training_loop"), "print('RATIO', losses[-1] / losses[0])"]), tmp_path)
    assert float(out.split("RATIO ")[1]) < 0.7


def test_the_notebook_for_serving_is_answered_by_a_server(tmp_path):
    # The wheel has the server; its own Python is not wanted.
    if find_spec("pytriton") is None:
        pytest.skip("the server is not installed: scripts/test does that")
    pytest.importorskip("tritonclient.http")
    pytest.importorskip("PIL")
    sys.path.insert(0, str(ROOT / "tests" / "server"))
    import harness

    if not harness.plugin_path().is_file():
        pytest.skip(f"no `{harness.plugin_path()}`: `cargo build --release` makes it")
    run("\n".join(code("serving")), tmp_path)
    with harness.Server(tmp_path / "models") as server:
        address = urllib.parse.urlsplit(server.http_url if "//" in server.http_url else f"//{server.http_url}").netloc
        assert "equal to what the notebook made: True" in run("\n".join(code("serving")), tmp_path, TRITON_URL=address)
