"""Signatures and docstrings of operators, from their schemas."""

import inspect
from typing import Any

from . import arguments

_PYTHON = {"int64": int, "float": float, "bool": bool, "string": str}


def input_names(schema):
    """Names of the inputs of an operator."""
    count = schema.max_inputs
    if schema.input_names:
        names = [name for name in schema.input_names[:count]]
    elif count == 1:
        names = ["input"]
    else:
        names = [f"input_{i}" for i in range(count)]
    unique = []
    for name in names:
        while name in schema.arguments:
            name = f"__{name}" if "input" in name else f"{name}_input"
        unique.append(name)
    return unique


def _inputs(schema, variadic_from=8):
    if schema.max_inputs > variadic_from:
        yield inspect.Parameter("inputs", inspect.Parameter.VAR_POSITIONAL)
        return
    for i, name in enumerate(input_names(schema)):
        default = inspect.Parameter.empty if i < schema.min_inputs else None
        yield inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY, default=default)


def _annotation(argument):
    kind, is_list = argument.kind
    python = _PYTHON.get(kind, Any)
    return list[python] | python if is_list and python is not Any else python  # type: ignore[valid-type]


def _keywords(schema):
    for argument in schema.arguments.values():
        if argument.name.startswith("_") or argument.deprecation:
            continue
        default = None if argument.optional else inspect.Parameter.empty
        if argument.default is not None:
            default = argument.default
        yield inspect.Parameter(
            argument.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=_annotation(argument)
        )
    yield inspect.Parameter("device", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str)
    yield inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=str)


def of_function(schema):
    """The signature of an operator's function."""
    return inspect.Signature([*_inputs(schema), *_keywords(schema)])


def documentation(schema, named):
    """The docstring of an operator."""
    lines = [schema.doc or f"The operator {schema.name}."]
    if named.deprecation:
        lines += ["", f"Deprecated. {named.deprecation}"]
    count = f"{schema.min_inputs}" + (f" to {schema.max_inputs}" if schema.max_inputs != schema.min_inputs else "")
    lines += ["", f"Runs on: {', '.join(schema.devices)}. Inputs: {count}.", "", "Arguments:"]
    for argument in schema.arguments.values():
        if argument.name.startswith("_") or argument.deprecation:
            continue
        facts = arguments.type_name(argument)
        facts += ", or a tensor for each sample" if argument.tensor else ""
        facts += "" if argument.optional else ", required"
        facts += f", default {argument.default!r}" if argument.default is not None else ""
        lines.append(f"    {argument.name}: {facts}" + (f". {argument.doc}" if argument.doc else ""))
    return "\n".join(lines)
