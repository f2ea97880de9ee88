"""The benchmark benches/pipeline.rs in a process of its own: how it is started, and what it measured."""

import json
import os
import signal
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class BenchError(RuntimeError):
    """It ended without figures."""


def command():
    """The program in $GESSO_BENCH, or else `cargo bench --bench pipeline`, which is built here."""
    if chosen := os.environ.get("GESSO_BENCH"):
        return [chosen]
    subprocess.run(["cargo", "bench", "--bench", "pipeline", "--no-run"], cwd=ROOT, check=True)
    return ["cargo", "bench", "--quiet", "--bench", "pipeline", "--"]


def measure(command, limit=None, **options):
    """Its figures with these options; after `limit` seconds it is ended."""
    flags = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    # In a session of its own, so that what cargo started ends with cargo.
    with subprocess.Popen([*command, *flags], cwd=ROOT, text=True, start_new_session=True, **pipes) as process:
        try:
            printed, told = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise BenchError(f"not done after {limit:g} s") from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        last = told.strip().splitlines()[-1:] or ["nothing on stderr"]
        raise BenchError(f"ended with status {process.returncode}: {last[0]}")
    try:
        return json.loads(printed.splitlines()[-1])
    except (IndexError, ValueError):
        raise BenchError(f"expected a line of JSON last, found `{printed.strip()[-200:]}`") from None
