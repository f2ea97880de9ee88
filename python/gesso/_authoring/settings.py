"""Settings of a pipeline as files have them, and checks of what outputs are declared to be."""

import operator

from .._tensors.enums import DALIDataType

_PIPELINED, _ASYNC, _SEPARATED, _DYNAMIC = 1, 2, 4, 8
_AFFINITY = 1
_CONCURRENCY_MASK, _STREAM_MASK = 0xE, 0x70
_DEFAULT_CONCURRENCY = 4


def integer(name, value):
    """An argument of the pipeline that is an integer or None; TypeError for others."""
    if value is None:
        return value
    try:
        # A truth value is a number, too, but files tell them apart.
        return int(operator.index(value))
    except TypeError:
        found = f"{value!r} of type `{type(value).__name__}`"
        raise TypeError(f"Argument `{name}` of the pipeline: expected an integer, found {found}.") from None


def count_of_multiprocessors(value):
    """The argument `gpu_multiprocessors` of the pipeline."""
    count = integer("gpu_multiprocessors", value)
    if count is not None and count < 1:
        raise ValueError(f"`gpu_multiprocessors` must be at least 1, or None for all, got {count}.")
    return count


def list_of_formats(value):
    """The argument `formats` of the pipeline, as the library takes it."""
    if value is None or isinstance(value, str):
        return value
    names = list(value)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"`formats` must be a text or a list of texts, got {value!r}.")
    return ",".join(names)


def executor_type(pipelined, is_async, separated, dynamic):
    """The bits of the executor that was asked for."""
    flags = ((pipelined, _PIPELINED), (is_async, _ASYNC), (separated, _SEPARATED), (dynamic, _DYNAMIC))
    return sum(bit for on, bit in flags if on)


def executor_flags(set_affinity, stream_policy, concurrency):
    """The bits of wishes for it."""
    flags = _AFFINITY if set_affinity else 0
    if stream_policy is not None:
        flags |= stream_policy.value & _STREAM_MASK
    return flags | ((concurrency.value & _CONCURRENCY_MASK) if concurrency is not None else _DEFAULT_CONCURRENCY)


def wishes(flags):
    """(set_affinity, bits of the stream policy, bits of the concurrency) of what `executor_flags` made."""
    return bool(flags & _AFFINITY), flags & _STREAM_MASK, flags & _CONCURRENCY_MASK


def _each(value):
    """(values, where they stand in a message)"""
    return (value, " in the list") if isinstance(value, (list, tuple)) else ((value,), "")


def check_output_declarations(dtype, ndim, layout):
    """Raises unless the declarations are what they can be."""
    values, where = _each(dtype)
    for value in values:
        if not isinstance(value, (DALIDataType, type(None))):
            found = f"Found type {type(value)}{where}." if where else f"Found type: {type(value)}."
            raise TypeError(
                f"`output_dtype` must be either a data type, a list of them with None where it is not known, or None. {found}"
            )
        if value == DALIDataType.NO_TYPE:
            found = f"Found {value}{where}." if where else f"Found value: {value}"
            raise ValueError(f"`output_dtype` can't be a types.NO_TYPE. {found}")
    values, where = _each(ndim)
    for value in values:
        if not isinstance(value, (int, type(None))):
            found = f"Found type {type(value)}{where}." if where else f"Found type: {type(value)}."
            raise TypeError(
                f"`output_ndim` must be either a number, a list of them with None where it is not known, or None. {found}"
            )
        if value is not None and value < 0:
            raise ValueError(f"`output_ndim` must be non-negative. Found{'' if where else ':'} {value}{where}.")
    values, where = _each(layout)
    for value in values:
        if not isinstance(value, (str, type(None))):
            found = f"Found type {type(value)}{where}." if where else f"Found type: {type(value)}."
            raise TypeError(
                f"`output_layout` must be either a text, a list of them with None where it is not known, or None. {found}"
            )
