"""`python -m gesso.as_dali script.py ...` and `python -m gesso.as_dali -m module ...`"""

import runpy
import sys

from . import __name__ as _installed  # noqa: F401


def main():
    """Runs a script or a module with `nvidia.dali` as Gesso."""
    arguments = sys.argv[1:]
    if not arguments:
        sys.exit("usage: python -m gesso.as_dali (SCRIPT | -m MODULE) [ARGUMENT...]")
    if arguments[0] == "-m" and len(arguments) > 1:
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, __import__("os").path.dirname(arguments[0]) or ".")
        runpy.run_path(arguments[0], run_name="__main__")


main()
