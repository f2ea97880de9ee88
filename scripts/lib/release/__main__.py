"""What `scripts/release` packs.

python3 scripts/lib/release papers --machine M FOLDER      the licences and the list of parts, which every archive holds
python3 scripts/lib/release pack --machine M --library FILE --program FILE --papers FOLDER --wheel FILE FOLDER
"""

import argparse
import hashlib
import os
import shutil
import sys
from pathlib import Path

import debian
import licences
import parts
import sbom
import tarball

SUMS = "SHA256SUMS"


def papers(machine, folder):
    """Writes `licenses/` and `sboms/` into the folder."""
    crates = parts.crates(machine)
    others = [part for part in crates if part.checksum]
    tools = parts.tools()
    shipped = [part for part in others if part.shipped] + tools
    written = {
        "licenses/LICENSE": (parts.ROOT / "LICENSE").read_text(encoding="utf-8"),
        "licenses/THIRD-PARTY.txt": licences.document(shipped, parts.folders()),
        "sboms/gesso.cdx.json": sbom.document(machine, crates + tools, _epoch()),
    }
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def pack(options):
    """Writes the archives, the list of parts, the wheel's copy and the sums into the folder."""
    version, folder, machine = parts.version(), options.folder, options.machine
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted(path for path in options.papers.rglob("*") if path.is_file())
    held = [(path.relative_to(options.papers).as_posix(), path.read_bytes()) for path in paths]
    contents = (
        options.library.read_bytes(),
        options.program.read_bytes(),
        (parts.ROOT / "include" / "gesso.h").read_bytes(),
        held,
        (parts.ROOT / "CHANGELOG.md").read_bytes(),
        _epoch(),
    )
    (folder / f"{tarball.name(version, machine)}.tar.gz").write_bytes(tarball.make(version, machine, *contents))
    (folder / debian.name(version, machine)).write_bytes(debian.make(version, machine, *contents))
    shutil.copyfile(options.papers / "sboms" / "gesso.cdx.json", folder / f"{tarball.name(version, machine)}.cdx.json")
    shutil.copyfile(options.wheel, folder / options.wheel.name)
    # Those for other machines, too, not those of other versions.
    files = sorted(
        path
        for path in folder.iterdir()
        if path.name.startswith((f"gesso-{version}-", f"gesso_{version}_", f"gesso_pipelines-{version}-"))
    )
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / SUMS).write_text(sums, encoding="utf-8")


def _epoch():
    return int(os.environ["SOURCE_DATE_EPOCH"])


def main(words):
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("papers", "pack"):
        options = commands.add_parser(command)
        options.add_argument("--machine", choices=sorted(debian.MACHINES), required=True)
        if command == "pack":
            for name in ("--library", "--program", "--papers", "--wheel"):
                options.add_argument(name, type=Path, required=True)
        options.add_argument("folder", type=Path)
    chosen = parser.parse_args(words)
    if chosen.command == "papers":
        papers(chosen.machine, chosen.folder)
    else:
        pack(chosen)


if __name__ == "__main__":
    main(sys.argv[1:])
