#!/usr/bin/env python3
"""Decodes changed files of images, sounds and videos through the C API, and tells of panics, crashes, hangs, and what
takes long or much memory.

    files.py --cases 100000 --seed 1                        in child processes, which may die
    files.py --seed 1 --from 640 --cases 32 --save FOLDER   those again; keeps what is found there

A case is named by the seed and its number. GESSO_PLUGIN names the library, else it is the release build.
"""

import argparse
import ctypes
import json
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
from ctypes import byref, c_char_p, c_size_t, c_void_p
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "server"), str(ROOT / "examples" / "python"), str(ROOT / "python")]

import hostile  # noqa: E402
from harness import plugin_path  # noqa: E402
from hostile import INTERNAL, OK, InstanceOptions, Library, batch_of, begin_peak, follow, peak_bytes, report  # noqa: E402
from mutate import Mutator  # noqa: E402
from recorded import DATA, cases  # noqa: E402

# What one file may take: processor time, and memory beside what it becomes.
MOST_SECONDS = 2
MOST_BYTES = 1 << 30
MOST_ADDRESSES = 6 << 30
# Reading the files to start from takes a while where the machine is busy.
hostile.HUNG_SECONDS = 3600
# Files of a batch.
TOGETHER = 32
# Larger ones make every try slow.
LARGEST = 20_000
KINDS = {"sound": (b"RIFF", b"fLaC", b"OggS", b"FORM", b".snd"), "jpeg_xl": (b"\xff\x0a", b"\0\0\0\x0cJXL "),
         "jpeg_2000": (b"\0\0\0\x0cjP  ", b"\xffO\xffQ"), "tiff": (b"II*\0", b"MM\0*"), "gif": (b"GIF8",), "png": (b"\x89PNG",)}  # fmt: skip


VIDEOS = ROOT / "tests" / "data" / "video"


def kind_of(data):
    return next((kind for kind, starts in KINDS.items() if data.startswith(starts)), None)


def seeds():
    """Small whole files of each kind."""
    files = [path.read_bytes() for path in sorted((ROOT / "tests" / "fuzz" / "corpus" / "sound").iterdir())]
    for path in sorted((ROOT / "tests" / "data" / "decode").glob("*.npz")):
        with np.load(path) as stored:
            files += [stored[name].tobytes() for name in stored.files if not name.endswith("_pixels")]
    for path in sorted(DATA.glob("*.zip")):
        for case in cases(path.stem).values():
            files += [
                s.tobytes() for samples in case.inputs.values() for s in samples if s.dtype == np.uint8 and s.ndim == 1
            ]
    found = {kind: sorted({data for data in files if kind_of(data) == kind and len(data) <= LARGEST}) for kind in KINDS}
    videos = [
        path.read_bytes() for path in sorted(VIDEOS.iterdir()) if path.is_file() and path.suffix not in (".py", ".json")
    ]
    found["video"] = [data for data in videos if len(data) <= LARGEST]
    return {kind: files for kind, files in found.items() if files}


def pipelines():
    """Decoders as they are usually called, {name: file}."""
    from gesso import Pipeline, fn, types

    def made(build):
        pipe = Pipeline(TOGETHER, 1, device_id=None)
        with pipe:
            pipe.set_outputs(build(fn.external_source(name="IN")))
        return pipe.serialize()

    return {
        "image": made(lambda file: fn.decoders.image(file, output_type=types.RGB)),
        "any": made(lambda file: fn.decoders.image(file, output_type=types.ANY_DATA, dtype=types.UINT16)),
        "sound": made(lambda file: fn.decoders.audio(file)[0]),
        "video": made(lambda file: fn.experimental.decoders.video(file)),
    }


