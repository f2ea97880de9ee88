#!/usr/bin/env python3
"""What scripts/fuzz does when its program is built: runs one target after the other, tells what each did, and writes a
report.

fuzz.py --program FILE --minutes 1 [TARGET...]
fuzz.py --program FILE --inputs 1000000 [--sanitizers] [--ffmpeg FOLDER] [--report FILE] [--resume] [TARGET...]
fuzz.py --list
"""

import argparse
import dataclasses
import datetime
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "fuzz"
LEAKS = Path(__file__).with_name("fuzz_leaks.txt")
# Longer inputs find no more; a try that takes longer, or more memory, is a find.
MAX_BYTES = 20_000
MAX_SECONDS = 20
MAX_MEMORY_MB = 4096
# Kinds of data sets that the readers' test damages, images that one batch of the emulator's test damages.
KINDS_OF_DATA_SETS = 14
DAMAGED_IN_A_BATCH = 6


@dataclass
class Target:
    """What is fuzzed, and about how many of a thousand inputs it gets: fewer where one takes long."""

    share: float
    what: str
    # The test of pytest that it is, and the environment variable that says how often, each time for so many inputs.
    test: tuple = ()


TARGETS = {
    "address": Target(300, "addresses of files, beside a list of those that are allowed"),
    "arithmetic": Target(6, "expressions of arithmetic, run"),
    "calls": Target(5, "the C API's functions in any order, 60 of them"),
    "config": Target(160, "`config.pbtxt`, and the server's JSON of it"),
    "device_jpeg": Target(180, "JPEGs as a device's decoders read them on the host: header, tables, scan"),
    "image": Target(30, "images of all formats, with options and windows"),
    "index": Target(150, "TFRecord, RecordIO and tar, as `gesso index` reads them"),
    "jpeg": Target(25, "JPEGs, by our decoder and by libjpeg-turbo, which must agree"),
    "list": Target(20, "lists of files and of videos, patterns of names"),
    "npy": Target(250, "files of NumPy"),
    "operator": Target(3, "one operator of all, its arguments and inputs at random, run"),
    "packets": Target(150, "containers and streams of video, taken apart for a device's engines"),
    "pipeline": Target(3, "serialized pipelines: described, written again, loaded, run"),
    "readers": Target(
        1.5,
        "data sets of readers in Python: TFRecord, RecordIO, tar, LMDB, COCO, indices, FITS, NumPy, speech, tables",
        ("tests/python/test_hostile_readers.py", "GESSO_READER_CASES", KINDS_OF_DATA_SETS),
    ),
    "recorded": Target(250, "recorded requests, as `gesso replay` reads them"),
    "records": Target(
        20, "tar archives, TFRecord, RecordIO, NumPy and COCO, as readers of the library read them, with their indices"
    ),
    "requests": Target(10, "requests and failures of a server, through the plugin's entry points"),
    "sound": Target(2.5, "WAV, W64, AIFF, AU, CAF, FLAC, Ogg"),
    "video": Target(2.5, "videos, decoded on the host"),
    "device_scan": Target(
        0.1,
        "damaged JPEGs in the device's kernels, on the host's emulator",
        (
            "tests/kernels/test_jpeg_kernels.py::test_damage_stays_with_its_image",
            "GESSO_DAMAGED_BATCHES",
            DAMAGED_IN_A_BATCH,
        ),
    ),
}


@dataclass
class Outcome:
    """What became of a target."""

    inputs: int
    seconds: float
    # Files that libFuzzer left, or tests that failed.
    found: int


