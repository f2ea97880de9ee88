#!/usr/bin/env python3
"""Notebooks of DALI's documentation: runs them with Gesso in DALI's place, and tells which go through.

    dali_notebooks.py DALI/docs/examples --extra FOLDER [NAME...]

NAME is a part of a path; without one it is those of dynamic mode. Cells are run as they are, without IPython's own
commands (`%matplotlib`). The notebooks are not part of this project, nor is their data: FOLDER is a copy of DALI_extra,
or files that stand for it, and `data` in the folder of the examples has their pictures and sounds. A notebook runs in a
copy of the examples, in a process of its own. What they import has to be there: matplotlib, pillow, and librosa or
torch for some. The status is the count of those that fail."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DYNAMIC = ["dynamic_mode", "pytorch_dynamic"]


def program(notebook):
    """The cells of code, one after the other."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    lines = "".join("".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code").splitlines()
    return "\n".join("pass" if line.startswith(("%", "!")) else line for line in lines)


def run(notebook, extra, seconds):
    """What is wrong with a notebook: the last line that it printed to standard error, or nothing."""
    script = notebook.with_suffix(".py")
    script.write_text(program(notebook), encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    if extra:
        environment["DALI_EXTRA_PATH"] = str(extra.resolve())
    command = [sys.executable, "-m", "gesso.as_dali", script.name]
    try:
        done = subprocess.run(
            command,
            cwd=script.parent,
            env=environment,
            timeout=seconds,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
    except subprocess.TimeoutExpired:
        return f"it takes more than {seconds} s"
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("examples", type=Path)
    parser.add_argument("names", nargs="*", default=DYNAMIC)
    parser.add_argument("--extra", type=Path)
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(options.examples, Path(folder) / "examples"))
        paths = (path for path in sorted(copy.rglob("*.ipynb")) if any(name in str(path) for name in options.names))
        failed = 0
        for path in paths:
            wrong = run(path, options.extra, options.seconds)
            failed += bool(wrong)
            print(f"{path.relative_to(copy)!s:75} {wrong or 'passed'}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
