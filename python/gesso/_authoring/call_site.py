"""Where in the user's code an operator was made."""

import linecache
import os
import sys
import warnings

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_AUTOMATIC = os.path.join(_OWN, "auto_aug", "")


def _is_foreign(frame):
    name = frame.f_code.co_filename
    return not name.startswith(_OWN) and not name.startswith("<frozen")


def of_caller(most=8):
    """(file, line, function) of the nearest frames outside of this package, innermost last; at most `most`."""
    frame, found = sys._getframe(1), []
    while frame is not None and len(found) < most:
        if _is_foreign(frame):
            found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        elif found and frame.f_code.co_name == "_define":
            break
        frame = frame.f_back
    return found[::-1]


def warn(text, category):
    """Warns at the line of the user's code that called; not of what the package itself does for him, in `auto_aug`."""
    frame, level = sys._getframe(1), 2
    while frame is not None and not _is_foreign(frame):
        if frame.f_code.co_filename.startswith(_AUTOMATIC):
            return
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def describe(origin):
    """Lines as in a traceback."""
    lines = []
    for file, line, function in origin:
        lines.append(f'  File "{file}", line {line}, in {function}')
        text = linecache.getline(file, line).strip()
        if text:
            lines.append(f"    {text}")
    return "\n".join(lines)
