"""What operators do with tensors and batches alike: sizes, repeating a tensor for each sample, results."""

import operator

from .._tensors.tensor_list import TensorListCPU
from . import storage as _storage

# Whether it is a batch > `Batch` or `Tensor`, which say so themselves.
KINDS = {}
# Samples that a batch may have, as the library has it.
MOST_SAMPLES = 65536


def is_ours(value):
    """Whether it is a `Tensor` or a `Batch`."""
    return isinstance(value, _Ours)


class _Ours:
    """Base of `Tensor` and `Batch`, which must not know each other."""

    _is_batch = False


def checked_size(size):
    """A `batch_size` that was given; None if there is none."""
    if size is None:
        return None
    try:
        number = operator.index(size)
    except TypeError:
        raise TypeError(f"`batch_size`: expected a whole number or None, found {size!r}"[:200]) from None
    if not 1 <= number <= MOST_SAMPLES:
        raise ValueError(f"`batch_size`: expected a whole number from 1 to {MOST_SAMPLES}, found {number}")
    return number


def size_of(values):
    """Samples of the batches among `values`; None if there is none."""
    size = None
    for value in values:
        if isinstance(value, _Ours):
            own = value.batch_size if value._is_batch else None
        else:
            own = len(value) if isinstance(value, TensorListCPU) else None
        if own is None:
            continue
        if size is not None and own != size:
            raise ValueError(f"The batches have different numbers of samples: Inconsistent batch size: {size} != {own}")
        size = own
    return size


def batch_storage(value, size):
    """A value's data as a list of `size` samples: a tensor's is repeated."""
    stored = value.evaluate()._storage
    return stored if isinstance(stored, TensorListCPU) else _storage.listed(stored, size or 1)


def results(outputs, size):
    """Outputs of a plan as what an invocation gives: lists, or their only samples."""
    return tuple(outputs) if size is not None else tuple(_storage.sample(output, 0) for output in outputs)


def outputs_of(invocation, is_external):
    """The outputs of an invocation, which runs as the mode says."""
    invocation.apply_eval_policy(is_external)
    made = [KINDS[invocation.is_batch]._of_result(result) for result in invocation]
    if not invocation.is_waiting:
        for value, stored in zip(made, invocation.values()):
            value._storage = stored
    return made
