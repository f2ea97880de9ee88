"""`nvidia.dali._autograph`"""

from .._conditionals.convert import is_converted, is_left_alone


def is_autograph_artifact(function):
    """Whether a definition with conditionals leaves a function as it is: it was rewritten already, or is marked."""
    return is_converted(function) or is_left_alone(function)
