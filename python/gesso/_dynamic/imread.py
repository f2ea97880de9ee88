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


def made(read, decode):
    """`imread` of the operators that read a file and decode a picture."""

    def imread(filepaths, /, *, device="cpu", **arguments):
        """The picture in a file, or a batch of pictures of a list of names; arguments are those of `decoders.image`.
        Names may be tensors of bytes."""
        if isinstance(filepaths, (list, tuple)):
            names = batch([_name(path) for path in filepaths])
        else:
            names = _name(filepaths)
        return decode(read(names), device=device, **arguments)

    return imread
