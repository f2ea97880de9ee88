"""`pipeline_def`: a function that defines a graph becomes a function that makes pipelines."""

import functools
import inspect
from typing import Any

from ._conditionals import convert, is_left_alone, leave_alone
from ._conditionals.scopes import Conditions
from ._debug.pipeline import DebugPipeline
from .data_node import DataNode
from .pipeline import Pipeline

_OWN = ("enable_conditionals", "debug")


def _settings():
    return inspect.signature(Pipeline.__init__).parameters.keys() - {"self"}


def _split(function, keywords):
    """(settings of the pipeline, arguments of the function) of a call's keywords."""
    found = inspect.getfullargspec(function)
    if found.varkw is not None:
        raise TypeError(f"a definition of a graph takes `**{found.varkw}`, expected arguments with names")
    own, settings, arguments = {*found.args, *found.kwonlyargs}, {}, {}
    for name, value in keywords.items():
        if name in own:
            arguments[name] = value
            if name in _settings():
                print(f"`{name}` is an argument of the definition and of `Pipeline`; the definition gets it.")
        elif name in _settings():
            settings[name] = value
        elif name not in _OWN:
            raise TypeError(
                f"`{function.__name__}` got an unexpected argument `{name}`: it is neither an argument of the function nor of the pipeline."
            )
    return settings, arguments


def _define(pipeline, definition):
    """Runs the definition with the pipeline as the current one."""
    with pipeline:
        outputs = definition(pipeline)
        if outputs is None:
            outputs = ()
        pipeline.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))


def _begin_conditions(pipeline, arguments, keywords):
    conditions = pipeline.runner.definition.conditions = Conditions()
    for value in (*arguments, *keywords.values()):
        if isinstance(value, DataNode):
            conditions.register([value])


def pipeline_def(fn=None, *, enable_conditionals=False, **pipeline_kwargs) -> Any:
    """Makes a function that returns operators' results into one that returns a `Pipeline`.

    Used as `@pipeline_def` or `@pipeline_def(batch_size=..., ...)` with arguments of `Pipeline`. The new function takes
    the old one's arguments, and those of `Pipeline`, which come before the decorator's. With `enable_conditionals` the
    definition may use `if`, `and`, `or`, `not` and `a if b else c` on results of operators.

    With `debug=True` the definition runs for each batch, and its operators when they are called: their results can be
    printed, `result.get()` is the data, and a breakpoint stops between two operators.
    """
    debugs = pipeline_kwargs.pop("debug", False)

    def decorate(function):
        if is_left_alone(function):
            raise ValueError(
                "a definition of a pipeline is marked by `@do_not_convert`, expected only functions that it calls"
            )

        @functools.wraps(function)
        def create_pipeline(*args, **kwargs):
            on = kwargs.get("enable_conditionals", enable_conditionals)
            definition = convert(function) if on else function
            settings, arguments = _split(function, kwargs)

            def define(pipeline):
                if on:
                    _begin_conditions(pipeline, args, arguments)
                return definition(*args, **arguments)

            if kwargs.get("debug", debugs):
                return DebugPipeline(define, **{**pipeline_kwargs, **settings})
            pipeline = Pipeline(**{**pipeline_kwargs, **settings})
            _define(pipeline, define)
            return pipeline

        create_pipeline._is_pipeline_def = True
        return create_pipeline

    return decorate(fn) if fn else decorate


def do_not_convert(func=None):
    """Leaves a function as it is when a definition with conditionals calls it: inside of it `if` and the like are
    Python's own."""
    if func is None:
        return do_not_convert
    if getattr(func, "_is_pipeline_def", False):
        raise ValueError(
            "a definition of a pipeline is marked by `@do_not_convert`, expected only functions that it calls"
        )
    return leave_alone(func)
