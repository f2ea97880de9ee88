#!/usr/bin/env python3
"""Runs changed pipelines on changed inputs through the C API, and tells of panics, crashes, hangs, and memory beyond
bounds.

    hostile.py --cases 20000 --seed 1          in child processes, which may die
    hostile.py --seed 1 --from 123 --cases 1   one of them again; --save FILE keeps its pipeline

Each case is named by the seed and its number. A case may fail in whatever way, but not with an internal error: that is
a defect of the library. GESSO_PLUGIN names the library, else it is the release build; a debug build also panics where a
sum overflows."""

import argparse
import ctypes
import json
import mmap
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import threading
import time
from ctypes import POINTER, byref, c_char_p, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "server"), str(ROOT / "python" / "gesso" / "_native")]

# The declarations alone: the package would load a library of its own.
from declarations import Input, InstanceOptions, Sample  # noqa: E402
from harness import plugin_path  # noqa: E402
from mutate import DTYPES, Mutator  # noqa: E402
from recorded import DATA, cases  # noqa: E402

# Images of all formats.
FILES = [ROOT / "tests" / "data" / "decode" / name for name in ("pictures.npz", "avif.npz", "jxl.npz", "heif.npz")]
# As gesso.h numbers them.
NUMBERS = {np.dtype(name): number for number, name in enumerate(DTYPES)}
OK, INTERNAL = 0, 2
# Of processor time: the machine may be busy.
MOST_SECONDS = 5
MOST_BYTES = 2 << 30
# Beyond any limit of the library's own: what takes this much is ended by the kernel instead of taking the machine
# along.
MOST_ADDRESSES = 6 << 30
HUNG_SECONDS = 60
THREADS = 2


class Library:
    """The functions that a case needs; each answers a status."""

    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        self.c.gesso_last_error.restype = c_char_p
        self.c.gesso_result_sample_status.argtypes = [c_void_p, c_size_t, POINTER(c_char_p)]
        for name in ("gesso_pipeline_free", "gesso_instance_free", "gesso_result_free", "gesso_string_free"):
            getattr(self.c, name).argtypes = [c_void_p]

    def error(self):
        return self.c.gesso_last_error().decode(errors="replace")

    def run(self, pipeline, inputs):
        """What was internal errors of this pipeline on these inputs, by the stage; and the last stage that went
        well."""
        defects, text, planned, instance, result = [], c_void_p(), c_void_p(), c_void_p(), c_void_p()

        def call(stage, *arguments):
            status = getattr(self.c, stage)(*arguments)
            if status == INTERNAL:
                defects.append(f"{stage}: {self.error()}")
            return status == OK

        if call("gesso_describe", pipeline, c_size_t(len(pipeline)), byref(text)):
            self.c.gesso_string_free(text)
        reached = "nothing"
        # For a device, too: that needs none.
        if call("gesso_pipeline_load", pipeline, c_size_t(len(pipeline)), 1, byref(planned)):
            self.c.gesso_pipeline_free(planned)
        if call("gesso_pipeline_load", pipeline, c_size_t(len(pipeline)), 0, byref(planned)):
            reached = "load"
            options = InstanceOptions(ctypes.sizeof(InstanceOptions), THREADS)
            if call("gesso_instance_create", planned, byref(options), byref(instance)):
                # Twice: a failed batch must leave nothing behind that the next one stumbles over.
                for _ in range(2):
                    batch, given, _kept = batch_of(inputs)
                    if call(
                        "gesso_instance_run", instance, c_size_t(batch), given, c_size_t(len(inputs)), byref(result)
                    ):
                        reached = "run"
                        for i in range(batch):
                            message = c_char_p()
                            status = self.c.gesso_result_sample_status(result, i, byref(message))
                            if status == INTERNAL:
                                defects.append(f"sample {i}: {message.value.decode(errors='replace')}")
                            elif status == OK:
                                reached = "sample"
                        self.c.gesso_result_free(result)
                self.c.gesso_instance_free(instance)
            self.c.gesso_pipeline_free(planned)
        return defects, reached


def batch_of(inputs):
    """The batch's size, what is passed for these inputs, and what must live as long."""
    given, kept = (Input * max(len(inputs), 1))(), []
    for place, (name, samples) in zip(given, inputs.items()):
        table = (Sample * len(samples))()
        for entry, sample in zip(table, samples):
            data = np.ascontiguousarray(sample) if sample.size else None
            shape = (c_int64 * max(sample.ndim, 1))(*sample.shape)
            entry.struct_size = ctypes.sizeof(Sample)
            entry.data, entry.shape, entry.ndim = data.ctypes.data if data is not None else None, shape, sample.ndim
            kept.append((data, shape))
        kept.append(table)
        place.struct_size, place.name, place.device, place.samples = ctypes.sizeof(Input), name.encode(), 0, table
        place.dtype = NUMBERS[samples[0].dtype]
    return max((len(samples) for samples in inputs.values()), default=2), given, kept


