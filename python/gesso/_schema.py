"""What operators there are: their arguments, inputs and outputs. The library says so; modules, signatures and checks come from here."""

import json
import os
from dataclasses import dataclass, field

from . import _library, _naming

# An argument's type > (type in files, whether it is a list).
KINDS = {
    "BOOL": ("bool", False),
    "FLOAT": ("float", False),
    "STRING": ("string", False),
    "TENSOR_LAYOUT": ("string", False),
    "PYTHON_OBJECT": ("object", False),
    "_BOOL_VEC": ("bool", True),
    "_INT32_VEC": ("int64", True),
    "_INT64_VEC": ("int64", True),
    "_FLOAT_VEC": ("float", True),
    "_STRING_VEC": ("string", True),
    "_TENSOR_LAYOUT_VEC": ("string", True),
    "_DATA_TYPE_VEC": ("int64", True),
    "_FEATURE_DICT": ("object", False),
    "_FEATURE_VEC": ("object", True),
}
# Arguments that every operator has.
COMMON = ("device", "name", "preserve", "bytes_per_sample_hint")


@dataclass
class Argument:
    """An argument of an operator."""

    name: str
    type: str
    default: object = None
    optional: bool = True
    tensor: bool = False
    doc: str = ""
    deprecation: dict = None

    @property
    def kind(self):
        """Its type in files, and whether it is a list."""
        return KINDS.get(self.type, ("int64", False))


@dataclass
class Schema:
    """An operator."""

    name: str
    devices: tuple
    min_inputs: int
    max_inputs: int
    outputs: int
    arguments: dict
    doc: str = ""
    hidden: bool = False
    random: bool = False
    keep: bool = False
    replacement: str = ""
    deprecation: str = ""
    alias: str = ""
    input_names: tuple = ()
    input_devices: dict = field(default_factory=dict)

    @property
    def modules(self):
        """The modules that it is in, outermost first."""
        return _naming.split(self.name)[0]

    @property
    def class_name(self):
        """Its name in `ops`."""
        return _naming.split(self.name)[1]

    @property
    def function_name(self):
        """Its name in `fn`."""
        return _naming.snake_case(self.class_name)

    @property
    def target(self):
        """The name that files have."""
        return self.alias or self.name


def _from_library(entry):
    arguments = {}
    for argument in entry["arguments"]:
        arguments[argument["name"]] = Argument(
            argument["name"],
            argument["type"],
            argument.get("default"),
            argument.get("optional", True),
            argument.get("tensor", False),
            argument.get("doc", ""),
            argument.get("deprecation"),
        )
    return Schema(
        entry["name"],
        tuple(entry["devices"]),
        entry["min_inputs"],
        entry["max_inputs"],
        entry.get("outputs", 1),
        arguments,
        doc=entry.get("doc", ""),
        hidden=entry.get("hidden", False),
        random=entry.get("random", "seed" in arguments),
        keep=entry.get("keep", False),
        replacement=entry.get("replacement", ""),
        deprecation=entry.get("deprecation", ""),
        alias=entry.get("alias", ""),
        input_names=tuple(entry.get("input_names", ())),
        input_devices=entry.get("input_devices", {}),
    )


def _read():
    development = os.environ.get("GESSO_SCHEMAS")
    if development:
        with open(development, encoding="utf-8") as file:
            entries = json.load(file)
    else:
        entries = json.loads(_library.take_string("gesso_operators_json"))
    return {entry["name"]: _from_library(entry) for entry in entries}


_schemas = None


def all_schemas():
    """Every operator by its name in files."""
    global _schemas
    if _schemas is None:
        _schemas = _read()
    return _schemas


def find(name):
    """The operator of that name, or None. An alias gives what it stands for."""
    schema = all_schemas().get(name)
    return all_schemas().get(schema.alias, schema) if schema is not None and schema.alias else schema


def reload():
    """Asks the library anew; for operators that were loaded or registered since."""
    global _schemas
    _schemas = None
    return all_schemas()
