"""Where DALI is installed beside the package: both write the same files, and each runs the other's."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "nvidia.dali", reason="DALI is not installed: `pip install nvidia-dali-cuda130` into .venv to run it live"
)
pytest.importorskip("gesso", reason="the package is not installed: `scripts/wheel` makes it")


def test_pipelines_written_with_both_packages_are_the_same():
    script = Path(__file__).parent / "round_trip.py"
    done = subprocess.run([sys.executable, str(script), "--cases", "500"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "500 pipelines: 500 have the same file" in done.stdout
