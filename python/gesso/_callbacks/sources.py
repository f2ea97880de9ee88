"""Sources of `fn.external_source`: callables, iterables and generator functions as one kind of function. Knows no
pipelines."""

import functools
import inspect
import warnings
from enum import Enum

from .. import _context

_COUNT = "A `source` that is called takes nothing, or one argument: which sample or batch is wanted."


class SourceKind(Enum):
    """What a source is."""

    CALLABLE = 0
    ITERABLE = 1
    GENERATOR_FUNC = 2


class SourceDescription:
    """A source as the user gave it, and what it is."""

    def __init__(self, source, kind, has_inputs, cycle, batch_info=False):
        self.source = source
        self.kind = kind
        self.has_inputs = has_inputs
        self.cycle = cycle
        self.batch_info = batch_info

    def __str__(self):
        if self.kind is SourceKind.CALLABLE:
            return f"Callable source {'with' if self.has_inputs else 'without'} inputs: `{self.source}`"
        what = "Iterable (or iterator)" if self.kind is SourceKind.ITERABLE else "Generator function"
        return f"{what} source: `{self.source}` with cycle: `{self.cycle}`."


class _Cycle:
    """An iterator that begins again; with "raise" it says so first."""

    def __init__(self, make, mode):
        self._make = make
        self._says = mode == "raise"
        self._iterator = make()

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return next(self._iterator)
        except StopIteration:
            self._iterator = self._make()
            if self._says:
                raise
            return next(self._iterator)


def is_generator_function(value):
    """Whether calling `value` makes a generator."""
    if inspect.isgeneratorfunction(value):
        return True
    if isinstance(value, functools.partial):
        return is_generator_function(value.func)
    if not callable(value) or inspect.isfunction(value) or inspect.ismethod(value):
        return False
    call = value.__call__
    return call is not value and inspect.ismethod(call) and is_generator_function(call.__func__)


def _cycles(cycle):
    if cycle is None or cycle is False or cycle == "no":
        return False
    if cycle is True or cycle in ("quiet", "raise"):
        return True
    raise ValueError(
        f"""`cycle` is {cycle!r}. Expected one of
  - "no", False, None: the source is read once
  - "quiet", True: it begins anew at its end
  - "raise": StopIteration at each end, then it begins anew"""
    )


def accepted_arg_count(function):
    """0 or 1: how many arguments a callable source takes; TypeError for others."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)) and callable(function):
        function = function.__call__
    implicit = 0
    if inspect.ismethod(function):
        implicit, function = 1, function.__func__
    parameters = inspect.signature(function).parameters.values()
    wrong = {
        inspect.Parameter.VAR_POSITIONAL: "var-positional argument `*{}`",
        inspect.Parameter.VAR_KEYWORD: "var-keyword argument `**{}`",
        inspect.Parameter.KEYWORD_ONLY: "keyword-only argument `{}`",
    }
    for parameter in parameters:
        if parameter.kind in wrong:
            raise TypeError(f"{_COUNT} Found {wrong[parameter.kind].format(parameter.name)} which is not allowed.")
    count = len(parameters) - implicit
    if count not in (0, 1):
        raise TypeError(_context.add_words(f"{_COUNT} This one takes more."))
    return count


def get_callback_from_source(source, cycle, batch_info=False):
    """(a function that gives the next data, what the source is); (None, None) without a source."""
    if source is None:
        if cycle:
            raise ValueError("`cycle` is for a `source` that is iterated over, not for one that is called")
        return None, None
    if _cycles(cycle):
        if inspect.isgenerator(source):
            raise TypeError(
                "what a generator function returns cannot begin anew, so that `cycle` has no effect on it; pass the function itself as `source`."
            )
        if is_generator_function(source):
            description = SourceDescription(source, SourceKind.GENERATOR_FUNC, False, cycle)
            return _Cycle(lambda: iter(source()), cycle).__next__, description
        if _is_iterable(source):
            description = SourceDescription(source, SourceKind.ITERABLE, False, cycle)
            return _Cycle(lambda: iter(source), cycle).__next__, description
    elif is_generator_function(source):
        description = SourceDescription(source, SourceKind.GENERATOR_FUNC, False, cycle)
        return functools.partial(next, iter(source())), description
    elif _is_iterable(source):
        return functools.partial(next, iter(source)), SourceDescription(source, SourceKind.ITERABLE, False, cycle)
    if cycle is not None:
        raise ValueError("`cycle` is for a `source` that is iterated over")
    if not callable(source):
        raise TypeError(
            "`source` is neither called nor iterated over: expected a function, an iterable, or a generator function without arguments"
        )
    has_inputs = accepted_arg_count(source) > 0
    return source, SourceDescription(source, SourceKind.CALLABLE, has_inputs, cycle, batch_info)


def _is_iterable(source):
    try:
        iter(source)
    except TypeError as error:
        if "not iterable" not in str(error):
            raise
        return False
    return True


def warn_unused(group, unused):
    """Says which outputs of a source nobody reads."""
    text = str(group.source_desc.source)
    text = text if len(text) <= 103 else text[:100] + "..."
    where = ", ".join(str(i) for i in unused)
    which = f"outputs at the indices {where} are" if len(unused) > 1 else f"output at the index {where} is"
    warnings.warn(
        f"The external source node '{text}' produces {len(group.nodes)} outputs, but the {which} not used. A source that does not make "
        "them takes less time.",
        Warning,
        stacklevel=4,
    )
