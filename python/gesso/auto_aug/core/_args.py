"""Which keyword arguments an augmentation's function takes."""

import inspect

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class MissingArgException(Exception):
    """An augmentation was called without an argument that it needs."""

    def __init__(self, message, augmentation, missing_args):
        super().__init__(message)
        self.augmentation = augmentation
        self.missing_args = missing_args


class UnusedArgException(Exception):
    """An argument was given that no augmentation takes."""

    def __init__(self, message, unused_args):
        super().__init__(message)
        self.unused_args = unused_args


def _keywords(function, skip):
    parameters = enumerate(inspect.signature(function).parameters.values())
    return [p for i, p in parameters if p.kind in _KEYWORD and (i >= skip or p.kind not in _POSITIONAL)]


def count_positional(function):
    """How many arguments a function takes by position."""
    return sum(p.kind in _POSITIONAL for p in inspect.signature(function).parameters.values())


def accepted(function, keywords, skip=2):
    """Those of `keywords` that a function takes behind the first `skip` arguments."""
    names = {p.name for p in _keywords(function, skip)}
    return {name: value for name, value in keywords.items() if name in names}


def missing(function, keywords, skip=2):
    """Names of arguments without a default that `keywords` do not have."""
    return [
        p.name for p in _keywords(function, skip) if p.default is inspect.Parameter.empty and p.name not in keywords
    ]


def forbid_unused_kwargs(augmentations, kwargs, call_name):
    """Raises if one of `kwargs` is taken by none of the augmentations."""
    used = {name for augmentation in augmentations for name in accepted(augmentation.op, kwargs)}
    unused = [name for name in kwargs if name not in used]
    if unused:
        subject, verb = ("kwarg", "is") if len(unused) == 1 else ("kwargs", "are")
        raise UnusedArgException(
            f"The {subject} `{', '.join(unused)}` {verb} not used by any of the augmentations, in `{call_name}`.",
            unused_args=unused,
        )
