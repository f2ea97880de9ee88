"""Packs the folder that scripts/gpu-bundle speaks of: `run.py`, and two archives that it unpacks.

`server.tar.xz` (tritonserver, its Python backend, the libraries they need, Python's client, perf_analyzer) changes
rarely and is kept between runs; `project.tar.xz` (plugin, test binaries, benchmark, tests and scripts) is packed anew.
"""

import argparse
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "gpu-bundle"
SITE = Path(sysconfig.get_paths()["purelib"])

# Test binaries; `gesso` is the engine's own tests.
TESTS = ["gesso", "conformance", "gpu", "gpu_kernels", "custom_operators", "capi"]
BENCHES = ["engines", "video_engines", "pipeline", "sweep"]
# Files of the project that the tests and the scripts read or run there.
SOURCES = [
    "benches",
    "docs/reference/c-api.md",
    "examples",
    "include",
    "kernels",
    "model_repository",
    "scripts",
    "tests",
]
# Of those, what only runs where Gesso is built.
LEFT_OUT = ("tests/fuzz/", "tests/kernels/")
LIMIT_BYTES = 64 << 20

LIBRARIES = "nvidia_pytriton.libs"
SERVER = "pytriton/tritonserver/bin/tritonserver"
# Only the stub for the machine's Python is packed.
PYTHON_BACKEND = "pytriton/tritonserver/backends/python"
STUB = "pytriton/tritonserver/python_backend_stubs/{}/triton_python_backend_stub"
# perf_analyzer's libraries under the names that it asks for, among the server's: NAME-HASH.SUFFIX.
PERF_ANALYZER_NEEDS = ["libb64.so.0d", "libcudart.so.12", "libcrypto.so.3", "libssl.so.3"]
PERF_ANALYZER = "perf/perf_analyzer"
WRAPPER = '#!/bin/sh\nhere="$(dirname "$(readlink -f "$0")")"\nLD_LIBRARY_PATH="$here/lib" exec "$here/program" "$@"\n'
# A member's time, so that equal contents make equal archives.
EPOCH = 0


class Archive:
    """Members in memory, in the order of their names."""

    def __init__(self):
        self.members = {}

    def file(self, name, data, executable=False):
        self.members[name] = ("file", bytes(data), 0o755 if executable else 0o644)

    def copy(self, name, path):
        self.file(name, path.read_bytes(), os.access(path, os.X_OK))

    def link(self, name, target):
        self.members[name] = ("link", target, 0o777)

    def write(self, path):
        """Packs into `path`; says how large it was and is."""
        began, raw = time.monotonic(), 0
        partial = path.with_suffix(".part")
        filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 << 20}]
        with lzma.open(partial, "wb", format=lzma.FORMAT_XZ, filters=filters) as packed:
            with tarfile.open(fileobj=packed, mode="w") as archive:
                for name in sorted(self.members):
                    kind, data, mode = self.members[name]
                    info = tarfile.TarInfo(name)
                    info.mode, info.mtime = mode, EPOCH
                    if kind == "link":
                        info.type, info.linkname = tarfile.SYMTYPE, data
                        archive.addfile(info)
                    else:
                        info.size = len(data)
                        raw += len(data)
                        archive.addfile(info, io.BytesIO(data))
        partial.rename(path)
        size = path.stat().st_size
        print(
            f"    {path.name}: {len(self.members)} files, {raw / 1e6:.1f} MB packed to {size / 1e6:.1f} MB "
            f"in {time.monotonic() - began:.0f} s"
        )


def needed(path):
    """The libraries that an executable or library asks for."""
    shown = subprocess.run(["readelf", "-d", str(path)], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", shown)


def closure(paths, folder):
    """Those libraries of `folder` that `paths` need, and that these need."""
    found, waiting = set(), list(paths)
    while waiting:
        for name in needed(waiting.pop()):
            if (folder / name).is_file() and name not in found:
                found.add(name)
                waiting.append(folder / name)
    return found


def renamed(name, folder):
    """The library of the wheel that was `name` before it got a hash into its name."""
    stem, suffix = name.split(".so.", 1)
    pattern = re.compile(re.escape(stem) + r"-[0-9a-f]+\.so\." + re.escape(suffix) + r"(\.|$)")
    (found,) = [path.name for path in folder.iterdir() if pattern.match(path.name)]
    return found


def download(python, folder):
    """The wheels of gpu_packages.txt for that version of Python."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", python, "--implementation", "cp", "--dest", str(folder)]
    for platform in ("manylinux1", "manylinux2014", "manylinux_2_17", "manylinux_2_24", "manylinux_2_28"):
        command += ["--platform", f"{platform}_x86_64"]
    subprocess.run([*command, "-r", str(ROOT / "scripts" / "lib" / "gpu_packages.txt")], check=True)
    return sorted(folder.glob("*.whl"))


def server_archive(python):
    archive, libraries = Archive(), SITE / LIBRARIES
    program, backend, stub = SITE / SERVER, SITE / PYTHON_BACKEND / "libtriton_python.so", SITE / STUB.format(python)
    for path in (program, backend, stub):
        archive.file(f"site/{path.relative_to(SITE)}", path.read_bytes(), executable=True)
    archive.copy(
        f"site/{PYTHON_BACKEND}/triton_python_backend_utils.py",
        SITE / PYTHON_BACKEND / "triton_python_backend_utils.py",
    )
    wheels = download(python, CACHE / "wheels")
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as contents:
            for name in contents.namelist():
                # perf_client is the same program again.
                if name.endswith("data/bin/perf_analyzer"):
                    archive.file("site/perf/program", contents.read(name), executable=True)
                elif wheel.name.startswith("python_rapidjson") and name.endswith(".so"):
                    archive.file(f"site/{name}", contents.read(name), executable=True)
    wanted = {name: renamed(name, libraries) for name in PERF_ANALYZER_NEEDS}
    names = closure([program, backend, stub, *(libraries / name for name in wanted.values())], libraries) | set(
        wanted.values()
    )
    for name in names:
        archive.copy(f"site/{LIBRARIES}/{name}", libraries / name)
    for name, real in wanted.items():
        archive.link(f"site/perf/lib/{name}", f"../../{LIBRARIES}/{real}")
    archive.file(f"site/{PERF_ANALYZER}", WRAPPER.encode(), executable=True)
    for path in sorted((SITE / "tritonclient").rglob("*.py")):
        archive.copy(f"site/{path.relative_to(SITE)}", path)
    return archive


def cargo(*arguments):
    """Runs cargo and returns its messages about built artifacts."""
    command = ["cargo", *arguments, "--locked", "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"error: `{' '.join(command)}` failed")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return [message for message in messages if message["reason"] == "compiler-artifact"]


def executables(messages, names):
    """Name to path, of those that cargo just built to test or to measure."""
    found = {}
    for message in messages:
        kind = message["target"]["kind"]
        # The command line is called `gesso` too.
        if message["executable"] and kind != ["bin"] and (message["profile"]["test"] or kind == ["bench"]):
            found[message["target"]["name"]] = Path(message["executable"])
    return {name: found[name] for name in names}


def stripped(path):
    """Without symbols and debug information: a tenth of the size."""
    CACHE.mkdir(parents=True, exist_ok=True)
    copy = CACHE / "stripped"
    subprocess.run(["strip", "--strip-all", "-o", str(copy), str(path)], check=True)
    return copy.read_bytes()


def project_archive():
    archive = Archive()
    # The whole workspace, as scripts/test builds it: fewer packages have other features, and everything would be
    # compiled again.
    for name, path in executables(cargo("test", "--no-run"), TESTS).items():
        archive.file(f"bin/{name}", stripped(path), executable=True)
    # Together, so that the engine is compiled once.
    built = cargo("build", "--release", "--lib", "--bins", *(word for name in BENCHES for word in ("--bench", name)))
    benches = executables(built, BENCHES)
    for name, path in benches.items():
        archive.file(f"bin/bench-{name}", stripped(path), executable=True)
    library = next(
        Path(file) for message in built if message["target"]["name"] == "triton_gesso" for file in message["filenames"]
    )
    archive.file("project/target/release/libtriton_gesso.so", stripped(library), executable=True)
    program = next(Path(message["executable"]) for message in built if message["target"]["kind"] == ["bin"])
    archive.file("project/target/release/gesso", stripped(program), executable=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *SOURCES],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if not name.endswith(".rs") and not name.startswith(LEFT_OUT) and (ROOT / name).is_file():
            archive.copy(f"project/{name}", ROOT / name)
    archive.file("manifest.json", json.dumps({"tests": TESTS, "benches": list(benches)}, indent=1).encode())
    return archive


def server_key(python):
    """Changes with whatever the archive of the server is made of."""
    names = ["requirements.txt", "requirements-files.txt", "lib/gpu_packages.txt"]
    sources = [Path(__file__), *(ROOT / "scripts" / name for name in names)]
    return hashlib.sha256(python.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()[:12]


def main():
    parser = argparse.ArgumentParser(prog="scripts/gpu-bundle")
    parser.add_argument("--python", default="3.12", help="version of the GPU machine's Python (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=ROOT / "target" / "gpu-bundle")
    options = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)

    print("==> packing tritonserver and clients")
    kept = CACHE / f"server-{server_key(options.python)}.tar.xz"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for old in CACHE.glob("server-*.tar.xz"):
            old.unlink()
        server_archive(options.python).write(kept)
    print("==> building and packing the plugin, tests and benchmarks")
    project = project_archive()
    shutil.rmtree(options.output, ignore_errors=True)
    options.output.mkdir(parents=True)
    project.write(options.output / "project.tar.xz")
    shutil.copy(kept, options.output / "server.tar.xz")
    shutil.copy(ROOT / "scripts" / "lib" / "gpu_run.py", options.output / "run.py")
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(options.output.glob("*.tar.xz"))
    }
    (options.output / "bundle.json").write_text(
        json.dumps({"python": options.python, "sha256": digests}, indent=1) + "\n"
    )

    size = sum(path.stat().st_size for path in options.output.iterdir())
    print(f"==> {options.output}: {size / 1e6:.1f} MB")
    if size > LIMIT_BYTES:
        raise SystemExit(f"error: expected at most {LIMIT_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
