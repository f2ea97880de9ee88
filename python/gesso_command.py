"""The program `gesso`: `serialize`, `compare`, `from` and `tokens` are Python's, all else the library's. Outside of the
package, so that it starts without it and without numpy."""

import ctypes
import importlib
import os
import signal
import sys

_LIBRARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gesso", "libtriton_gesso.so")


# The interpreter that was asked for by `--python`.
_ASKED = "GESSO_SERIALIZE_BY"


def _package(module):
    """A module of the package; ends the program where this interpreter cannot import it, as without numpy."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        sys.exit(
            f"error: the package `gesso` is not usable in `{sys.executable}` ({error}): name an interpreter that has it by `--python` or the "
            "environment variable GESSO_PYTHON"
        )


def _serialize(arguments):
    import argparse

    parser = argparse.ArgumentParser(
        prog="gesso serialize", description="Writes the pipeline of a Python program as a file."
    )
    parser.add_argument("script", help="a program with a function marked by pipeline_def")
    parser.add_argument("-o", "--output", default="model.dali", help="the file to write [model.dali]")
    parser.add_argument("--name", help="the function, where there are several")
    parser.add_argument(
        "--python",
        default=os.environ.get("GESSO_PYTHON"),
        help="the interpreter that has the package `gesso` and what the program needs [GESSO_PYTHON, else this one]",
    )
    options = parser.parse_args(arguments)
    if options.python and os.environ.get(_ASKED) != options.python:
        # That one does the same, and asks no other.
        os.environ[_ASKED] = options.python
        words = [options.python, "-m", "gesso_command", "serialize", *arguments]
        try:
            os.execvp(options.python, words)
        except OSError as error:
            sys.exit(f"error: cannot run `{options.python}`: {error.strerror}")
    autoserialize = _package("gesso._authoring.autoserialize")
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    try:
        data = autoserialize.of_script(options.script, options.name).serialize()
    except Exception as error:
        import traceback

        traceback.print_exc()
        sys.exit(f"error: {options.script} could not be serialized: {error}")
    try:
        os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
        with open(options.output, "wb") as file:
            file.write(data)
    except OSError as error:
        sys.exit(f"error: cannot write `{options.output}`: {error.strerror}")
    print(f"{options.output}: {len(data)} bytes")


def _command_line(arguments):
    """Runs the library's command line; returns its exit status."""
    # What `gesso install` copies.
    path = os.environ.setdefault("GESSO_LIBRARY", _LIBRARY)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        sys.exit(f"error: cannot load `{path}`: {error}")
    if not hasattr(library, "gesso_main"):
        sys.exit(
            f"error: `{path}` has no command line: that is in the library of a wheel, and in the program that cargo makes"
        )
    # What models in Python are serialized by.
    os.environ.setdefault("GESSO_PYTHON", sys.executable)
    words = [b"gesso", *map(os.fsencode, arguments)]
    # Python only notes Ctrl-C, and looks at its note when a call has come back.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return library.gesso_main(len(words), (ctypes.c_char_p * (len(words) + 1))(*words))


def _index(kind, arguments, usage, behind=None):
    """The programs of DALI's wheel that make an index: a file of samples, and the index that is written."""
    arguments = [word for word in arguments if word != "--"]
    if any(word in ("-h", "--help") for word in arguments):
        return print(usage)
    if len(arguments) == 1 and behind is not None:
        arguments.append(behind(arguments[0]))
    if len(arguments) != 2:
        sys.exit(usage)
    data, index = (word if not word.startswith("-") else os.path.join(".", word) for word in arguments)
    return _command_line(["index", kind, data, "--out", index])


def tfrecord2idx():
    """`tfrecord2idx DATA INDEX`: the index of a TFRecord file."""
    return _index("tfrecord", sys.argv[1:], "usage: tfrecord2idx DATA INDEX: writes the index of a TFRecord file")


def rec2idx():
    """`rec2idx DATA INDEX`: the index of a RecordIO file."""
    return _index("recordio", sys.argv[1:], "usage: rec2idx DATA INDEX: writes the index of a RecordIO file")


def _beside(archive):
    """The index of an archive, where none is named: its name up to the first dot."""
    return archive[: archive.find(".", archive.rfind("/") + 2)] + ".idx"


def wds2idx():
    """`wds2idx ARCHIVE [INDEX]`: the index of a tar archive."""
    return _index(
        "webdataset",
        sys.argv[1:],
        "usage: wds2idx ARCHIVE [INDEX]: writes the index of a tar archive of samples",
        _beside,
    )


def main():
    """The command line."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serialize"]:
        return _serialize(arguments[1:])
    if arguments[:1] == ["compare"]:
        return _package("gesso._comparison.command").main(arguments[1:])
    if arguments[:1] == ["from"]:
        return _package("gesso.convert.command").main(arguments[1:])
    if arguments[:1] == ["tokens"]:
        return _package("gesso.hf.tokens_command").main(arguments[1:])
    return _command_line(arguments)


if __name__ == "__main__":
    sys.exit(main())
