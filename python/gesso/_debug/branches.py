"""Splits and merges batches by a predicate, which has a value for each sample."""

import numpy as np

from .. import _context
from .._tensors.enums import DALIDataType
from .._tensors.tensor_list import TensorListCPU


def _flags(predicate):
    values = predicate.arrays
    for value in values:
        if value.ndim:
            raise RuntimeError(
                _context.add_words(f"a condition of shape {list(value.shape)}, expected a scalar for each sample")
            )
    return [bool(value) for value in values]


def _part(batch, which):
    infos = batch._infos
    made = type(batch)._of(
        [batch._data[i] for i in which], batch.layout(), batch.dtype, [infos[i] for i in which] if infos else None
    )
    made._ndim = batch.ndim()
    return made


def split(batch, predicate):
    """The samples where the predicate is true, and those where it is not."""
    flags = _flags(predicate)
    if len(flags) != len(batch):
        raise RuntimeError(f"a predicate of {len(flags)} samples splits a batch of {len(batch)}, expected as many")
    return [_part(batch, [i for i, flag in enumerate(flags) if flag is wanted]) for wanted in (True, False)]


def merge(first, second, predicate):
    """The batch whose samples come from `first` where the predicate is true, else from `second`."""
    flags = _flags(predicate)
    found, wanted = (len(first), len(second)), (sum(flags), len(flags) - sum(flags))
    if found != wanted:
        raise RuntimeError(f"batches of {found} samples are merged, and the predicate has {wanted} for each")
    parts = [part for part in (first, second) if len(part)]
    if not parts:
        return first
    facts = {(part.dtype, part.ndim(), part.layout(), type(part)) for part in parts}
    if len(facts) > 1:
        (dtype, ndim, layout, _), (other_dtype, other_ndim, other_layout, _) = [
            (_name(part.dtype), part.ndim(), part.layout(), None) for part in parts
        ]
        raise RuntimeError(
            _context.add_words(
                f"operator `_conditional__Merge` has branches that differ: one makes {dtype} of {ndim} dimensions with layout "
                f"`{layout}`, the other {other_dtype} of {other_ndim} dimensions with layout `{other_layout}`"
            )
        )
    sources = {True: iter(range(len(first))), False: iter(range(len(second)))}
    chosen = [((first if flag else second), next(sources[flag])) for flag in flags]
    infos = [(batch._infos[i] if batch._infos else "") for batch, i in chosen]
    kind = type(parts[0])
    return kind._of(
        [batch._data[i] for batch, i in chosen], parts[0].layout(), parts[0].dtype, infos if any(infos) else None
    )


def _name(dtype):
    return np.dtype(bool).name if dtype == DALIDataType.BOOL else dtype.name.lower()


def as_batch(data):
    """A batch as a list of tensors, whatever it was given as."""
    return data if isinstance(data, TensorListCPU) else TensorListCPU(data)
