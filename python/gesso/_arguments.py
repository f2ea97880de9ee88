"""Arguments of operators: from Python values to the typed values that files have. Knows no pipelines."""

import warnings

from . import types
from ._enums import DALIDataType, DALIImageType, DALIInterpType

_ENUMS = {
    "IMAGE_TYPE": DALIImageType,
    "DATA_TYPE": DALIDataType,
    "_DATA_TYPE_VEC": DALIDataType,
    "INTERP_TYPE": DALIInterpType,
}
_CONVERTERS = {"int64": int, "float": float, "bool": bool, "string": str, "object": lambda value: value}


class TypedValue:
    """A value with its type in files: `int64`, `float`, `bool` or `string`; `values` is a list if `is_list`."""

    __slots__ = ("kind", "is_list", "values")

    def __init__(self, kind, is_list, values):
        self.kind = kind
        self.is_list = is_list
        self.values = values

    @property
    def value(self):
        """The list, or the one value."""
        return list(self.values) if self.is_list else self.values[0]


def type_name(argument):
    """What an argument takes, for people."""
    kind, is_list = argument.kind
    enum = _ENUMS.get(argument.type)
    names = {"int64": "int", "string": "str"}
    name = f":class:`nvidia.dali.types.{enum.__name__}`" if enum else names.get(kind, kind)
    if argument.type in ("TENSOR_LAYOUT", "_TENSOR_LAYOUT_VEC"):
        name = ":ref:`layout str<layout_str_doc>`"
    return f"{name} or list of {name}" if is_list else name


def _convert_one(argument, kind, value):
    enum = _ENUMS.get(argument.type)
    if enum is not None:
        return int(enum(int(value)))
    return _CONVERTERS[kind](value)


def convert(argument, value):
    """The typed value of `argument`; raises what Python's own conversion raises."""
    kind, is_list = argument.kind
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "size", 1) == 1:
        value = item()
    if isinstance(value, (types.DALIDataType, types.DALIImageType, types.DALIInterpType)) and kind == "int64":
        value = int(value)
    if is_list:
        values = value if isinstance(value, (list, tuple)) else [value]
        return TypedValue(kind, True, [_convert_one(argument, kind, element) for element in values])
    return TypedValue(kind, False, [_convert_one(argument, kind, value)])


def is_tensor(name, value, node_type):
    """Whether a keyword's value is a tensor for each sample and not one value for all."""
    if name in ("device", "ndim"):
        return False
    if isinstance(value, node_type):
        return True
    if isinstance(value, (str, list, tuple, types.ScalarConstant)):
        return False
    return not types._is_scalar_value(value)


def separate(keywords, node_type):
    """(scalars, tensors) of keyword arguments; those that are None are left out."""
    scalars, tensors = {}, {}
    for name, value in keywords.items():
        if value is None:
            continue
        if is_tensor(name, value, node_type):
            tensors[name] = value
        else:
            scalars[name] = value.value if isinstance(value, types.ScalarConstant) else value
    return scalars, tensors


def rename_deprecated(schema, keywords, operator_name):
    """Follows arguments that have new names, with a warning."""
    for name in list(keywords):
        argument = schema.arguments.get(name)
        if argument is None or not argument.deprecation:
            continue
        new_name = argument.deprecation.get("renamed_to")
        if new_name:
            if new_name in keywords:
                raise TypeError(
                    f"Operator `{operator_name}` got an unexpected '{name}' deprecated argument when '{new_name}' was already provided"
                )
            keywords[new_name] = keywords.pop(name)
        elif argument.deprecation.get("removed"):
            del keywords[name]
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn(argument.deprecation.get("msg", f"The argument `{name}` is deprecated."), DeprecationWarning, stacklevel=2)
    return keywords


def lookup(schema, name):
    """The argument `name`; KeyError if the operator has none."""
    argument = schema.arguments.get(name)
    if argument is None:
        raise KeyError(f'Argument "{name}" is not defined for operator "{schema.name}".')
    return argument
