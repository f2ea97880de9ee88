"""Which of the libraries to compare with are installed."""

import sys


def installed(makers, names):
    """The libraries of these names that can be imported, made by `makers`. Names the others; ends the program where
    there is none."""
    found = []
    for name in names:
        try:
            found.append(makers[name]())
        except ImportError as error:
            print(f"{name}: left out, {error}")
    if not found:
        sys.exit("no library to compare with is installed")
    return found
