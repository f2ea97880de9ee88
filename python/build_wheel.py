"""Makes the wheel: the package and the library, zipped. Needs Python and numpy (for the type stubs); is also a PEP 517
backend.

    python3 build_wheel.py FOLDER LIBRARY [PAPERS]      prints the wheel's path

PAPERS is a folder with `licenses` and `sboms`, which go into the wheel as they are (`scripts/lib/release papers` makes
it). The stubs say what the library answers; where it is one for another machine, GESSO_LIBRARY names one of the same
sources for this machine."""

import base64
import csv
import hashlib
import io
import json
import os
import platform
import re
import struct
import subprocess
import sys
import zlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIBRARY = "libtriton_gesso.so"
PACKAGE = "gesso"
COMMAND = "gesso_command"
PROGRAMS = {"gesso": "main", "rec2idx": "rec2idx", "tfrecord2idx": "tfrecord2idx", "wds2idx": "wds2idx"}
HEADER = HERE.parent / "include" / "gesso.h"
PACKAGING = HERE.parent / "packaging"
OLDEST_GLIBC = (2, 28)
SUFFIXES = (".py", ".pyi", ".typed")
# By their numbers in ELF.
MACHINES = {62: "x86_64", 183: "aarch64"}


def _project():
    """The version from Cargo.toml; name, description, Python, dependencies and extras from pyproject.toml: tomllib is
    not in Python 3.10."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    cargo = (HERE.parent / "Cargo.toml").read_text(encoding="utf-8")

    def field(name, text=text):
        return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE).group(1)

    dependencies = re.findall(r'"([^"]+)"', re.search(r"^dependencies = \[(.*)\]$", text, re.MULTILINE).group(1))
    section = text.partition("[project.optional-dependencies]\n")[2].partition("\n[")[0]
    extras = {
        name: re.findall(r'"([^"]+)"', listed)
        for name, listed in re.findall(r"^(\w+) = \[(.*)\]$", section, re.MULTILINE)
    }
    fields = {name: field(name) for name in ("name", "description", "requires-python")}
    return fields | {"version": field("version", cargo)} | {"dependencies": dependencies, "extras": extras}


def glibc(library):
    """The newest version of glibc that the library asks for, and no older one than the wheel promises."""
    versions = [OLDEST_GLIBC]
    for found in re.findall(rb"GLIBC_(\d+)\.(\d+)", Path(library).read_bytes()):
        versions.append(tuple(map(int, found)))
    return max(versions)


def machine(library):
    """The machine that the library is for, as its ELF header says."""
    with open(library, "rb") as file:
        header = file.read(20)
    number = int.from_bytes(header[18:20], "little")
    if header[:4] != b"\x7fELF" or number not in MACHINES:
        raise RuntimeError(f"`{library}`: expected a library for {' or '.join(MACHINES.values())}")
    return MACHINES[number]


def _tag(library):
    major, minor = glibc(library)
    return f"py3-none-manylinux_{major}_{minor}_{machine(library)}"


def _files(library):
    """(name in the wheel, bytes)"""
    for path in sorted((HERE / PACKAGE).rglob("*")):
        if path.is_file() and (path.suffix in SUFFIXES or path.name == "py.typed"):
            yield path.relative_to(HERE).as_posix(), path.read_bytes()
    for name, text in _stubs(library).items():
        yield f"{PACKAGE}/{name}", text.encode()
    yield f"{PACKAGE}/include/{HEADER.name}", HEADER.read_bytes()
    sys.path.append(str(PACKAGING))
    import c_files

    for name, text in c_files.make(
        _project()["version"], f"{PACKAGE}/cmake", f"{PACKAGE}/pkgconfig", PACKAGE, f"{PACKAGE}/include"
    ):
        yield name, text.encode()
    yield f"{COMMAND}.py", (HERE / f"{COMMAND}.py").read_bytes()
    yield f"{PACKAGE}/{LIBRARY}", Path(library).read_bytes()


def _stubs(library):
    """Type stubs, which the library's list of operators gives."""
    program = "import json, gesso._stubs; print(json.dumps(gesso._stubs.make()))"
    asked = library if machine(library) == platform.machine() else os.environ["GESSO_LIBRARY"]
    environment = dict(os.environ, GESSO_LIBRARY=str(Path(asked).resolve()), PYTHONPATH=str(HERE))
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the package cannot make its type stubs: {done.stderr.strip()}")
    return json.loads(done.stdout)


