"""Runs the recorded pipelines of tests/conformance through a program `gesso` and compares with what DALI answered: for
programs that no test can be linked into, those of a release, here or under emulation.

    recorded_by_program.py target/dist/.../bin/gesso
    recorded_by_program.py qemu-aarch64-static -L /usr/aarch64-linux-gnu .../bin/gesso
    recorded_by_program.py --only resize qemu-x86_64-static -cpu Nehalem .../bin/gesso

Prints what differs and how many cases were compared. What `gesso run` does not take, such as empty batches and
pipelines without inputs, is counted as skipped. Exits with 1 when something differs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))
from recorded import DATA, cases

SECONDS = 300
# Of float results: the C library has the functions, and another machine's rounds their last bit otherwise.
RELATIVE = 1e-6


def run(program, case, folder):
    """Runs one case. Returns the arrays of each output by sample, or None where the program does not take it."""
    counts = {len(samples) for samples in case.inputs.values()}
    if not case.inputs or len(counts) != 1 or 0 in counts:
        return None
    (folder / "model.dali").write_bytes(case.pipeline)
    words = []
    for name, samples in case.inputs.items():
        files = [folder / f"{len(words)}.{number}.npy" for number in range(len(samples))]
        for file, sample in zip(files, samples):
            np.save(file, sample)
        words += ["--input", f"{name}={','.join(map(str, files))}"]
    options = ["--out", folder / "out", "--batch", str(counts.pop()), "--threads", "1", "--json"]
    command = [*program, "run", folder / "model.dali", *words, *options]
    # Some pipelines write images where they run.
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode != 0:
        return f"exit status {done.returncode}: {(done.stderr + done.stdout).strip()[-300:]}"
    found = {}
    for entry in json.loads(done.stdout)["outputs"]:
        found.setdefault(entry["output"], {})[entry["sample"]] = np.load(entry["file"])
    return list(found.values())


def difference(case, found):
    """What is wrong with an answer, in words; empty when nothing is."""
    if isinstance(found, str):
        return found
    if len(found) != len(case.outputs):
        return f"{len(found)} outputs, expected {len(case.outputs)}"
    for number, expected in enumerate(case.outputs):
        for sample, array in enumerate(expected):
            answer = found[number].get(sample)
            if answer is None or answer.shape != array.shape or answer.dtype != array.dtype:
                return f"output {number}, sample {sample}: {answer if answer is None else (answer.dtype, answer.shape)}"
            ours, theirs = answer.astype(np.float64), array.astype(np.float64)
            room = case.tol + (RELATIVE * np.abs(theirs) if array.dtype.kind == "f" else 0.0)
            same = (answer == array) | (np.isnan(ours) & np.isnan(theirs))
            with np.errstate(invalid="ignore"):
                apart = np.where(same, 0, np.abs(ours - theirs))
            if not np.all(same | (apart <= room)):
                return f"output {number}, sample {sample}: {np.max(apart)} apart, allowed {case.tol}"
    return ""


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="modules whose names begin so")
    parser.add_argument("program", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    program = [str(Path(word).resolve()) if Path(word).is_file() else word for word in options.program]
    same = skipped = differ = 0
    for path in sorted(DATA.glob(f"{options.only or ''}*.zip")):
        for name, case in cases(path.stem).items():
            with tempfile.TemporaryDirectory() as folder:
                found = run(program, case, Path(folder))
            if found is None:
                skipped += 1
                continue
            if wrong := difference(case, found):
                differ += 1
                print(f"{path.stem}.{name}: {wrong}", flush=True)
            else:
                same += 1
    print(f"{same} as DALI, {differ} not, {skipped} skipped")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
