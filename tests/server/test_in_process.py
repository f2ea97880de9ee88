"""The plugin in Triton's core alone, in a process that is not `tritonserver`."""

import subprocess
import sys
from pathlib import Path

import pytest
from core_checks import CHECKS
from harness import environment

PROGRAM = Path(__file__).with_name("in_process.py")
# Checks that begin and end servers of their own.
BESIDE = 2
# What came after this server.
NEWER = ["limits of an ensemble's requests in flight"]


@pytest.mark.parametrize("scope", ["as a program that is linked with it", "as Python loads what its modules need"])
def test_the_core_of_this_server_passes_every_check(scope):
    arguments = ["--local"] if "Python" in scope else []
    ran = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, env=environment(), timeout=900
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    every = len(CHECKS) + BESIDE - len(NEWER)
    said = ran.stdout.splitlines()[-1]
    assert said.endswith(f": {every} of {every}; not offered: {', '.join(NEWER)}"), ran.stdout


def test_a_file_that_is_no_core_is_named(tmp_path):
    file = tmp_path / "libtritonserver.so"
    file.write_bytes(b"no library")
    ran = subprocess.run([sys.executable, str(PROGRAM), "--core", str(file)], capture_output=True, text=True)
    assert ran.returncode == 1 and ran.stderr.startswith("error: ") and str(file) in ran.stderr, ran.stderr
