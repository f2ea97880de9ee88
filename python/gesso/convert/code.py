"""Lines of a program, and how values are written in them."""

import json
import textwrap

_LONGEST_LINE = 120
_INDENT = "    "


class Code(str):
    """Text of a program, no string in it."""

    def __repr__(self):
        return str(self)


class Call:
    """A line that calls a function with inputs and arguments. Text of inputs is code."""

    def __init__(self, target, function, inputs, arguments):
        self.target, self.function, self.inputs = target, function, inputs
        self.arguments = {name: value for name, value in arguments.items() if value is not None}

    def lines(self):
        """One, or more where that is too long: as formatters of Python break it."""
        inputs = [each if isinstance(each, str) else literal(each) for each in self.inputs]
        parts = [*inputs, *(f"{name}={literal(value)}" for name, value in self.arguments.items())]
        line = f"{_INDENT}{self.target} = {self.function}({', '.join(parts)})"
        if len(line) <= _LONGEST_LINE:
            return [line]
        joined = f"{_INDENT * 2}{', '.join(parts)}"
        if len(joined) <= _LONGEST_LINE:
            return [f"{_INDENT}{self.target} = {self.function}(", joined, f"{_INDENT})"]
        inner = [
            f"{_INDENT * 2}{piece}"
            for part, value in zip(parts, [*self.inputs, *self.arguments.values()], strict=True)
            for piece in _pieces(f"{part},", value)
        ]
        return [f"{_INDENT}{self.target} = {self.function}(", *inner, f"{_INDENT})"]


def _pieces(text, value):
    """Lines of an argument: one for each member of a list of lists that is too long for one line."""
    room = _LONGEST_LINE - 2 * len(_INDENT)
    if len(text) <= room:
        return [text]
    if not isinstance(value, (tuple, list)) or not all(isinstance(each, (tuple, list)) for each in value):
        return textwrap.wrap(text, room, subsequent_indent=_INDENT)
    head = text[: text.index("[") + 1]
    members = [piece for each in value for piece in _pieces(f"{literal(each)},", None)]
    return [head, *(f"{_INDENT}{line}" for line in members), "],"]


def literal(value):
    """A value as a program has it."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, str) and not isinstance(value, Code):
        return json.dumps(value)
    return repr(value)


class Block:
    """Lines below a condition."""

    def __init__(self, head):
        self.head, self.body = head, []

    def lines(self):
        """The condition, and what is below it."""
        return [f"{_INDENT}{self.head}", *(f"{_INDENT}{line}" for line in indented(self.body))]


def indented(body):
    """The lines of a function."""
    return [line for each in body for line in ([f"{_INDENT}{each}"] if isinstance(each, str) else each.lines())]
