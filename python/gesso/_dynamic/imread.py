"""`imread`: files as pictures."""

import os

import numpy as np

from . import batching
from .batch import batch
from .tensor import tensor


def _name(path):
    if batching.is_ours(path):
        return path
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"expected the name of a file, found a `{type(path).__name__}`")
    return tensor(np.frombuffer(os.fsencode(path), np.uint8).copy())


def imread(filepaths, /, *, device="cpu", **arguments):
    """The picture in a file, or, of a list of names, a batch of pictures; arguments are those of `decoders.image`. Names
    may be tensors of bytes."""
    from . import api

    if isinstance(filepaths, (list, tuple)):
        names = batch([_name(path) for path in filepaths])
    else:
        names = _name(filepaths)
    files = api.FUNCTIONS["io.file.read"](names)
    return api.FUNCTIONS["decoders.image"](files, device=device, **arguments)
