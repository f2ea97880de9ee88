"""What is told to a user: errors of a user's own code with their place, and texts without control characters."""

import traceback


def printable(text):
    """A text that changes nothing in a terminal: control characters but line breaks are escaped."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape", "backslashreplace").decode()
        for each in str(text)
    )


def in_one_line(text):
    """The same for a name within a line: line breaks are escaped, too."""
    return printable(text).replace("\n", "\\n")


class told:
    """Errors inside begin with some words. A program that ends itself is an error, too."""

    def __init__(self, words):
        self.words = words

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if isinstance(error, (Exception, SystemExit)):
            raise RuntimeError(f"{self.words}: {said(error)}") from error


class of_user:
    """Errors inside name the user's file and the line in it that raised them."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if not isinstance(error, (Exception, SystemExit)):
            return
        lines = [frame.lineno for frame in traceback.extract_tb(trace) if frame.filename == self.path]
        if isinstance(error, SyntaxError) and error.filename == self.path:
            lines.append(error.lineno)
        place = f"`{self.path}`" + (f", line {lines[-1]}" if lines else "")
        raise RuntimeError(f"{place}: {type(error).__name__}: {said(error)}") from error


def said(error):
    """An error in words."""
    if isinstance(error, SystemExit):
        return f"code of the user ends the program with {error.code!r}; expected that it goes on"
    return str(error) or type(error).__name__
