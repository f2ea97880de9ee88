"""What DALI says of the same mistake: added to the library's message for programs that were written for DALI and may look for its words."""

import re

_LOGICAL = "Logical expression `and`, `or` or `not` is restricted to scalar (0-d tensors) inputs{}, that are placed on CPU. Got {} in logical expression."


def _operand(match):
    dtype, ndim = match.groups()
    if ndim != "0":
        return _LOGICAL.format(" of `bool` type", f"a {ndim}-d input")
    return _LOGICAL.format(" of `bool` type", f"an input of type `{dtype}`")


def _condition(match):
    ndim = match[1].count(",") + 1
    return (
        "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that are placed on CPU. "
        f"Got a {ndim}-d input as a condition of the `if` statement."
    )


_WORDS = (
    (r"function `(\w+)` takes integers or bools", r"Inputs to bitwise operator `\1` must be of integral type."),
    (
        r"function `(\w+)` takes at least one number",
        r"Inputs to arithmetic operator `\1` cannot be booleans. Consider using bitwise operators `&`, `|`, `^`.",
    ),
    (r"an operand of `and` or `or` is (\w+) of (\d+) dimensions", _operand),
    (r"a condition of shape `?\[(.*?)\]`?, expected a scalar", _condition),
    (r"a scalar has no frames", "Cannot mark zero-dimensional input as a sequence."),
    (r"expected frames \(`F`\) first", "Per-frame argument input must be a sequence. The input layout should start with 'F'."),
    (r"operands of shapes (.*) do not fit", r"Can't broadcast shapes: \1"),
    (r"operands have layouts `(\w*)` and `(\w*)`", r"They must be equal or one must be a suffix of the other: \1, \2"),
    (r"argument `axis_name` is not one letter", "Unsupported axis_name value"),
    (r"`(\w+)` is given together with `(\w+)`", r'"\1" and "\2" arguments are mutually exclusive'),
)
_COMPILED = [(re.compile(pattern), words) for pattern, words in _WORDS]


def added(message):
    """The message, and behind it DALI's words where they are known."""
    for pattern, words in _COMPILED:
        match = pattern.search(message)
        if match:
            text = words(match) if callable(words) else match.expand(words)
            return f"{message}\nDALI says: {text}"
    return message
