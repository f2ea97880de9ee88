"""The command `gesso` of the package: what it says where a package is missing, and which interpreter it takes."""

import os
import subprocess
import sys
from pathlib import Path

import gesso
import pytest

PACKAGE = Path(gesso.__file__).parents[1]
PROGRAM = """
from gesso import fn, pipeline_def, types

@pipeline_def(batch_size=2, num_threads=1)
def model():
    return fn.decoders.image(fn.external_source(name="IMAGE", dtype=types.UINT8, ndim=1))
"""


def command(*words, cwd, without=None, **environment):
    """Runs the command line; `without` is the name of a package that is hidden from it."""
    paths = [str(PACKAGE)]
    if without:
        (cwd / "hidden").mkdir(exist_ok=True)
        (cwd / "hidden" / f"{without}.py").write_text(
            f"raise ModuleNotFoundError(\"No module named '{without}'\", name='{without}')"
        )
        paths.insert(0, str(cwd / "hidden"))
    environment = {**os.environ, **environment, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.run(
        [sys.executable, "-m", "gesso_command", *words], capture_output=True, text=True, cwd=cwd, env=environment
    )


@pytest.mark.parametrize("words", [["serialize", "model.py"], ["compare", "--help"]])
def test_a_package_that_is_missing_is_one_line(words, tmp_path):
    (tmp_path / "model.py").write_text(PROGRAM)
    done = command(*words, cwd=tmp_path, without="numpy")
    assert done.returncode == 1 and done.stderr.startswith("error: the package `gesso` is not usable in"), done.stderr
    assert "`--python` or the environment variable GESSO_PYTHON" in done.stderr and "Traceback" not in done.stderr


def test_help_needs_no_package(tmp_path):
    done = command("serialize", "--help", cwd=tmp_path, without="numpy")
    assert done.returncode == 0 and "--python" in done.stdout and "GESSO_PYTHON" in done.stdout, done.stderr


def test_the_interpreter_is_the_one_that_is_named(tmp_path):
    (tmp_path / "model.py").write_text(PROGRAM)
    for words, environment in [
        (["serialize", "model.py", "--python", sys.executable], {"GESSO_PYTHON": "no-python"}),
        (["serialize", "--python", sys.executable, "model.py"], {}),
        (["serialize", "model.py"], {"GESSO_PYTHON": sys.executable}),
    ]:
        done = command(*words, cwd=tmp_path, **environment)
        assert done.returncode == 0 and (tmp_path / "model.dali").exists(), done.stderr
        (tmp_path / "model.dali").unlink()
    done = command("serialize", "model.py", cwd=tmp_path, GESSO_PYTHON="no-python")
    assert done.returncode == 1 and "cannot run `no-python`" in done.stderr


@pytest.mark.parametrize(
    "package, module, way",
    [
        (
            "torch",
            "gesso.plugin.pytorch",
            "The extra `torch` of Gesso's wheel brings it: `pip install 'FILE.whl[torch]'`",
        ),
        ("jax", "gesso.plugin.jax", "The extra `jax` of Gesso's wheel brings it"),
        ("numba", "gesso.plugin.numba", "Install it: `pip install numba`."),
    ],
)
def test_a_plugin_says_what_it_needs(package, module, way, tmp_path):
    (tmp_path / f"{package}.py").write_text(
        f"raise ModuleNotFoundError(\"No module named '{package}'\", name='{package}')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(PACKAGE)])}
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, env=environment)
    assert f"ModuleNotFoundError: `{module}` needs the package `{package}`, which is not installed." in done.stderr, (
        done.stderr
    )
    assert way in done.stderr
