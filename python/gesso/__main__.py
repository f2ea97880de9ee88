"""`python -m gesso`: `serialize` is here, all other commands are the command line's, where the package has it."""

import argparse
import os
import sys


def _serialize(arguments):
    from ._serialize import of_script

    parser = argparse.ArgumentParser(prog="gesso serialize", description="Writes the pipeline of a Python program as a file.")
    parser.add_argument("script", help="a program with a function marked by pipeline_def")
    parser.add_argument("-o", "--output", default="model.dali", help="the file to write [model.dali]")
    parser.add_argument("--name", help="the function, where there are several")
    options = parser.parse_args(arguments)
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    size = len(of_script(options.script, options.name).serialize(filename=options.output))
    print(f"{options.output}: {size} bytes")


def main():
    """The command line."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["serialize"]:
        return _serialize(arguments[1:])
    binary = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "gesso")
    if not os.path.exists(binary):
        sys.exit("usage: gesso serialize SCRIPT [-o FILE]\n(This installation has no other commands.)")
    os.execv(binary, [binary, *arguments])


if __name__ == "__main__":
    main()
