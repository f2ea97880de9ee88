"""The Debian package: an `ar` archive of two tar archives, what the package says of itself and its files.

The plugin is in /usr/lib/gesso, and a link to it where NVIDIA's images have Triton's backends. DALI's name is nobody's
to take without being asked: `gesso install --as-dali` does that.

Not by cargo-deb: it packs files of a folder, of which links must lead somewhere, and is built of 77 crates for each
release. What is packed here are the entries that the other archive has, too.
"""

import email.utils
import hashlib
import sys
from pathlib import Path

import archive
from archive import Entry

sys.path.append(str(Path(__file__).resolve().parents[3] / "packaging"))
import c_files

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
MAINTAINER = "The maintainers of Gesso <maintainers@gesso.invalid>"
# Of the files for CMake and pkg-config, the library and the header.
PLACES = ("usr/lib/cmake/Gesso", "usr/share/pkgconfig", "usr/lib/gesso/backends/gesso", "usr/include")
PLUGIN = "usr/lib/gesso/backends/gesso/libtriton_gesso.so"

CONTROL = """\
Package: gesso
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kilobytes}
Depends: libc6 (>= 2.28)
Section: libs
Priority: optional
Description: runs preprocessing pipelines that NVIDIA DALI serialized, without DALI
 A backend for Triton Inference Server that decodes, resizes and normalizes
 images, sound and video ahead of a model, on CPUs and GPUs; a C library that
 does the same in any program; and a command line for both.
"""

CHANGELOG = """\
gesso ({version}) unstable; urgency=medium

  * What changed is in NEWS.gz.

 -- {maintainer}  {date}
"""

COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gesso
Comment: The parts of others, with their terms, are listed in /usr/share/doc/gesso/licenses/THIRD-PARTY.txt.

Files: *
Copyright: The contributors to Gesso
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.
"""


def name(version, machine):
    """Of the package's file."""
    return f"gesso_{version}_{MACHINES[machine]}.deb"


def make(version, machine, library, program, header, papers, changelog, epoch):
    """The package's bytes; `papers` are (name, bytes)."""
    documents = "usr/share/doc/gesso"
    entry = CHANGELOG.format(version=version, maintainer=MAINTAINER, date=email.utils.formatdate(epoch))
    files = [
        Entry(PLUGIN, library),
        Entry("usr/lib/gesso/backends/dali/libtriton_dali.so", link="../gesso/libtriton_gesso.so"),
        Entry("opt/tritonserver/backends/gesso/libtriton_gesso.so", link=f"/{PLUGIN}"),
        Entry("usr/bin/gesso", program, archive.PROGRAM),
        Entry("usr/include/gesso.h", header),
        *(Entry(path, text.encode()) for path, text in c_files.make(version, *PLACES)),
        Entry(f"{documents}/copyright", COPYRIGHT.encode()),
        Entry(f"{documents}/changelog.gz", archive.gz(entry.encode())),
        Entry(f"{documents}/NEWS.gz", archive.gz(changelog)),
        *(Entry(f"{documents}/{path}", data) for path, data in papers),
    ]
    kilobytes = sum(len(entry.data) for entry in files) // 1024 + 1
    control = CONTROL.format(
        version=version, architecture=MACHINES[machine], maintainer=MAINTAINER, kilobytes=kilobytes
    )
    sums = "".join(f"{hashlib.md5(entry.data).hexdigest()}  {entry.name}\n" for entry in files if not entry.link)
    about = [Entry("./control", control.encode()), Entry("./md5sums", sums.encode())]
    # Names in a package begin with the folder that they are unpacked to.
    placed = [Entry(f"./{entry.name}", entry.data, entry.mode, entry.link) for entry in files]
    return ar(
        [
            ("debian-binary", b"2.0\n"),
            ("control.tar.gz", archive.gz(archive.tar(about, epoch))),
            ("data.tar.gz", archive.gz(archive.tar(placed, epoch))),
        ],
        epoch,
    )


def ar(members, epoch):
    """The archive format of packages: a header of 60 bytes in text and the data, on even places."""
    out = b"!<arch>\n"
    for title, data in members:
        out += f"{title:<16}{epoch:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data
        out += b"\n" * (len(data) % 2)
    return out
