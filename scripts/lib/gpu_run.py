#!/usr/bin/env python3
"""Tests and measures Gesso on this machine, from the folder that scripts/gpu-bundle packed. Needs only Python's own
modules.

    python3 run.py                      every step: tests, server, bench, triton
    python3 run.py tests server         some of them
    python3 run.py tests --filter NAME  cargo's tests whose names contain NAME
    python3 run.py sanitize             the tests of `gpu` under compute-sanitizer's four tools (an hour; `--filter`
                                        works here, too)
    python3 run.py exec -- COMMAND ...  any command in the same environment: the test binaries (gesso, conformance, gpu)
                                        and bench-pipeline are on its PATH, the project's files in $CARGO_MANIFEST_DIR

    tests   the test binaries     server  pytest against a real tritonserver with Gesso on the GPU
    bench   decode + resize + normalize in process, beside DALI where it is installed
    triton  the same through tritonserver, beside a model that does nothing

Each step's whole output goes to a file in --logs; on the screen stand its failures and, last, short tables.
"""

import argparse
import concurrent.futures
import hashlib
import importlib.util
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEPS = ["tests", "server", "bench", "triton"]
OTHER_STEPS = ["sanitize", "exec"]
PACKAGES = {"numpy": "numpy", "PIL": "pillow", "grpc": "grpcio", "google.protobuf": "protobuf", "pytest": "pytest"}
# Where CUDA's installers put its libraries; the plugin looks in more places itself.
CUDA_LIBRARIES = ["/usr/local/cuda/lib64"]
FAILED_LINES = 40
SANITIZER_SECONDS = 1800
# Of random files a tenth: `tests/gpu/main.rs`.
SANITIZER_SETTINGS = {"GESSO_FEWER": "10"}
# Left out: kernels of nvJPEG, of which one reads gaps between pixels and one has a hazard; calls of the driver that
# fail as tests want them to; copies to the host, which take along the gaps between samples.
SANITIZERS = {
    "memcheck": ["--report-api-errors", "no"],
    "synccheck": [],
    "racecheck": ["--racecheck-report", "all", "--kernel-name-exclude", "kns=nvjpeg"],
    "initcheck": ["--check-api-memory-access", "no"],
}
# Tests that measure what is left of the device's memory: not beside others.
ALONE = re.compile("memory_comes_back|memory_does_not_grow|in_little_memory|frees_the_decoder")
# Tests in which engines have no part: initcheck does not see what those write.
WITHOUT_ENGINES = re.compile("spectra::|sm::(?!a_pipeline_answers|operators_behind)")


