"""What readers of tables have in common: packages that are installed by those who need them, and files that must fit
together."""

import numpy as np

from .. import _extras

# Rows of a data set: their order is a list in memory.
_MOST = 1 << 28


def package(name, extra):
    """A package that this one does not bring."""
    return _extras.needed(name, f"`fn.readers.{extra}`", extra, RuntimeError)


def ends(counts):
    """Where the rows of each part end, in the rows of all."""
    found = np.cumsum(counts, dtype=np.float64)
    if len(found) and found[-1] > _MOST:
        raise RuntimeError(f"The files say that they have {found[-1]:.0f} rows, expected at most {_MOST}.")
    return found.astype(np.int64)


def require_same(names, kinds, own, first, path):
    """Raises unless a file's columns have the types that those of the first file have."""
    for name, kind, other in zip(names, kinds, own):
        if kind != other:
            raise RuntimeError(f"`{name}` has the type {other} in {path}, but {kind} in {first}.")
