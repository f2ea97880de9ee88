"""Installs a wheel into every Python that is here and that the package supports, and runs a small pipeline in each,
with warnings as errors.

    python3 scripts/lib/pythons.py target/wheel/gesso_pipelines-....whl

Looks on PATH, among pyenv's versions, and at what $GESSO_PYTHONS names (paths, with colons between them). Environments
with numpy are kept in .cache/pythons. Exits with 1 if one fails; says which versions are not here."""

import glob
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "pythons"
# `t`: without a global lock.
VERSIONS = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.13t", "3.14t"]
NAME = "import sys, sysconfig; print('%d.%d' % sys.version_info[:2] + 't' * bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
PROGRAM = """
import numpy as np
from gesso import dynamic, fn, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=2, enable_conditionals=True, seed=1)
def small():
    images = fn.external_source(source=lambda: [np.full((4, 6, 3), 10 * i, np.uint8) for i in range(4)])
    resized = fn.resize(images, size=[2, 3])
    if fn.random.coin_flip(probability=1.0):
        resized = resized + 1
    return fn.python_function(resized, function=lambda array: array * 2), fn.random.uniform(range=[3, 4])

doubled, drawn = small().run()
assert [np.array(array).max() for array in doubled] == [2, 22, 42, 62]
assert all(3 <= np.array(number) < 4 for number in drawn)
assert np.array(dynamic.cast(np.float32([2.6]), dtype=types.INT32)).tolist() == [3]
"""


def found():
    """Version > a Python of that version."""
    named = os.environ.get("GESSO_PYTHONS", "").split(":")
    on_path = [shutil.which(f"python{version}") for version in VERSIONS]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    pythons = {}
    for python in [*named, *on_path, *sorted(glob.glob(f"{pyenv}/versions/*/bin/python"))]:
        if python:
            done = subprocess.run([python, "-c", NAME], capture_output=True, text=True)
            if done.returncode == 0:
                pythons.setdefault(done.stdout.strip(), python)
    return {version: pythons[version] for version in VERSIONS if version in pythons}


def run(version, python, wheel):
    """Whether the pipeline ran there."""
    folder = CACHE / version
    inside = folder / "bin" / "python"
    pip = [inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not inside.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
        subprocess.run([*pip, "numpy"], check=True)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", wheel], check=True)
    # A file, whose text conditionals need.
    program = folder / "small.py"
    program.write_text(PROGRAM)
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GESSO_LIBRARY")}
    done = subprocess.run([inside, "-W", "error", program], cwd=folder, env=clean, timeout=300)
    return done.returncode == 0


def main():
    wheel = Path(sys.argv[1]).resolve()
    pythons = found()
    outcomes = {version: run(version, python, wheel) for version, python in pythons.items()}
    for version in VERSIONS:
        print(version, {True: "ok", False: "FAILED", None: "not here"}[outcomes.get(version)])
    return 0 if outcomes and all(outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