def _programs():
    lines = [f"{program} = {COMMAND}:{function}" for program, function in PROGRAMS.items()]
    return "\n".join(["[console_scripts]", *lines, ""])


def _papers(folder):
    """(name below the wheel's own information, bytes)"""
    paths = sorted(path for path in Path(folder).rglob("*") if path.is_file()) if folder else []
    return [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]


def _metadata(project, papers):
    readme = HERE.parent / "docs" / "guides" / "python.md"
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        "License-Expression: Apache-2.0",
        *(f"License-File: {name.removeprefix('licenses/')}" for name, _ in papers if name.startswith("licenses/")),
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {dependency}" for dependency in project["dependencies"]),
        *(f"Provides-Extra: {extra}" for extra in project["extras"]),
        *(
            f'Requires-Dist: {needed} ; extra == "{extra}"'
            for extra, listed in project["extras"].items()
            for needed in listed
        ),
        "Description-Content-Type: text/markdown",
        "",
        readme.read_text(encoding="utf-8") if readme.exists() else "",
    ]
    return "\n".join(lines).encode()


def build(folder, library, papers=None):
    """Writes the wheel into `folder`; returns its path."""
    project = _project()
    tag = _tag(library)
    # A dash parts the fields of a file's name, so names have none.
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{stem}.dist-info"
    files = list(_files(library))
    held = _papers(papers)
    files += [(f"{info}/{name}", data) for name, data in held]
    files += [
        (f"{info}/METADATA", _metadata(project, held)),
        (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: gesso\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()),
        (f"{info}/entry_points.txt", _programs().encode()),
    ]
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    path = Path(folder) / f"{stem}-{tag}.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, data in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.writerow((name, f"sha256={digest}", len(data)))
    rows.writerow((f"{info}/RECORD", "", ""))
    path.write_bytes(_zipped([*files, (f"{info}/RECORD", record.getvalue().encode())]))
    return path


# 2020-01-01, as zip archives write it: the same date for all, so that the same files make the same wheel.
DATE = (2020 - 1980) << 9 | 1 << 5 | 1


def _zipped(files):
    """A zip archive of (name, data). Python's `zipfile` packs by itself, and what zopfli packs is 4 % smaller."""
    parts, directory, offset = [], [], 0
    for name, data in files:
        packed, name = _deflated(data), name.encode("ascii")
        # Method (8: deflate), time, date, sum, sizes, lengths of the name and of what else there may be.
        about = struct.pack("<3H3L2H", 8, 0, DATE, zlib.crc32(data), len(packed), len(data), len(name), 0)
        part = struct.pack("<4s2H", b"PK\3\4", 20, 0) + about + name + packed
        # Made on Unix (3), with the permissions of a file.
        directory.append(
            struct.pack("<4s2B2H", b"PK\1\2", 20, 3, 20, 0)
            + about
            + struct.pack("<3H2L", 0, 0, 0, 0o100644 << 16, offset)
            + name
        )
        parts.append(part)
        offset += len(part)
    central = b"".join(directory)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(files), len(files), len(central), offset, 0)
    return b"".join([*parts, central, end])


def _deflated(data):
    try:
        from zopfli.zlib import compress
    except ImportError:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        return packer.compress(data) + packer.flush()
    # Without zlib's header and sum.
    return compress(data, numiterations=5)[2:-4]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """For pip: with the library that GESSO_LIBRARY names, or a release build's."""
    library = os.environ.get("GESSO_LIBRARY", HERE.parent / "target" / "release" / LIBRARY)
    return build(wheel_directory, library).name


if __name__ == "__main__":
    print(build(*sys.argv[1:4]))
