"""What operators there are: their arguments, inputs and outputs. The library says so; modules, signatures and checks
come from here."""

import json
from dataclasses import dataclass, field

from .._native import library
from . import naming

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
        return naming.split(self.name)[0]

    @property
    def class_name(self):
        """Its name in `ops`."""
        return naming.split(self.name)[1]

    @property
    def function_name(self):
        """Its name in `fn`."""
        return naming.snake_case(self.class_name)

    @property
    def target(self):
        """The name that files have."""
        return self.alias or self.name


# Kinds of arguments in the library's list > their types.
_TYPES = {
    "bool": "BOOL",
    "int": "INT64",
    "float": "FLOAT",
    "string": "STRING",
    "ints": "_INT64_VEC",
    "floats": "_FLOAT_VEC",
    "strings": "_STRING_VEC",
    "dtype": "DATA_TYPE",
    "image_type": "IMAGE_TYPE",
    "interp_type": "INTERP_TYPE",
    "layout": "TENSOR_LAYOUT",
    "any": "PYTHON_OBJECT",
}
# Arguments that were called otherwise, and those that mean nothing any more.
_RENAMED = {"output_dtype": "dtype", "type": "dtype"}
_REMOVED = ("image_type",)
# Arguments that the package itself gives to operators.
_INTERNAL = {
    "conditional__Split": (Argument("_if_stmt", "BOOL"),),
    "BatchPermutation": (Argument("_scope", "INT64", tensor=True),),
}


def _deprecation(entry, known):
    if not entry["deprecated"]:
        return None
    name = entry["name"]
    if name in _RENAMED and _RENAMED[name] in known:
        new = _RENAMED[name]
        text = f"The argument `{name}` is a deprecated alias for `{new}`. Use `{new}` instead."
        return {"msg": text, "renamed_to": new, "removed": False}
    if name in _REMOVED:
        text = f"The argument `{name}` is no longer used and will be removed in a future release."
        return {"msg": text, "renamed_to": "", "removed": True}
    text = f"The argument `{name}` is now deprecated and its usage is discouraged."
    return {"msg": text, "renamed_to": "", "removed": False}


def _arguments(entry):
    known = {argument["name"] for argument in entry["arguments"]}
    arguments = {}
    for argument in entry["arguments"]:
        arguments[argument["name"]] = Argument(
            argument["name"],
            _TYPES[argument["kind"]],
            argument["default"],
            optional=not argument["required"],
            tensor=argument["tensor"],
            doc=argument["doc"] + (f" ({argument['computed']})" if argument["computed"] else ""),
            deprecation=_deprecation(argument, known),
        )
    for argument in (*_INTERNAL.get(entry["name"], ()), Argument("preserve", "BOOL", False), _HINT):
        arguments.setdefault(argument.name, argument)
    return arguments


_HINT = Argument("bytes_per_sample_hint", "_INT64_VEC")


def _spelled(entry):
    """(name, newer name or nothing) of each of an operator's names."""
    names = [spelling["schema"] for spelling in entry["spellings"]]
    newest = next((name for name in names if entry["hidden"] and name.startswith("_")), names[0])
    for name in names:
        if name == newest or name.startswith("_"):
            yield name, ""
        elif not entry["hidden"]:
            yield name, newest


def _of_library():
    schemas = {}
    for entry in json.loads(library.operators_json()):
        arguments, (fewest, most) = _arguments(entry), entry["inputs"]
        for name, newest in _spelled(entry):
            schemas[name] = Schema(
                name,
                tuple(entry["devices"]),
                fewest,
                most,
                entry["outputs"] or 1,
                arguments,
                doc=entry["doc"],
                hidden=entry["hidden"] or name.startswith("_"),
                random=entry["random"],
                replacement=newest,
                deprecation="It is an older name." if newest else "",
            )
    return schemas


def _external_source():
    own = {
        "blocking": Argument("blocking", "BOOL", False),
        "dtype": Argument("dtype", "DATA_TYPE"),
        "layout": Argument("layout", "TENSOR_LAYOUT"),
        "ndim": Argument("ndim", "INT64"),
        "no_copy": Argument("no_copy", "BOOL", False),
        "repeat_last": Argument("repeat_last", "BOOL", False),
        "preserve": Argument("preserve", "BOOL", False),
        "bytes_per_sample_hint": _HINT,
    }
    return Schema("ExternalSource", ("cpu", "gpu"), 0, 0, 1, own, doc="An input of the pipeline.")


_schemas = None


def all_schemas():
    """Every operator by its name in files."""
    global _schemas
    if _schemas is None:
        _schemas = {**_of_library(), "ExternalSource": _external_source()}
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
