"""What CMake and pkg-config read to find Gesso. The files name all else by paths from their own place, so the folder
may be moved."""

from pathlib import Path, PurePosixPath

HERE = Path(__file__).resolve().parent
LIBRARY = "libtriton_gesso.so"


def relative(place, target):
    """The path from a folder to another; both are paths below the same root."""
    place, target = PurePosixPath(place).parts, PurePosixPath(target).parts
    shared = 0
    while shared < min(len(place), len(target)) and place[shared] == target[shared]:
        shared += 1
    return "/".join([*[".."] * (len(place) - shared), *target[shared:]]) or "."


def make(version, cmake, pkgconfig, libdir, include):
    """(path, text) of each file; the arguments are folders below one root: of CMake's files, of pkg-config's, of the
    library, of the header."""
    named = {
        f"{cmake}/GessoConfig.cmake": ("GessoConfig.cmake.in", cmake),
        f"{cmake}/GessoConfigVersion.cmake": ("GessoConfigVersion.cmake.in", cmake),
        f"{pkgconfig}/gesso.pc": ("gesso.pc.in", pkgconfig),
    }
    for path, (template, place) in named.items():
        text = (HERE / template).read_text(encoding="utf-8")
        values = {
            "VERSION": version,
            "LIBDIR": relative(place, libdir),
            "LIBRARY": f"{relative(place, libdir)}/{LIBRARY}",
            "INCLUDE": relative(place, include),
        }
        for name, value in values.items():
            text = text.replace(f"@{name}@", value)
        yield path, text
