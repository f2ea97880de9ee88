"""The archive for everybody: laid out as Triton's folder of backends, with the program, the header and the papers."""

import sys
from pathlib import Path

import archive
from archive import Entry

sys.path.append(str(Path(__file__).resolve().parents[3] / "packaging"))
import c_files

INSTALL = """\
Gesso {version} for Linux on {machine}, glibc 2.28 or newer.

backends/gesso/libtriton_gesso.so   for models that say `backend: "gesso"`
backends/dali/libtriton_dali.so     the same file, for models that say `backend: "dali"` and shall stay unchanged
bin/gesso                           the command line
include/gesso.h                     the C API; programs link backends/gesso/libtriton_gesso.so
lib/cmake/Gesso, lib/pkgconfig      for CMake's find_package(Gesso) and for pkg-config
licenses/                           the terms of Gesso and of all that it holds
sboms/gesso.cdx.json                the parts, for scanners (CycloneDX)

Either let the program put the plugin in its place,

    bin/gesso install /opt/tritonserver              or with --as-dali: another backend's file stays beside it

or copy backends/gesso to where the server has its backends; or let the server look here for all of them:

    tritonserver --backend-directory=$PWD/backends ...

`bin/gesso doctor` tells what this machine lacks.
"""


# Of the files for CMake and pkg-config, the library and the header.
PLACES = ("lib/cmake/Gesso", "lib/pkgconfig", "backends/gesso", "include")


def name(version, machine):
    """Of the archive, without its suffix: the folder that it unpacks to."""
    return f"gesso-{version}-linux-{machine}"


def make(version, machine, library, program, header, papers, changelog, epoch):
    """The archive's bytes; `papers` are (name, bytes)."""
    top = name(version, machine)
    plugin = f"{top}/backends/gesso/libtriton_gesso.so"
    entries = [
        Entry(plugin, library, archive.PROGRAM),
        Entry(f"{top}/backends/dali/libtriton_dali.so", same_as=plugin),
        Entry(f"{top}/bin/gesso", program, archive.PROGRAM),
        Entry(f"{top}/include/gesso.h", header),
        *(Entry(f"{top}/{path}", text.encode()) for path, text in c_files.make(version, *PLACES)),
        Entry(f"{top}/CHANGELOG.md", changelog),
        Entry(f"{top}/INSTALL.txt", INSTALL.format(version=version, machine=machine).encode()),
        *(Entry(f"{top}/{path}", data) for path, data in papers),
    ]
    return archive.gz(archive.tar(entries, epoch))