class Cases:
    """All recorded cases, and what becomes of them by number."""

    def __init__(self, seed):
        self.seed = seed
        known = {
            f"{path.stem}.{name}": case
            for path in sorted(DATA.glob("*.zip"))
            for name, case in cases(path.stem).items()
        }
        self.names, self.known = sorted(known), known
        pictures = []
        for path in FILES:
            with np.load(path) as files:
                pictures += [files[name].tobytes() for name in files.files if not name.endswith("_pixels")]
        self.mutator = Mutator((known[name].pipeline for name in self.names), pictures)

    def make(self, number):
        """Its origin's name, a pipeline and its inputs."""
        rng = random.Random(f"{self.seed} {number}")
        name = rng.choice(self.names)
        case = self.known[name]
        pipeline, inputs = case.pipeline, case.inputs
        kind = rng.random()
        if kind < 0.7:
            pipeline = self.mutator.pipeline(rng, pipeline)
        if kind > 0.4:
            inputs = self.mutator.inputs(rng, inputs)
        lengths = {len(samples) for samples in inputs.values()}
        if len(lengths) > 1:
            inputs = {name: samples[: min(lengths)] for name, samples in inputs.items()}
        return name, pipeline, inputs


def begin_peak():
    """Where this is not allowed, the peak is that of all cases so far."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass


def peak_bytes():
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10


def work(options):
    """A child: runs cases from one number on, notes each before it begins, and prints what it finds."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library, known = Library(plugin_path()), Cases(options.seed)
    progress = None
    if options.progress:
        with open(options.progress, "r+b") as file:
            progress = mmap.mmap(file.fileno(), 8)
    for number in range(options.begin, options.begin + options.cases):
        if progress:
            progress[:] = struct.pack("<q", number)
        name, pipeline, inputs = known.make(number)
        if options.save:
            Path(options.save).write_bytes(pipeline)
        if options.show:
            print(name, {name: [(str(s.dtype), s.shape) for s in samples] for name, samples in inputs.items()})
        begin_peak()
        before, begun = peak_bytes(), time.process_time()
        defects, reached = library.run(pipeline, inputs)
        took, peak = time.process_time() - begun, peak_bytes() - before
        if took > MOST_SECONDS:
            defects.append(f"took {took:.1f} s")
        if peak > MOST_BYTES:
            defects.append(f"took {peak >> 20} MiB")
        print(
            json.dumps(dict(number=number, name=name, defects=defects, reached=reached, took=took, peak=peak)),
            flush=True,
        )


def attend(options):
    """The parent: starts children until all cases are done. Returns what each case did that it should not."""
    number, end = options.begin, options.begin + options.cases
    found, reached = [], {}
    with tempfile.TemporaryDirectory() as folder:
        progress, said = Path(folder) / "progress", Path(folder) / "said"
        while number < end:
            progress.write_bytes(struct.pack("<q", number))
            program = [
                sys.executable,
                __file__,
                "--child",
                "--seed",
                str(options.seed),
                "--from",
                str(number),
                "--cases",
                str(end - number),
                "--progress",
                progress,
            ]
            with said.open("wb") as out:
                child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=out, text=True)
                hung = follow(child, progress, found, reached)
            at = struct.unpack("<q", progress.read_bytes())[0]
            if child.returncode == 0:
                break
            words = said.read_text(errors="replace").strip().splitlines()[-3:]
            found.append((at, "hung" if hung else f"died with {child.returncode}: {' / '.join(words)}"))
            report(*found[-1])
            number = at + 1
    return found, reached


def follow(child, progress, found, reached):
    """Reads what a child prints until it ends, or is ended because a case does."""
    state = dict(seen=time.monotonic(), hung=False)

    def watch():
        while child.poll() is None:
            if time.monotonic() - state["seen"] > HUNG_SECONDS:
                state["hung"] = True
                child.kill()
            time.sleep(0.2)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for line in child.stdout:
        state["seen"] = time.monotonic()
        case = json.loads(line)
        reached[case["reached"]] = reached.get(case["reached"], 0) + 1
        for defect in case["defects"]:
            found.append((case["number"], f"{case['name']}: {defect}"))
            report(*found[-1])
    watcher.join()
    child.wait()
    return state["hung"]


def report(number, defect):
    print(f"{number}: {defect}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="begin")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--save", help="where the pipeline of the (last) case goes")
    parser.add_argument("--show", action="store_true", help="print the inputs, too")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child or options.save or options.show:
        return work(options)
    found, reached = attend(options)
    print(f"{options.cases} cases got as far as {reached}; {len(found)} defects")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
