"""Reads the text of a Triton model's configuration: as much as an ensemble must know of the model behind a stage."""

import re

from .description import ConversionError

_GAP = re.compile(r"(\s|#[^\n]*(\n|$))*")
_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.+-]+|[{}\[\]<>:,;]""")
# Configurations are small and flat.
_DEEPEST, _LARGEST = 32, 1 << 20


def read(path):
    """The fields of a file: a name and the list of its values, which are texts or fields again."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LARGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConversionError(f"cannot read `{path}`: {error}") from error
    if len(text) > _LARGEST:
        raise ConversionError(f"`{path}` has more than {_LARGEST} characters: no configuration of a model")
    try:
        return _fields(_tokens(text), None, 0)
    except (ValueError, IndexError) as error:
        raise ConversionError(f"`{path}` is no configuration of a model: {error}") from error


def _tokens(text):
    """The words of a text, the last of them first."""
    found, place = [], _GAP.match(text).end()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"expected a name or a value, found {text[place : place + 20]!r}")
        found.append(match.group())
        place = _GAP.match(text, match.end()).end()
    return found[::-1]


def _fields(tokens, end, depth):
    if depth > _DEEPEST:
        raise ValueError(f"expected at most {_DEEPEST} braces in braces")
    fields = {}
    while tokens and tokens[-1] != end:
        name = tokens.pop()
        if name in ",;":
            continue
        if tokens[-1] == ":":
            tokens.pop()
        values = fields.setdefault(name, [])
        if tokens[-1] == "[":
            tokens.pop()
            while tokens[-1] != "]":
                if tokens[-1] in ",;":
                    tokens.pop()
                else:
                    values.append(_value(tokens, depth))
            tokens.pop()
        else:
            values.append(_value(tokens, depth))
    if end is not None:
        tokens.pop()
    return fields


def _value(tokens, depth):
    token = tokens.pop()
    if token in "{<":
        return _fields(tokens, {"{": "}", "<": ">"}[token], depth + 1)
    if token in "}>[]:,;":
        raise ValueError(f"expected a value, found `{token}`")
    return token[1:-1] if token[0] in "\"'" else token
