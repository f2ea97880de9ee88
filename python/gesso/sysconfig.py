"""Where the header of the C API and the library are, for programs and operators in C, C++ or Rust."""

import os

from ._native import library as _library

_HERE = os.path.dirname(os.path.abspath(__file__))


def get_include_dir():
    """The folder of `gesso.h`."""
    own = os.path.join(_HERE, "include")
    # In a source tree it is beside the package's folder.
    return own if os.path.isdir(own) else os.path.abspath(os.path.join(_HERE, "..", "..", "include"))


def get_lib_dir():
    """The folder of the library."""
    return os.path.dirname(os.path.abspath(_library.path()))


def get_include_flags():
    """What a compiler needs to find the header."""
    return [f"-I{get_include_dir()}"]


def get_compile_flags():
    """The same: the C API needs nothing else."""
    return get_include_flags()


def get_link_flags():
    """What a linker needs to find the library."""
    return [f"-L{get_lib_dir()}", f"-l:{os.path.basename(_library.path())}"]
