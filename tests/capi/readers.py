# !/usr/bin/env python3
"""Reads damaged archives, records, indices, databases, arrays, annotations, manifests, tables and frames by streams of
the library, and tells of internal errors, crashes, hangs, and what takes long or much memory.

    readers.py --cases 100000 --seed 1          in child processes, which may die
    readers.py --seed 1 --from 640 --cases 1 --save FOLDER   that case again; keeps its data set

A case is named by the seed and its number. GESSO_LIBRARY or GESSO_PLUGIN names the library, else it is the release
build. With one that is built with AddressSanitizer, GESSO_SANITIZER names the sanitizer's library, as in
`scripts/sanitize`."""

import argparse
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tests" / "server"), str(ROOT / "examples" / "python")]
sys.path.append(str(ROOT / "python"))

import hostile  # noqa: E402
from harness import plugin_path  # noqa: E402
from hostile import INTERNAL, begin_peak, follow, peak_bytes, report  # noqa: E402

SANITIZER = os.environ.get("GESSO_SANITIZER")
# What a data set of some kilobytes may take: processor time, and memory.
MOST_SECONDS = 20 if SANITIZER else 2
MOST_BYTES = 1 << 30
MOST_ADDRESSES = 6 << 30
BATCH, BATCHES = 2, 4
hostile.HUNG_SECONDS = 120


class Sets:
    """A data set of each kind, with the file of a pipeline that reads it. Only a child makes one: the package loads the
    library, which may want the sanitizer's before it."""

    def __init__(self, folder, kinds):
        from data_sets import NATIVE
        from gesso import Pipeline

        self.folder, self.made = Path(folder), {}
        for kind in NATIVE:
            name = kind.__name__
            if kinds and name not in kinds:
                continue
            (self.folder / name).mkdir()
            files, define = kind(self.folder / name)
            pipeline = Pipeline(BATCH, 1, device_id=None, seed=1)
            with pipeline:
                outputs = define()
                pipeline.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
            whole = {file: (self.folder / name / file).read_bytes() for file in files}
            self.made[name] = whole, pipeline.serialize()
            if self._refuses(name):
                raise SystemExit(f"the whole data set of {name} is refused")

    def _refuses(self, name):
        """Reads some batches; whether something of them was refused."""
        from gesso._native.stream import StreamEngine

        stream = StreamEngine(self.made[name][1], num_threads=1, batch_size=BATCH, prefetch=1)
        # Each is read to its end, also behind one that failed.
        return any([bool(stream.next().errors) for _ in range(BATCHES)])

    def read(self, name, rng, keep=None):
        """Damages a file of a set and reads it: (internal errors, whether it was refused)."""
        from data_sets import damaged
        from gesso import GessoError

        whole, _ = self.made[name]
        file = rng.choice(sorted(whole))
        path = self.folder / name / file
        path.write_bytes(damaged(whole[file], rng))
        if keep:
            shutil.copytree(self.folder / name, keep)
        defects, refused = [], False
        try:
            refused = self._refuses(name)
        except GessoError as error:
            refused = True
            if error.status == INTERNAL or not str(error):
                defects.append(f"`{file}`: {error or 'no message'}")
        finally:
            path.write_bytes(whole[file])
        return defects, refused


def work(options):
    """A child: reads one data set after the other, notes each before it begins, and prints what it finds."""
    if not SANITIZER:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        sets = Sets(folder, options.kinds)
        kinds = [*sets.made]
        for number in range(options.begin, options.begin + options.cases):
            if options.progress:
                Path(options.progress).write_bytes(struct.pack("<q", number))
            rng = random.Random(f"{options.seed} {number}")
            kind = rng.choice(kinds)
            keep = options.save and Path(options.save) / f"{kind}-{options.seed}-{number}"
            begin_peak()
            before, began = peak_bytes(), time.process_time()
            defects, refused = sets.read(kind, rng, keep)
            took, peak = time.process_time() - began, peak_bytes() - before
            defects += [f"took {took:.1f} s"] * (took > MOST_SECONDS)
            defects += [f"took {peak >> 20} MiB"] * (peak > MOST_BYTES)
            reached = f"{kind} {'refused' if refused else 'read'}"
            print(json.dumps(dict(number=number, name=kind, defects=defects, reached=reached)), flush=True)


def attend(options):
    """The parent: starts children until all cases are done. Gives what was found, and how many cases went how."""
    number, end, found, reached = options.begin, options.begin + options.cases, [], {}
    environment = {"GESSO_LIBRARY": str(plugin_path()), **os.environ}
    if SANITIZER:
        settings = "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1:detect_odr_violation=0"
        settings += ":alloc_dealloc_mismatch=0"
        environment |= {"LD_PRELOAD": SANITIZER, "ASAN_OPTIONS": settings, "JSIMD_FORCENONE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        progress, said = Path(folder) / "progress", Path(folder) / "said"
        while number < end:
            progress.write_bytes(struct.pack("<q", number))
            program = [sys.executable, __file__, "--child", "--seed", str(options.seed), "--from", str(number)]
            program += ["--cases", str(end - number), "--progress", progress]
            program += ["--kinds", *options.kinds] if options.kinds else []
            program += ["--save", options.save] if options.save else []
            with said.open("wb") as out:
                child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=out, text=True, env=environment)
                hung = follow(child, progress, found, reached)
            if child.returncode == 0:
                break
            at = struct.unpack("<q", progress.read_bytes())[0]
            words = said.read_text(errors="replace").strip().splitlines()
            why = next((line for line in words if "ERROR: AddressSanitizer" in line), " / ".join(words[-3:]))
            found.append((at, "hung" if hung else f"died with {child.returncode}: {why}"))
            report(*found[-1])
            number = at + 1
    return found, reached


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="begin")
    parser.add_argument("--cases", type=int, default=1200)
    parser.add_argument("--kinds", nargs="+", default=[], help="of `tests/python/data_sets.py`; all if left out")
    parser.add_argument("--save", help="a folder for the data sets of all cases")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return work(options)
    found, reached = attend(options)
    print(f"{dict(sorted(reached.items()))}; {len(found)} defects")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
