"""Type stubs of `fn` and `ops`, made from the library's list of operators when the wheel is built."""

import inspect

from . import fn
from ._authoring import schema as _schema
from ._authoring.signature import input_names
from ._readers.registry import READERS

_TYPES = {"int64": "int", "float": "float", "bool": "bool", "string": "str", "object": "Any"}
_ENUMS = {"DATA_TYPE": "DALIDataType", "IMAGE_TYPE": "DALIImageType", "INTERP_TYPE": "DALIInterpType"}
_HEAD = """# Made from the library's list of operators.
from typing import Any, Sequence

from {up}data_node import DataNode
from {up}types import DALIDataType, DALIImageType, DALIInterpType
"""


def _annotation(argument):
    kind, is_list = argument.kind
    name = _ENUMS.get(argument.type, _TYPES.get(kind, "Any"))
    name = f"Sequence[{name}] | {name}" if is_list and name != "Any" else name
    if argument.tensor:
        name += " | DataNode"
    return name if not argument.optional or name == "Any" else name + " | None"


def _parameters(schema):
    if schema.max_inputs > 8:
        yield "*inputs: DataNode"
    else:
        for i, name in enumerate(input_names(schema)):
            yield f"__{name.strip('_')}: DataNode" + ("" if i < schema.min_inputs else " | None = ...")
        yield "*"
    for argument in schema.arguments.values():
        if not argument.name.startswith("_") and not argument.deprecation:
            yield f"{argument.name}: {_annotation(argument)}" + ("" if not argument.optional else " = ...")
    yield "device: str = ..."
    yield "name: str | None = ..."


def _function(schema):
    result = "DataNode" if schema.outputs == 1 else "list[DataNode]"
    return f"def {schema.function_name}({', '.join(_parameters(schema))}) -> {result}: ...\n"


def make():
    """The stubs: path in the package > text."""
    modules = {}
    schemas = {**_schema.all_schemas(), **{name: kind.schema for name, kind in READERS.items()}}
    for schema in schemas.values():
        if not schema.name.startswith("_") and schema.name != "ExternalSource":
            modules.setdefault(tuple(schema.modules), []).append(schema)
    files = {}
    for path, members in modules.items():
        up = "." * (len(path) + 2)
        text = (
            _HEAD.format(up=up)
            + "\n"
            + "\n".join(_function(schema) for schema in sorted(members, key=lambda s: s.name))
        )
        children = sorted(
            {other[len(path)] for other in modules if other[: len(path)] == path and len(other) > len(path)}
        )
        if children:
            text += "\n" + "".join(f"from . import {child} as {child}\n" for child in children)
        if not path:
            text += f"\ndef external_source{_plain(fn.external_source)}: ...\n"
            text += "def python_function(*inputs: DataNode, function: Any, num_outputs: int = ..., **keywords: Any) -> Any: ...\n"
        files["/".join(("fn", *path, "__init__.pyi"))] = text
    return files


def _plain(function):
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(parameters)) + " -> Any"
