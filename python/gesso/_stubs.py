"""Type stubs of `fn`, `ops` and `math`, made when the wheel is built: of `fn` and `ops` from the library's list of
operators."""

import inspect

from . import _stubs_dynamic, fn, math
from ._authoring import schema as _schema
from ._authoring.signature import input_names
from ._readers.registry import READERS
from ._readers.source import Reader

_TYPES = {"int64": "int", "float": "float", "bool": "bool", "string": "str", "object": "Any"}
_ENUMS = {"DATA_TYPE": "DALIDataType", "IMAGE_TYPE": "DALIImageType", "INTERP_TYPE": "DALIInterpType"}
_HEAD = """# Made from the library's list of operators.
from collections.abc import Sequence as _Sequence
from typing import Any

from {up}data_node import DataNode
from {up}types import DALIDataType, DALIImageType, DALIInterpType
"""
# What `ops` has beside operators.
_OPS = """
from .._authoring.compose import Compose as Compose
from .._authoring.operator import Operator as Operator
from .._callbacks.python_function import DLTensorPythonFunction as DLTensorPythonFunction
from .._callbacks.python_function import PythonFunction as PythonFunction
from ..external_source import ExternalSource as ExternalSource

def cpu_ops() -> set[str]: ...
def gpu_ops() -> set[str]: ...
def mixed_ops() -> set[str]: ...
"""


def _annotation(argument):
    kind, is_list = argument.kind
    name = _ENUMS.get(argument.type, _TYPES.get(kind, "Any"))
    name = f"_Sequence[{name}] | {name}" if is_list and name != "Any" else name
    if argument.tensor:
        name += " | DataNode"
    return name if not argument.optional or name == "Any" else name + " | None"


def _of_readers(schema):
    """What a reader takes beside the arguments that DALI's has."""
    kind = READERS.get(schema.name)
    if kind is None or not issubclass(kind, Reader):
        return []
    parameters = inspect.signature(Reader.__init__).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def _parameters(schema):
    if schema.max_inputs > 8:
        yield "*inputs: DataNode"
    else:
        for i, name in enumerate(input_names(schema)):
            yield f"__{name.strip('_')}: DataNode" + ("" if i < schema.min_inputs else " | None = ...")
        yield "*"
    for argument in schema.arguments.values():
        if (schema.hidden or not argument.name.startswith("_")) and not argument.deprecation:
            yield f"{argument.name}: {_annotation(argument)}" + ("" if not argument.optional else " = ...")
    for name in _of_readers(schema):
        yield f"{name}: Any = ..."
    yield "device: str = ..."
    yield "name: str | None = ..."


def _result(schema):
    return "DataNode" if schema.outputs == 1 else "list[DataNode]"


def _function(schema):
    return f"def {schema.function_name}({', '.join(_parameters(schema))}) -> {_result(schema)}: ...\n"


def _class(schema):
    arguments = [text for text in _parameters(schema) if not text.startswith(("__", "*"))]
    return (
        f"class {schema.class_name}:\n"
        f"    def __init__(self, *, {', '.join(arguments)}) -> None: ...\n"
        f"    def __call__(self, *inputs: DataNode, **keywords: Any) -> {_result(schema)}: ...\n"
    )


def _math():
    lines = ["from typing import Any\n\nfrom .data_node import DataNode\n"]
    for name, function in inspect.getmembers(math, inspect.isfunction):
        if not name.startswith("_"):
            parameters = ", ".join(f"{parameter}: Any" for parameter in inspect.signature(function).parameters)
            lines.append(f"def {name}({parameters}) -> DataNode: ...\n")
    return "\n".join(lines)


def _dynamic():
    from ._dynamic import api, operators, readers

    def keywords(schema):
        own = [text for text in _parameters(schema) if not text.startswith(("__", "*", "device:", "name:", "seed:"))]
        replaced = (("DALIDataType", "DALIDataType | DType | type[Any]"), ("DataNode", "_Value"))
        for old, new in replaced:
            own = [text.replace(old, new) for text in own]
        return own

    return _stubs_dynamic.make(
        sorted((one for one in operators.offered() if not one.hidden), key=lambda schema: schema.name),
        sorted((schema for schema, _ in readers.classes().values()), key=lambda schema: schema.name),
        [path.partition(".")[2] for path in api.MORE if path.startswith("math.")],
        [name for name, value in api.NAMES.items() if isinstance(value, api.DType)],
        keywords,
    )


def make():
    """The stubs: path in the package > text."""
    modules = {}
    schemas = {**_schema.all_schemas(), **{name: kind.schema for name, kind in READERS.items()}}
    for schema in schemas.values():
        if schema.name != "ExternalSource":
            modules.setdefault(tuple(schema.modules), []).append(schema)
    files = {"math.pyi": _math(), "dynamic.pyi": _dynamic()}
    for path, members in modules.items():
        head = _HEAD.format(up="." * (len(path) + 2))
        members = sorted(members, key=lambda schema: schema.name)
        functions = [head, *map(_function, members)]
        classes = [head, *map(_class, members)]
        children = sorted(
            {other[len(path)] for other in modules if other[: len(path)] == path and len(other) > len(path)}
        )
        for text in (functions, classes):
            text += [f"from . import {child} as {child}\n" for child in children]
        if not path:
            functions.append(f"def external_source{_plain(fn.external_source)}: ...\n")
            functions.append(
                "def python_function(*inputs: DataNode, function: Any, num_outputs: int = ..., **keywords: Any) -> Any: ...\n"
            )
            classes.append(_OPS)
        files["/".join(("fn", *path, "__init__.pyi"))] = "\n".join(functions)
        files["/".join(("ops", *path, "__init__.pyi"))] = "\n".join(classes)
    return files


def _plain(function):
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    return str(inspect.Signature(parameters)) + " -> Any"
