"""DALI's place of what makes functions of classes."""

from ...._dynamic.operators import function_of


def build_fn_wrapper(op, fn_name=None, add_to_module=True):
    """The function of an operator's class."""
    return function_of(op, fn_name)
