"""Arithmetic on `DataNode`s: one operator for each Python operator, told by a text what to compute. Constants stay
numbers."""

import functools

from .. import _context
from .._tensors.enums import DALIDataType
from ..data_node import DataNode, _numpy_cannot
from .arguments import TypedValue
from .constants import Constant, ScalarConstant, int_like_types
from .namespaces import class_of
from .operator import Node, choose_device

_SYMBOLS = {
    "add": "+",
    "sub": "-",
    "plus": "(unary) +",
    "minus": "(unary) -",
    "mul": "*",
    "pow": "**",
    "div": "//",
    "fdiv": "/",
    "mod": "%",
    "bitand": "&",
    "bitor": "|",
    "bitxor": "^",
    "bitnot": "~",
    "lshift": "<<",
    "rshift": ">>",
    "eq": "==",
    "neq": "!=",
    "lt": "<",
    "leq": "<=",
    "gt": ">",
    "geq": ">=",
}
# Functions of numpy that operators compute.
_UFUNCS = {
    **dict(
        add="add",
        subtract="sub",
        multiply="mul",
        divide="fdiv",
        true_divide="fdiv",
        floor_divide="div",
        remainder="mod",
        power="pow",
    ),
    **dict(equal="eq", not_equal="neq", less="lt", less_equal="leq", greater="gt", greater_equal="geq"),
    **dict(
        bitwise_and="bitand",
        bitwise_or="bitor",
        bitwise_xor="bitxor",
        invert="bitnot",
        left_shift="lshift",
        right_shift="rshift",
    ),
    **dict(negative="minus", absolute="abs", minimum="min", maximum="max", float_power="fpow"),
    **{name: name for name in ("sqrt", "cbrt", "exp", "log", "log2", "log10", "fabs", "floor", "ceil")},
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2",
}
# Python's operators of two values, which have mirrored ones, and its comparisons.
BOTH = {"add": "add", "sub": "sub", "mul": "mul", "pow": "pow", "truediv": "fdiv", "floordiv": "div", "mod": "mod"}
BOTH |= {"and": "bitand", "or": "bitor", "xor": "bitxor", "lshift": "lshift", "rshift": "rshift"}
COMPARISONS = {"eq": "eq", "ne": "neq", "lt": "lt", "le": "leq", "gt": "gt", "ge": "geq"}
_NAMES = {DALIDataType.FLOAT: "float32"}


def _kind_of(value):
    """(is it an integer, the type's name in an expression)"""
    if isinstance(value, ScalarConstant):
        return value.dtype in int_like_types, _NAMES.get(value.dtype, value.dtype.name.lower())
    if type(value) is bool:
        return True, "bool"
    if type(value) is int:
        return True, "int32"
    if type(value) is float:
        return False, "float32"
    raise TypeError(
        f"a constant in arithmetic is a `{type(value).__name__}`, expected a bool, int, float or `{_context.package}.types.Constant`"
    )


def _has_node(value, seen):
    if id(value) in seen:
        return False
    seen.add(id(value))
    return any(
        isinstance(element, DataNode) or (isinstance(element, (list, tuple)) and _has_node(element, seen))
        for element in value
    )


def _refuse_nested(name, position, value):
    if isinstance(value, (list, tuple)) and _has_node(value, set()):
        raise TypeError(
            f"input {position} of operator `{name}` is a `{type(value).__name__}` that holds `DataNode`s, expected one `DataNode` or a constant; "
            "an operator with several outputs returns a sequence: take one of them"
        )


@functools.cache
def _function_of(name):
    """`apply` of one name, as a function of its own."""

    def function(*inputs):
        return apply(name, *inputs)

    function.__name__ = _SYMBOLS.get(name, name)
    return function


def apply(name, *inputs):
    """The operator that computes `name` of `inputs`, nodes and constants."""
    at_once = _context.at_once()
    if at_once is not None:
        return at_once.call(_function_of(name), inputs, {})
    symbol = _SYMBOLS.get(name, name)
    edges, integers, reals, description = [], [], [], []
    for position, value in enumerate(inputs):
        _refuse_nested(symbol, position, value)
        if not isinstance(value, (DataNode, ScalarConstant, int, float)):
            value = Constant(value)
        if isinstance(value, DataNode):
            description.append(f"&{len(edges)}")
            edges.append(value)
            continue
        is_integer, kind = _kind_of(value)
        numbers = integers if is_integer else reals
        description.append(f"${len(numbers)}:{kind}")
        numbers.append(value)
    device = choose_device(edges)
    package = _context.package
    operator = class_of("_ArithmeticGenericOp")(device=device, _module=f"{package}.math", _display_name=symbol)
    operator.values["expression_desc"] = TypedValue("string", False, [f"{name}({' '.join(description)})"])
    if integers:
        operator.values["integer_constants"] = TypedValue("int64", True, [_number(value, int) for value in integers])
    if reals:
        operator.values["real_constants"] = TypedValue("float", True, [_number(value, float) for value in reals])
    return Node(operator, edges, {}, {}).outputs[0]


def _number(value, kind):
    return kind(value.value if isinstance(value, ScalarConstant) else value)


def _array_ufunc(self, function, method, *inputs, **keywords):
    """What numpy calls for its functions of elements, and for operators of its arrays."""
    name = _UFUNCS.get(function.__name__)
    if name is None or method != "__call__" or keywords:
        raise TypeError(_numpy_cannot(function.__name__))
    return apply(name, *inputs)


def _add_operators():
    def plain(name):
        return lambda self, other: apply(name, self, other)

    def mirrored(name):
        return lambda self, other: apply(name, other, self)

    for python, name in (BOTH | COMPARISONS).items():
        setattr(DataNode, f"__{python}__", plain(name))
    for python, name in BOTH.items():
        setattr(DataNode, f"__r{python}__", mirrored(name))
    DataNode.__neg__ = lambda self: apply("minus", self)
    DataNode.__invert__ = lambda self: apply("bitnot", self)
    DataNode.__abs__ = lambda self: apply("abs", self)
    DataNode.__array_ufunc__ = _array_ufunc


_add_operators()
