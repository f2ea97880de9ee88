"""The program `gesso`: `serialize` is Python's, all else the library's. Outside of the package, so that it starts without it and without numpy."""

import ctypes
import os
import signal
import sys

_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gesso", "libtriton_gesso.so")


def _serialize(arguments):
    import argparse

    from gesso._serialize import of_script

    parser = argparse.ArgumentParser(prog="gesso serialize", description="Writes the pipeline of a Python program as a file.")
    parser.add_argument("script", help="a program with a function marked by pipeline_def")
    parser.add_argument("-o", "--output", default="model.dali", help="the file to write [model.dali]")
    parser.add_argument("--name", help="the function, where there are several")
    options = parser.parse_args(arguments)
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    try:
        size = len(of_script(options.script, options.name).serialize(filename=options.output))
    except Exception as error:
        import traceback

        traceback.print_exc()
        sys.exit(f"error: {options.script} could not be serialized: {error}")
    print(f"{options.output}: {size} bytes")


def _command_line(arguments):
    """Runs the library's command line; returns its exit status."""
    # What `gesso install` copies.
    path = os.environ.setdefault("GESSO_LIBRARY", _LIBRARY)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        sys.exit(f"error: cannot load `{path}`: {error}")
    if not hasattr(library, "gesso_main"):
        sys.exit(f"error: `{path}` has no command line: that is in the library of a wheel, and in the program that cargo makes")
    # What models in Python are serialized by.
    os.environ.setdefault("GESSO_PYTHON", sys.executable)
    words = [b"gesso", *map(os.fsencode, arguments)]
    # Python only notes Ctrl-C, and looks at its note when a call has come back.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return library.gesso_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words))


def main():
    """The command line."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serialize"]:
        return _serialize(arguments[1:])
    return _command_line(arguments)
