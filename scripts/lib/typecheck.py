"""Checks the types of the Python package with mypy (mypy.ini): the package with its stubs, as the wheel has both, and
programs that use it.

    .venv/bin/python scripts/lib/typecheck.py      GESSO_LIBRARY names the library that lists the operators

The stubs are checked against the code: the package itself calls operators by them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [*sorted((ROOT / "examples" / "python").glob("*.py")), ROOT / "tests" / "python" / "test_typed.py"]
STUBS = "import json, gesso._stubs; print(json.dumps(gesso._stubs.make()))"


def tree(folder):
    """Puts the package into `folder`, with its stubs."""
    unwanted = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "python" / "gesso", folder / "gesso", ignore=unwanted)
    shutil.copy(ROOT / "python" / "gesso_command.py", folder)
    made = subprocess.run([sys.executable, "-c", STUBS], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    for name, text in json.loads(made.stdout).items():
        path = folder / "gesso" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree(Path(folder))
        cache = ROOT / ".cache" / "mypy"
        command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "mypy.ini", "--cache-dir", cache]
        environment = {**os.environ, "MYPYPATH": folder}
        # From there, so that messages name `gesso/...`.
        return subprocess.run(
            [*command, "gesso", "gesso_command.py", *PROGRAMS], cwd=folder, env=environment
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