def unpack(target):
    """Unpacks both archives into `target`, each only when it is not there as it is."""
    for archive in ("server.tar.xz", "project.tar.xz"):
        path, stamp = HERE / archive, target / f".{archive}"
        if not path.is_file():
            raise SystemExit(f"error: `{path}` is not there: copy the whole folder that scripts/gpu-bundle made")
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if stamp.is_file() and stamp.read_text() == digest:
            continue
        began = time.monotonic()
        target.mkdir(parents=True, exist_ok=True)
        for folder in ("site",) if archive.startswith("server") else ("bin", "project"):
            shutil.rmtree(target / folder, ignore_errors=True)
        with lzma.open(path) as packed, tarfile.open(fileobj=packed, mode="r|") as members:
            # The archives are ours; newer Pythons want to be told so.
            members.extractall(target, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
        stamp.write_text(digest)
        print(f"unpacked {archive} in {time.monotonic() - began:.1f} s")


def environment(target):
    project = target / "project"
    made = dict(os.environ)
    made["CARGO_MANIFEST_DIR"] = str(project)
    made["GESSO_PLUGIN"] = str(project / "target" / "release" / "libtriton_gesso.so")
    made["GESSO_BENCH"] = str(target / "bin" / "bench-pipeline")
    made["GESSO_PERF_ANALYZER"] = str(target / "site" / "perf" / "perf_analyzer")
    made["PYTHONUNBUFFERED"] = "1"
    # A test that is skipped for want of a device fails.
    made["GESSO_REQUIRE_GPU"] = "1"

    def prepend(name, *first, last=()):
        made[name] = os.pathsep.join(filter(None, [*map(str, first), os.environ.get(name, ""), *map(str, last)]))

    prepend("PATH", target / "bin", Path(sys.executable).parent)
    prepend("PYTHONPATH", target / "site")
    prepend("LD_LIBRARY_PATH", last=[folder for folder in CUDA_LIBRARIES if Path(folder).is_dir()])
    return made


class Step:
    """One command: its output into a log, what matters of it on the screen."""

    def __init__(self, name, command, interesting, figures):
        self.name, self.command = name, command
        self.interesting, self.figures = re.compile(interesting), re.compile(figures)

    def run(self, target, logs):
        print(f"=== {self.name}", flush=True)
        began, path = time.monotonic(), logs / f"{re.sub('[^a-z0-9]+', '-', self.name.lower())}.log"
        lines = []
        with open(path, "w") as log:
            process = subprocess.Popen(
                self.command,
                cwd=target / "project",
                env=environment(target),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            for line in process.stdout:
                log.write(line)
                log.flush()
                lines.append(line.rstrip("\n"))
                if self.interesting.search(line):
                    print("   ", lines[-1][:200], flush=True)
            self.status = process.wait()
        self.seconds = time.monotonic() - began
        self.skipped = sum("skipped: " in line for line in lines)
        self.tail = [line for line in lines if self.figures.search(line)]
        if self.status:
            print(*(f"    | {line[:300]}" for line in lines[-FAILED_LINES:]), sep="\n", flush=True)
        return self.status == 0

    @property
    def outcome(self):
        return "ok" if self.status == 0 else f"FAILED ({self.status})"


class Sanitizer:
    """One of compute-sanitizer's tools over tests of `gpu`: a process for each, several at a time where that does not
    matter."""

    def __init__(self, tool, tests):
        self.name, self.tool, self.tests, self.skipped = f"sanitize {tool}", tool, tests, 0

    def look(self, target, logs, test):
        path = logs / f"{self.tool}-{test.replace('::', '-')}.log"
        command = [
            shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer",
            "--tool",
            self.tool,
            "--print-limit",
            "20",
            *SANITIZERS[self.tool],
            str(target / "bin" / "gpu"),
        ]
        with open(path, "w") as log:
            try:
                subprocess.run(
                    [*command, "--exact", test, "--test-threads", "1"],
                    cwd=target / "project",
                    env=environment(target) | SANITIZER_SETTINGS,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    timeout=SANITIZER_SECONDS,
                )
            except subprocess.TimeoutExpired:
                return test, f"not done after {SANITIZER_SECONDS} s"
        text = path.read_text(errors="replace")
        summary = re.findall(r"SUMMARY: (.*)", text)
        if "test result: ok. 1 passed" not in text:
            return test, f"the test fails, see {path}"
        # A test that does not use the device leaves the tool nothing to say.
        return test, "" if all(line.startswith(("0 errors", "0 hazards")) for line in summary) else summary[-1]

    def run(self, target, logs):
        print(f"=== {self.name}", flush=True)
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 2)) as pool:
            found = dict(
                pool.map(
                    lambda test: self.look(target, logs, test), [test for test in self.tests if not ALONE.search(test)]
                )
            )
        found |= (self.look(target, logs, test) for test in self.tests if ALONE.search(test))
        self.seconds = time.monotonic() - began
        self.tail = [f"{test}: {text}" for test, text in found.items() if text]
        self.status = len(self.tail)
        return self.status == 0

    @property
    def outcome(self):
        return f"{len(self.tests)} tests, {'nothing found' if self.status == 0 else f'FAILED: {self.status}'}"


RUST = r"^test result|FAILED|panicked|^skipped"
PYTEST = r"^(FAILED|ERROR|SKIPPED)|^=+ .*(passed|failed|error|skipped).*=+$"
TABLE = r"."


