"""Checks of fed data: against what an input was declared to be, and against the batch before."""

from .._tensors.enums import DALIDataType

_NAMES = {DALIDataType.FLOAT: "float", DALIDataType.FLOAT64: "double"}


def name_of(dtype):
    """A type as messages have it."""
    return _NAMES.get(dtype, dtype.name.lower())


def check_consistent(declared):
    """Raises if an input's layout and rank disagree."""
    ndim, layout = declared["ndim"], declared["layout"]
    if ndim is not None and layout and len(layout) != ndim:
        raise RuntimeError(
            "Number of dimensions in the provided layout does not match the ndim argument. The arguments provided:\n"
            f' ndim = {ndim},\n layout: "{layout}".'
        )


def check_declared(name, declared, batch):
    """Raises unless a batch is what its input was declared to be; gives it the declared layout."""
    dtype, ndim, layout = declared["dtype"], declared["ndim"], declared["layout"]
    if not batch.arrays:
        return
    if dtype is not None and dtype != DALIDataType.NO_TYPE and batch.dtype != dtype:
        raise RuntimeError(
            f"ExternalSource expected data of type {name_of(dtype)} and got: {name_of(batch.dtype)}. The input is `{name}`."
        )
    rank = batch.arrays[0].ndim
    expected = len(layout) if ndim is None and layout else ndim
    if expected is not None and expected >= 0 and rank != expected:
        raise RuntimeError(
            f"ExternalSource expected data with {expected} dimensions and got {rank} dimensions. The input is `{name}`."
        )
    if layout and batch.layout and batch.layout != layout:
        raise RuntimeError(f'Expected data with layout: "{layout}" and got: "{batch.layout}". The input is `{name}`.')
    if layout and not batch.layout:
        batch.layout = layout


def check_same(before, batch):
    """Raises if a batch differs from the one before in type, rank or layout."""
    if before is None or not batch.arrays:
        return
    dtype, rank, layout = before
    if dtype is not None and dtype != batch.dtype:
        raise RuntimeError(
            "Type of the data fed to the external source has changed from the previous iteration. Type in the previous iteration was "
            f"{name_of(dtype)} and the current type is {name_of(batch.dtype)}."
        )
    now = batch.arrays[0].ndim
    if rank is not None and rank != now:
        raise RuntimeError(
            "Number of dimensions of the data fed to the external source has changed from previous iteration. Dimensionality in the "
            f"previous iteration was {rank} and the current is {now}."
        )
    if layout != batch.layout:
        raise RuntimeError(
            "Layout of the data fed to the external source has changed from previous iteration. Layout in the previous iteration was "
            f'"{layout}" and the current is "{batch.layout}".'
        )
