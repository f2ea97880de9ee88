"""Functions on `DataNode`s, element by element."""

import sys as _sys

from ._authoring.arithmetic import apply as _apply

_UNARY = {
    "sqrt": "Square root",
    "rsqrt": "1 / square root",
    "cbrt": "Cubic root",
    "exp": "e to the power",
    "log": "Natural logarithm",
    "log2": "Logarithm to base 2",
    "log10": "Logarithm to base 10",
    "abs": "Absolute value",
    "fabs": "Absolute value, as a float",
    "floor": "Rounded down",
    "ceil": "Rounded up",
    "sin": "Sine",
    "cos": "Cosine",
    "tan": "Tangent",
    "asin": "Inverse sine",
    "acos": "Inverse cosine",
    "atan": "Inverse tangent",
    "sinh": "Hyperbolic sine",
    "cosh": "Hyperbolic cosine",
    "tanh": "Hyperbolic tangent",
    "asinh": "Inverse hyperbolic sine",
    "acosh": "Inverse hyperbolic cosine",
    "atanh": "Inverse hyperbolic tangent",
}
_BINARY = {
    "min": "The smaller of two",
    "max": "The larger of two",
    "pow": "`x` to the power of `y`",
    "fpow": "`x` to the power of `y`, as a float",
    "atan2": "Angle of the point (`y`, `x`)",
}


def _unary(name, doc):
    def function(input):
        return _apply(name, input)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc + ", element by element."
    return function


def _binary(name, doc):

    def function(left, right):
        return _apply(name, left, right)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc}, element by element."
    return function


for _name, _doc in _UNARY.items():
    setattr(_sys.modules[__name__], _name, _unary(_name, _doc))
for _name, _doc in _BINARY.items():
    setattr(_sys.modules[__name__], _name, _binary(_name, _doc))


def clamp(value, lo, hi):
    """`value`, but at least `lo` and at most `hi`, element by element."""
    return _apply("clamp", value, lo, hi)
