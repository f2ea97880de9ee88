"""Where in the user's code an operator was made."""

import linecache
import os
import sys

_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _is_foreign(frame):
    name = frame.f_code.co_filename
    return not name.startswith(_OWN) and not name.startswith("<frozen")


def of_caller():
    """(file, line, function) of the nearest frames outside of this package, innermost last; at most 8."""
    frame, found = sys._getframe(1), []
    while frame is not None and len(found) < 8:
        if _is_foreign(frame):
            found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        elif found and frame.f_code.co_name == "_define":
            break
        frame = frame.f_back
    return found[::-1]


def describe(origin):
    """Lines as in a traceback."""
    lines = []
    for file, line, function in origin:
        lines.append(f'  File "{file}", line {line}, in {function}')
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"    {text}")
    return "\n".join(lines)
