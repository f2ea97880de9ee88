"""What hatchling puts into the wheel besides the package's sources: the library, the type stubs that it gives, the
header, and what CMake and pkg-config read. `pyproject.toml` says all else.

GESSO_WHEEL_LIBRARY   the library; else that of GESSO_LIBRARY, else a release build's
GESSO_LIBRARY         asked for the stubs where that one is for another machine: a library of the same sources
GESSO_WHEEL_SBOM      the list of parts; without it the wheel has none
"""

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "libtriton_gesso.so"
PACKAGE = "gesso"
OLDEST_GLIBC = (2, 28)
# By their numbers in ELF.
MACHINES = {62: "x86_64", 183: "aarch64"}


def glibc(library):
    """The newest version of glibc that the library asks for, and no older one than the wheel promises."""
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes())
    return max([OLDEST_GLIBC, *((int(major), int(minor)) for major, minor in found)])


def machine(library):
    """The machine that the library is for, as its ELF header says."""
    with library.open("rb") as file:
        header = file.read(20)
    number = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or number not in MACHINES:
        raise RuntimeError(f"`{library}`: expected a library for {' or '.join(MACHINES.values())}")
    return MACHINES[number]


def stubs(library, sources):
    """(name, text) of the type stubs, which the library's list of operators gives."""
    asked = library if machine(library) == platform.machine() else Path(os.environ["GESSO_LIBRARY"])
    program = "import json, gesso._stubs; print(json.dumps(gesso._stubs.make()))"
    environment = dict(os.environ, GESSO_LIBRARY=str(asked.resolve()), PYTHONPATH=str(sources))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the package cannot make its type stubs: {done.stderr.strip()}")
    return json.loads(done.stdout).items()


class Hook(BuildHookInterface):
    """hatchling's hook of a build."""

    def initialize(self, version, build_data):
        """Says what the wheel is for and what else is in it; files that are made are in a folder of their own."""
        sources, tree = Path(self.root), Path(self.root).parent
        given = os.environ.get("GESSO_WHEEL_LIBRARY") or os.environ.get("GESSO_LIBRARY")
        library = Path(given or tree / "target" / "release" / LIBRARY)
        major, minor = glibc(library)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{major}_{minor}_{machine(library)}"
        self.made = tempfile.TemporaryDirectory()
        sys.path.append(str(tree / "packaging"))
        import c_files

        places = (f"{PACKAGE}/cmake", f"{PACKAGE}/pkgconfig", PACKAGE, f"{PACKAGE}/include")
        texts = dict(c_files.make(self.metadata.version, *places))
        texts |= {f"{PACKAGE}/{name}": text for name, text in stubs(library, sources)}
        for name, text in texts.items():
            path = Path(self.made.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            build_data["force_include"][str(path)] = name
        build_data["force_include"] |= {
            str(tree / "include" / "gesso.h"): f"{PACKAGE}/include/gesso.h",
            str(library.resolve()): f"{PACKAGE}/{LIBRARY}",
        }
        if parts := os.environ.get("GESSO_WHEEL_SBOM"):
            build_data["sbom_files"].append(parts)

    def finalize(self, version, build_data, artifact_path):
        """Removes the files that were made."""
        self.made.cleanup()
