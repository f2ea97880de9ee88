"""Which pipeline is being defined by this thread, and under which name the package was imported. Knows no operators."""

import copy
import threading

_local = threading.local()
# What messages call the package: `gesso`, or `nvidia.dali` once `gesso.as_dali` is in place.
package = "gesso"
# What adds to a message of the library; `gesso.as_dali` has DALI's words for some.
add_words = str
# What a function that a pipeline calls cannot do with it.
_NOT_INSIDE = (
    "build run schedule_run outputs share_outputs release_outputs add_sink set_outputs start_py_workers checkpoint "
    "executor_statistics"
).split()


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
    return None if current() is None else current().runner.definition.conditions


def at_once():
    """The calls of the current pipeline if it is in debug mode, where operators run when they are called; else None."""
    return None if current() is None else current().runner.calls


def stub():
    """A copy of the current pipeline that cannot be run: what operators see of it inside of a callback."""
    pipeline = copy.copy(current())
    # Of the parts it has the settings alone: it keeps no graph, which would keep the pipeline.
    pipeline.runner = type(pipeline.runner)(pipeline.runner.settings)

    def forbidden(*_, **__):
        raise RuntimeError("this cannot be called here")

    for name in _NOT_INSIDE:
        setattr(pipeline, name, forbidden)
    return pipeline


def shown(module):
    """The name of one of this package's modules, as messages have it."""
    return module.replace(".hidden", "").replace("gesso", package, 1)
