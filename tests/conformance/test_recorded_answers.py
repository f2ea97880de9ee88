"""Where DALI is installed: the answers in data/ are those of the DALI at hand."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "nvidia.dali", reason="DALI is not installed: `pip install nvidia-dali-cuda130` into .venv to run it live"
)


def test_the_recorded_answers_are_those_of_the_installed_dali():
    record = Path(__file__).parent / "record.py"
    done = subprocess.run([sys.executable, str(record), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout
