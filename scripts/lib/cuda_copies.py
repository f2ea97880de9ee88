"""Counts what processes copy between a host and its GPUs: copies by kind, their bytes, the largest. By CUPTI, in any
program that uses CUDA.

    counter = Counter(folder)                               # makes the library there; needs `cc` and CUPTI
    with Server(repository, environment=counter.environment):
        before = counter.read()
        ...
        made = counter.read() - before

What kernels read and write themselves is no copy to CUPTI, wherever it lies.
"""

import glob
import os
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")
# CUPTI by the name under which programs load it.
NAME = "libcupti.so.[0-9][0-9]"
FOLDERS = ["/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64", "/usr/local/cuda-*/extras/CUPTI/lib64"]
# Everything that a process had done by then is in its report that many reports later.
REPORTS = 3
REPORT_SECONDS = 60


class CopiesError(RuntimeError):
    """Copies cannot be counted here; the message says why."""


class Copies(NamedTuple):
    """Of one kind; `largest` since the process began."""

    count: int
    bytes: int
    largest: int


class Counted(dict):
    """Name of a program to kind to `Copies`. Kinds are CUPTI's: HtoD, DtoH, DtoD, PtoP and others."""

    def of(self, program, kind):
        return self.get(program, {}).get(kind, Copies(0, 0, 0))

    def __sub__(self, before):
        return Counted(
            {
                program: {
                    kind: Copies(
                        copies.count - before.of(program, kind).count,
                        copies.bytes - before.of(program, kind).bytes,
                        copies.largest,
                    )
                    for kind, copies in kinds.items()
                }
                for program, kinds in self.items()
            }
        )


def cupti():
    """The path of CUPTI's library: `$GESSO_CUPTI`, that of a package of Python's, or CUDA's own."""
    if chosen := os.environ.get("GESSO_CUPTI"):
        return chosen
    # That of a package first: torch loads it, too.
    folders = [f"{sysconfig.get_paths()['purelib']}/nvidia/{folder}/lib" for folder in ("cu*", "cuda_cupti")] + FOLDERS
    found = [path for folder in folders for path in sorted(glob.glob(f"{folder}/{NAME}"))]
    if not found:
        raise CopiesError(f"no CUPTI ({NAME}) in {', '.join(folders)}")
    return found[0]


class Counter:
    """Counts in all processes that have its environment; `folder` is for the library and for what the processes
    report."""

    def __init__(self, folder):
        self.folder, library = Path(folder) / "copies", Path(folder) / "libcuda_copies.so"
        self.folder.mkdir(parents=True)
        command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl", "-lpthread"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except OSError as error:
            raise CopiesError(f"no C compiler: {error}") from None
        except subprocess.CalledProcessError as error:
            raise CopiesError(f"`{SOURCE.name}` does not compile: {error.stderr}") from None
        self.environment = {
            "CUDA_INJECTION64_PATH": str(library),
            "GESSO_CUPTI": cupti(),
            "GESSO_COPIES": str(self.folder),
        }

    def read(self):
        """What the programs that still run have copied until now. Call it when what they shall have copied is done."""
        counted = Counted()
        for path in self.folder.glob("*[0-9]"):
            if program := running(path.name):
                kinds = counted.setdefault(program, {})
                for kind, copies in self._settled(path).items():
                    sums = zip(kinds.get(kind, (0, 0)), copies[:2])
                    kinds[kind] = Copies(*map(sum, sums), max(copies.largest, kinds.get(kind, copies).largest))
        return counted

    def _settled(self, path):
        wanted, deadline = None, time.monotonic() + REPORT_SECONDS
        while running(path.name):
            reports, kinds = parsed(path)
            wanted = reports + REPORTS if wanted is None else wanted
            if reports >= wanted:
                return kinds
            if time.monotonic() > deadline:
                raise CopiesError(f"process {path.name} does not report its copies")
            time.sleep(0.02)
        return {}


def running(pid):
    """The name of the process's program, or None when it has ended."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name
    except OSError:
        return None


def parsed(path):
    """How many reports a process has made, and what the last one says."""
    reports, kinds = 0, {}
    for line in path.read_text().splitlines():
        word, rest = line.split(" ", 1)
        if word == "error":
            raise CopiesError(rest)
        if word == "reports":
            reports = int(rest)
        else:
            kinds[word] = Copies(*map(int, rest.split()))
    return reports, kinds
