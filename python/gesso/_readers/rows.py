"""What readers of tables have in common: packages that are installed by those who need them, and files that must fit together."""

import importlib


def package(name, extra):
    """A package that this one does not bring."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise RuntimeError(
            f"`fn.readers.{extra}` needs the package `{name.partition('.')[0]}`: `pip install gesso[{extra}]` brings it."
        ) from None


def require_same(names, kinds, own, first, path):
    """Raises unless a file's columns have the types that those of the first file have."""
    for name, kind, other in zip(names, kinds, own):
        if kind != other:
            raise RuntimeError(f"`{name}` has the type {other} in {path}, but {kind} in {first}.")