class Decoders:
    """An instance of each pipeline."""

    def __init__(self, library):
        self.c, self.error, self.instances = library.c, library.error, {}
        for name, file in pipelines().items():
            planned, instance = c_void_p(), c_void_p()
            options = InstanceOptions(ctypes.sizeof(InstanceOptions), 1)
            if (
                self.c.gesso_pipeline_load(file, c_size_t(len(file)), 0, byref(planned)) != OK
                or self.c.gesso_instance_create(planned, byref(options), byref(instance)) != OK
            ):
                raise SystemExit(f"the pipeline {name}: {self.error()}")
            self.instances[name] = instance

    def run(self, name, files):
        """Internal errors, and how many files were decoded."""
        defects, decoded, result = [], 0, c_void_p()
        batch, given, _kept = batch_of({"IN": [np.frombuffer(file, np.uint8) for file in files]})
        status = self.c.gesso_instance_run(self.instances[name], c_size_t(batch), given, c_size_t(1), byref(result))
        if status != OK:
            return ([f"the batch: {self.error()}"] if status == INTERNAL else []), 0
        for i in range(batch):
            message = c_char_p()
            status = self.c.gesso_result_sample_status(result, i, byref(message))
            decoded += status == OK
            if status == INTERNAL:
                defects.append(message.value.decode(errors="replace"))
        self.c.gesso_result_free(result)
        return defects, decoded

    def measured(self, name, files):
        """The same with seconds of processor time and bytes of memory."""
        begin_peak()
        before, begun = peak_bytes(), time.process_time()
        defects, decoded = self.run(name, files)
        return defects, decoded, time.process_time() - begun, peak_bytes() - before


def changed(rng, mutator, files):
    """A file with one to three changes, one in sixteen joined with the end of another."""
    file = rng.choice(files)
    for _ in range(rng.choice((1, 1, 2, 3))):
        file = mutator.coded(rng, file) if len(file) > 16 else file
    if rng.random() < 1 / 16:
        other = rng.choice(files)
        file = file[: rng.randrange(len(file) + 1)] + other[rng.randrange(len(other)) :]
    return file


def work(options):
    """A child: runs batches from one number on, notes each before it begins, and prints what it finds."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found, mutator, decoders = seeds(), Mutator([], []), Decoders(Library(plugin_path()))
    kinds = [kind for kind in found if kind in options.kinds]
    for number in range(options.begin, options.begin + options.cases, TOGETHER):
        if options.progress:
            Path(options.progress).write_bytes(struct.pack("<q", number))
        rng = random.Random(f"{options.seed} {number}")
        kind = rng.choice(kinds)
        name = kind if kind in ("sound", "video") else rng.choice(("image", "any"))
        files = [changed(rng, mutator, found[kind]) for _ in range(TOGETHER)]
        defects, decoded, took, peak = decoders.measured(name, files)
        if took > MOST_SECONDS or peak > MOST_BYTES or defects:
            for i, file in enumerate(files):
                alone, _, took, peak = decoders.measured(name, [file])
                alone += [f"took {took:.1f} s"] * (took > MOST_SECONDS) + [f"took {peak >> 20} MiB"] * (
                    peak > MOST_BYTES
                )
                if alone and options.save:
                    (Path(options.save) / f"{kind}-{options.seed}-{number}-{i}").write_bytes(file)
                defects += [f"file {i} by `{name}` {what}" for what in alone]
        print(json.dumps(dict(number=number, name=kind, defects=defects, reached=kind, decoded=decoded)), flush=True)


def attend(options):
    """The parent: starts children until all cases are done. Returns what each did that it should not, and batches of
    each kind."""
    number, end = options.begin, options.begin + options.cases
    found, reached = [], {}
    with tempfile.TemporaryDirectory() as folder:
        progress, said = Path(folder) / "progress", Path(folder) / "said"
        while number < end:
            progress.write_bytes(struct.pack("<q", number))
            program = [sys.executable, __file__, "--child", "--seed", str(options.seed), "--from", str(number), "--cases", str(end - number),
                       "--progress", progress, "--kinds", *options.kinds, *(["--save", options.save] if options.save else [])]  # fmt: skip
            with said.open("wb") as out:
                child = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=out, text=True)
                hung = follow(child, progress, found, reached)
            if child.returncode == 0:
                break
            at = struct.unpack("<q", progress.read_bytes())[0]
            words = said.read_text(errors="replace").strip().splitlines()[-3:]
            found.append((at, "hung" if hung else f"died with {child.returncode}: {' / '.join(words)}"))
            report(*found[-1])
            number = at + TOGETHER
    return found, {kind: count * TOGETHER for kind, count in reached.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="begin")
    parser.add_argument("--cases", type=int, default=3200)
    parser.add_argument("--kinds", nargs="+", default=[*KINDS, "video"], choices=[*KINDS, "video"])
    parser.add_argument("--save", help="a folder for the files that are found")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return work(options)
    found, reached = attend(options)
    print(f"files of each kind: {reached}; {len(found)} defects")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
