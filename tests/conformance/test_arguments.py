"""Where DALI is installed beside the package: arguments take the same forms in both."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "nvidia.dali", reason="DALI is not installed: `pip install nvidia-dali-cuda130` into .venv to run it live"
)
pytest.importorskip("gesso", reason="the package is not installed: `scripts/wheel` makes it")
# Every operator takes a quarter of an hour: GESSO_ALL_ARGUMENTS=1.
SOME = [
    "Resize",
    "Crop",
    "Rotate",
    "CropMirrorNormalize",
    "transforms__Scale",
    "transforms__Rotation",
    "Pad",
    "Cast",
    "RandomResizedCrop",
]


def test_arguments_take_the_forms_that_dali_takes():
    script = Path(__file__).parent / "arguments.py"
    only = [] if os.environ.get("GESSO_ALL_ARGUMENTS") else ["--only", *SOME]
    done = subprocess.run([sys.executable, str(script), *only], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 differ" in done.stdout
