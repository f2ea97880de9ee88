"""Which pipeline is being defined by this thread, and under which name the package was imported. Knows no operators."""

import threading

_local = threading.local()
# What messages call the package: `gesso`, or `nvidia.dali` once `gesso.as_dali` is in place.
package = "gesso"
# What adds to a message of the library; `gesso.as_dali` has DALI's words for some.
add_words = str


def current():
    """The pipeline that operators are added to, or None."""
    return getattr(_local, "current", None)


def push(pipeline):
    """Makes `pipeline` the current one; returns the one before."""
    previous = current()
    stack = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    stack.append(previous)
    _local.current = pipeline
    return previous


def pop():
    """Goes back to the pipeline before."""
    _local.current = _local.stack.pop()


def conditions():
    """The branches that the current pipeline's definition is in, or None if it has no conditionals."""
    return getattr(current(), "_conditions", None)


def shown(module):
    """The name of one of this package's modules, as messages have it."""
    return module.replace(".hidden", "").replace("gesso", package, 1)