def libfuzzer(name, options, bound):
    """Lets libFuzzer look, by `--jobs` processes that are started anew when one dies."""
    corpus, found, log = CACHE / "corpus" / name, CACHE / "found" / name, CACHE / f"{name}.log"
    folders = [corpus, CACHE / "seeds" / name, ROOT / "tests" / "fuzz" / "corpus" / name]
    for folder in [found, *folders]:
        folder.mkdir(parents=True, exist_ok=True)
    suppressed = {"LSAN_OPTIONS": f"suppressions={LEAKS}:print_suppressions=0"}
    environment = os.environ | with_ffmpeg(options) | suppressed | {"GESSO_FUZZ_TARGET": name}
    # libjpeg-turbo's assembly is not instrumented, its C is. Where our own decoder is compared with it, the assembly is
    # what it equals: of damaged files whose values overflow, the C makes other pixels.
    if options.sanitizers and name != "jpeg":
        environment["JSIMD_FORCENONE"] = "1"
    limits = [f"-max_len={MAX_BYTES}", f"-timeout={MAX_SECONDS}", f"-rss_limit_mb={MAX_MEMORY_MB}"]
    command = [
        options.program,
        f"-fork={options.jobs}",
        "-ignore_crashes=1",
        "-ignore_ooms=1",
        "-ignore_timeouts=1",
        bound,
        *limits,
    ]
    before, began = count(found), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary, log.open("w") as out:
        command = [*map(str, command), f"-artifact_prefix={found}/", *map(str, folders)]
        subprocess.run(
            command,
            cwd=found,
            env=environment | {"TMPDIR": temporary},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    inputs = [int(number) for number in re.findall(r"^#(\d+)", log.read_text(errors="replace"), re.M)]
    if not inputs:
        sys.exit(f"error: {name} did not begin, see {log}")
    return Outcome(inputs[-1], time.monotonic() - began, count(found) - before)


def pytest(name, inputs):
    """Lets a test of its own do it."""
    test, variable, at_once = TARGETS[name].test
    rounds, log, began = -(-inputs // at_once), CACHE / f"{name}.log", time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--color=no", "-p", "no:cacheprovider", test]
    with log.open("w") as out:
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {variable: str(rounds)},
            stdout=out,
            stderr=subprocess.STDOUT,
            check=False,
        )
    # Of the last line, such as `1 failed, 9 passed, 1 skipped in 3.1s`.
    counts = {
        word: int(number)
        for number, word in re.findall(r"(\d+) (failed|passed|skipped)", log.read_text(errors="replace"))
    }
    # A kind of data set that another package must read first is left out without it.
    made = rounds * (at_once - counts.get("skipped", 0))
    return Outcome(made, time.monotonic() - began, counts.get("failed", int(ran.returncode != 0)))


def count(folder):
    return sum(path.is_file() for path in folder.iterdir())


def said(command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def ffmpeg_of(options):
    """The FFmpeg that the target `video` decodes with, as the program says for any input; None: there is none."""
    with tempfile.NamedTemporaryFile() as file:
        environment = os.environ | with_ffmpeg(options) | {"GESSO_FUZZ_TARGET": "video"}
        ran = subprocess.run([options.program, file.name], env=environment, capture_output=True, check=False)
    found = re.search(r'^FFmpeg: Used\("version (.*) of ', ran.stderr.decode(errors="replace"), re.M)
    return found and found[1]


def with_ffmpeg(options):
    """The variable that names an FFmpeg."""
    return {"GESSO_FFMPEG": options.ffmpeg} if options.ffmpeg else {}


def report(outcomes, options):
    """The page."""
    inputs, seconds, found = (
        sum(getattr(outcome, field) for outcome in outcomes.values()) for field in ("inputs", "seconds", "found")
    )
    how = "AddressSanitizer, the C in it also with UndefinedBehaviorSanitizer" if options.sanitizers else "no sanitizer"
    lines = [
        "# Hostile inputs",
        "",
        f"Made by `scripts/fuzz {'--sanitizers ' if options.sanitizers else ''}--inputs {options.inputs} --report FILE`; not edited by hand.",
        f"Built with {how}; our own sums are checked for overflow.",
        f"A find is a panic, also one that the engine would catch, a report of a sanitizer, a wrong answer where the right one is known, more than {MAX_SECONDS} s",
        f"or more than {MAX_MEMORY_MB} MB for one input.",
        "",
        "| target | what it is | inputs | seconds | finds |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, outcome in outcomes.items():
        lines.append(
            f"| `{name}` | {TARGETS[name].what} | {outcome.inputs:,} | {outcome.seconds:,.0f} | {outcome.found} |"
        )
    lines.append(f"| all | | **{inputs:,}** | {seconds:,.0f} | **{found}** |")
    if "video" in outcomes and (ffmpeg := ffmpeg_of(options)):
        lines += ["", f"H.264, VP9 and MPEG-4 Part 2 in `video` were decoded by FFmpeg {ffmpeg}, too."]
    commit, day = said(["git", "rev-parse", "--short=10", "HEAD"]), datetime.date.today().isoformat()
    changed = " with changes" if said(["git", "status", "--porcelain", "--untracked-files=no"]) else ""
    lines += ["", f"Commit {commit}{changed}, {said(['rustc', '--version'])}, {os.cpu_count()} cores, {day}.", ""]
    options.report.write_text("\n".join(lines))


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--program", type=Path)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--inputs", type=int, help="of all targets together")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sanitizers", action="store_true")
    parser.add_argument(
        "--ffmpeg", metavar="FOLDER", help="of its libraries, or `off`; otherwise the one that is installed, if any"
    )
    parser.add_argument("--report", type=Path)
    parser.add_argument(
        "--resume", action="store_true", help="go on behind the targets that a run which was ended had done"
    )
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        return print("\n".join(TARGETS))
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target {', '.join(sorted(unknown))}: expected some of {', '.join(TARGETS)}")
    # By time, only what libFuzzer does.
    names = options.targets or [name for name, target in TARGETS.items() if options.inputs or not target.test]
    shares, kept = sum(TARGETS[name].share for name in names), CACHE / "outcomes.json"
    run = {"commit": said(["git", "rev-parse", "HEAD"]), "inputs": options.inputs, "sanitizers": options.sanitizers}
    outcomes = {}
    if options.resume:
        before = json.loads(kept.read_text()) if kept.exists() else {"run": None}
        if before["run"] != run:
            parser.error(f"--resume goes on with the last run, which was {before['run']}; expected {run}")
        outcomes = {name: Outcome(**made) for name, made in before["outcomes"].items()}
    for name in [name for name in names if name not in outcomes]:
        wanted = math.ceil((options.inputs or 0) * TARGETS[name].share / shares)
        if TARGETS[name].test:
            outcomes[name] = pytest(name, wanted or TARGETS[name].test[2] * 10)
        else:
            bound = f"-runs={wanted}" if wanted else f"-max_total_time={int(options.minutes * 60)}"
            outcomes[name] = libfuzzer(name, options, bound)
        made = outcomes[name]
        print(f"{name:12} {made.inputs:9,} inputs in {made.seconds:7,.0f} s, {made.found} found", flush=True)
        kept.write_text(
            json.dumps(
                {"run": run, "outcomes": {name: dataclasses.asdict(outcome) for name, outcome in outcomes.items()}}
            )
        )
        if options.report:
            report(outcomes, options)
    sys.exit(any(outcome.found for outcome in outcomes.values()))


if __name__ == "__main__":
    main()
