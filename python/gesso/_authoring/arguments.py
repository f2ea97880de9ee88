"""Arguments of operators: from Python values to the typed values that files have. Knows no pipelines."""

import difflib
import os

import numpy as np

from .._tensors.arrays import is_scalar_value
from .._tensors.enums import DALIDataType, DALIImageType, DALIInterpType, to_dali_type
from . import call_site
from .constants import ScalarConstant

ENUMS = {
    "IMAGE_TYPE": DALIImageType,
    "DATA_TYPE": DALIDataType,
    "_DATA_TYPE_VEC": DALIDataType,
    "INTERP_TYPE": DALIInterpType,
}
_INT64 = range(-(1 << 63), 1 << 63)


def _integer(value):
    number = int(value)
    if isinstance(value, float) and number != value:
        call_site.warn(f"{value} stands for a whole number and is cut to {number}.", UserWarning)
    if number not in _INT64:
        raise ValueError("it does not fit 64 bits")
    return number


def _truth(value):
    if isinstance(value, (str, bytes)):
        raise TypeError("text is neither true nor false")
    return bool(value)


def _text(value):
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytes):
        return os.fsdecode(value)
    if not isinstance(value, str):
        raise TypeError("it is no text")
    return str(value)


_CONVERTERS = {"int64": _integer, "float": float, "bool": _truth, "string": _text, "object": lambda value: value}


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
    enum = ENUMS.get(argument.type)
    names = {"int64": "int", "string": "str"}
    name = f"types.{enum.__name__}" if enum else names.get(kind, kind)
    if argument.type in ("TENSOR_LAYOUT", "_TENSOR_LAYOUT_VEC"):
        name = "layout str"
    return f"{name} or list of {name}" if is_list else name


def expected(argument):
    """What an argument takes, for a message."""
    kind, is_list = argument.kind
    enum = ENUMS.get(argument.type)
    name = {"int64": "an integer", "float": "a number", "bool": "True or False", "string": "a text"}.get(kind, kind)
    if enum is not None:
        name = f"a `types.{enum.__name__}`, such as `types.{next(iter(enum)).name if enum is not DALIDataType else 'FLOAT'}`"
    return f"{name} or a list of them" if is_list else name


def _convert_one(argument, kind, value):
    enum = ENUMS.get(argument.type)
    if enum is not None:
        return int(enum(_number_of(argument, value)))
    return _CONVERTERS[kind](value)


def _number_of(argument, value):
    """The number of an enum's value. An element type may be one of numpy's or PyTorch's."""
    is_dtype = argument.type in ("DATA_TYPE", "_DATA_TYPE_VEC")
    if is_dtype and _is_framework_type(value):
        named = _as_dtype(value)
        if named is None:
            raise TypeError("tensors have no elements of this type")
        return int(named)
    try:
        return int(value)
    except (TypeError, ValueError):
        named = _as_dtype(value) if is_dtype else None
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"write `types.{named.name}`" if named is not None else "it is none of these") from None


def _is_framework_type(value):
    """Whether it is an element type of numpy, JAX or PyTorch. Python's own are not: `float` has 64 bits to some and 32
    to others."""
    if isinstance(value, type):
        return issubclass(value, np.generic)
    return isinstance(value, np.dtype) or type(value).__module__ == "torch" and type(value).__name__ == "dtype"


def _as_dtype(value):
    """The type that numpy or PyTorch means by `value`, or None."""
    try:
        return to_dali_type(value)
    except TypeError:
        return None


def convert(argument, value, operator):
    """The typed value of `argument` of `operator`; raises TypeError or ValueError, as Python's own conversion does."""
    try:
        return _converted(argument, value)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        found = repr(value)
        found = found if len(found) <= 80 else found[:77] + "..."
        raise kind(
            f"Argument `{argument.name}` of operator `{operator}`: expected {expected(argument)}, found {found} of type "
            f"`{type(value).__name__}`: {error}."
        ) from None


def _converted(argument, value):
    kind, is_list = argument.kind
    item = getattr(value, "item", None)
    if item is not None and not isinstance(value, type) and getattr(value, "size", 1) == 1:
        value = item()
    if isinstance(value, (DALIDataType, DALIImageType, DALIInterpType)) and kind == "int64":
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
    # A type of numpy's is none of ours, and no data.
    if isinstance(value, (str, list, tuple, type, np.dtype, ScalarConstant)):
        return False
    return not is_scalar_value(value)


def separate(keywords, node_type):
    """(scalars, tensors) of keyword arguments; those that are None are left out."""
    scalars, tensors = {}, {}
    for name, value in keywords.items():
        if value is None:
            continue
        if is_tensor(name, value, node_type):
            tensors[name] = value
        else:
            scalars[name] = value.value if isinstance(value, ScalarConstant) else value
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
        call_site.warn(argument.deprecation.get("msg", f"The argument `{name}` is deprecated."), DeprecationWarning)
    return keywords


def lookup(schema, name):
    """The argument `name`; KeyError if the operator has none."""
    argument = schema.arguments.get(name)
    if argument is None:
        near = difflib.get_close_matches(name, [known for known in schema.arguments if not known.startswith("_")], n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise KeyError(f'Argument "{name}" is not defined for operator "{schema.name}".{hint}')
    return argument