def steps(names, target, options, rest):
    manifest = json.loads((target / "manifest.json").read_text())
    python, project = sys.executable, target / "project"
    if "tests" in names:
        for name in manifest["tests"]:
            # --nocapture, so that `skipped: no GPU` is seen.
            command = [str(target / "bin" / name), "--nocapture", *([options.filter] if options.filter else []), *rest]
            yield Step(f"tests {name}", command, RUST, r"^test result")
    if "sanitize" in names:
        listed = subprocess.run(
            [target / "bin" / "gpu", "--list"], env=environment(target), capture_output=True, text=True, check=True
        ).stdout
        tests = [
            line.removesuffix(": test")
            for line in listed.splitlines()
            if line.endswith(": test") and (options.filter or "") in line
        ]
        for tool in SANITIZERS:
            yield Sanitizer(tool, [test for test in tests if tool != "initcheck" or WITHOUT_ENGINES.match(test)])
    if "server" in names:
        # conftest.py of the folder above belongs to them.
        command = [
            python,
            "-m",
            "pytest",
            "-rsP",
            "--color=no",
            "-p",
            "no:cacheprovider",
            f"--confcutdir={project / 'tests'}",
        ]
        command += [str(project / "tests" / "server" / "gpu")]
        command += ["-k", options.filter] if options.filter else []
        # -rP shows what passed tests print: the growth of memory.
        yield Step("server", [*command, *rest], PYTEST, r" grew by |^=+ .*(passed|failed|error|skipped).*=+$")
    if "bench" in names:
        command = [python, str(project / "benches/peers/gpu.py"), "--json", str(options.logs / "bench.json"), *rest]
        yield Step("bench", command, r"^error|^skipped", TABLE)
    if "triton" in names:
        command = [python, str(project / "benches/peers/served.py"), "--json", str(options.logs / "triton.json"), *rest]
        yield Step("triton", command, r"^error|^skipped", TABLE)


def missing_packages():
    def there(name):
        try:
            return importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            return False

    return [package for name, package in PACKAGES.items() if not there(name)]


def main():
    own, rest = sys.argv[1:], []
    if "--" in own:
        own, rest = own[: own.index("--")], own[own.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}; or {', '.join(OTHER_STEPS)}")
    parser.add_argument("--filter", metavar="NAME", help="only tests whose names contain this")
    parser.add_argument(
        "--into", type=Path, help="where to unpack (default: a folder of the system's for temporary files)"
    )
    parser.add_argument("--logs", type=Path, help="where the steps' output goes (default: there)")
    options = parser.parse_args(own)
    names = options.steps or STEPS
    if unknown := set(names) - {*STEPS, *OTHER_STEPS}:
        parser.error(f"unknown step `{sorted(unknown)[0]}`")

    wanted = json.loads((HERE / "bundle.json").read_text())["python"]
    if wanted != f"{sys.version_info.major}.{sys.version_info.minor}":
        print(
            f"note: packed for Python {wanted}, this is {sys.version.split()[0]}: what talks to a server may not import"
        )
    if missing := missing_packages():
        print(f"note: this Python lacks {', '.join(missing)}: steps that need it will fail")
    target = (options.into or Path(tempfile.gettempdir()) / "gesso-gpu-bundle").resolve()
    unpack(target)
    if "exec" in names:
        if not rest:
            parser.error("exec needs a command after `--`")
        os.chdir(target / "project")
        made = environment(target)
        os.environ["PATH"] = made["PATH"]
        sys.stdout.flush()
        os.execvpe(rest[0], rest, made)
    options.logs = (options.logs or target / "logs").resolve()
    options.logs.mkdir(parents=True, exist_ok=True)
    done = list(steps(names, target, options, rest))
    for step in done:
        step.run(target, options.logs)
    print("\n=== summary")
    for step in done:
        skipped = f", {step.skipped} skipped" if step.skipped else ""
        print(f"{step.name:20} {step.seconds:7.1f} s  {step.outcome}{skipped}")
        print(*(f"    {line[:200]}" for line in step.tail), sep="\n")
    sys.exit(any(step.status for step in done))


if __name__ == "__main__":
    main()
