"""A few hundred of the cases of `hostile.py`, `isolation.py` and `readers.py`, the same ones every time."""

import subprocess
import sys
from pathlib import Path


def run(program, cases, folder):
    """In a folder of its own: `DumpImage` writes where the process stands."""
    program = [sys.executable, Path(__file__).with_name(program), "--cases", str(cases), "--seed", "3"]
    ran = subprocess.run(program, capture_output=True, text=True, cwd=folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_what_nobody_would_send_is_no_defect(tmp_path):
    assert "'sample'" in run("hostile.py", 800, tmp_path)


def test_a_bad_sample_is_noticed_by_no_other(tmp_path):
    run("isolation.py", 400, tmp_path)


def test_damaged_data_sets_are_errors(tmp_path):
    said = run("readers.py", 400, tmp_path)
    assert "'webdataset refused'" in said and "'webdataset read'" in said
