"""Operators that run in the interpreter: which these are, and their calls."""

import functools

import numpy as np

from .._authoring import call_site
from .._native.callbacks import Function
from .._tensors.enums import DALIDataType, to_numpy_type
from .._tensors.feeding import Batch
from .._threads.interrupts import uninterrupted

# Elements of a constant that a file may have.
_LARGE = 1 << 16


def is_python(node):
    """Whether an operator runs in the interpreter."""
    return getattr(node.operator, "run_python", None) is not None or is_large_constant(node)


def is_source(node):
    """Whether it runs in the interpreter and reads nothing of the pipeline: before everything else."""
    return is_reader(node) and not node.tensors or is_large_constant(node)


def is_reader(node):
    """Whether it reads a data set, or takes videos."""
    return getattr(node.operator, "is_source", False)


def is_large_constant(node):
    """Whether a constant is too large for a file: it is fed instead."""
    if node.schema.target != "Constant":
        return False
    values = node.values.get("idata") or node.values.get("fdata")
    return values is not None and len(values.values) > _LARGE


def _constant(node, batch_size):
    """The batch of a constant."""
    values = node.values.get("idata") or node.values.get("fdata")
    dtype = DALIDataType(node.values_of("dtype", int(DALIDataType.FLOAT)))
    array = np.array(values.values).astype(to_numpy_type(dtype)).reshape(node.values_of("shape") or [-1])
    return [Batch([array] * batch_size, dtype, node.values_of("layout", ""))]


def in_operator(node, text):
    """The text of a batch's error that came in an operator, with the user's lines."""
    # A file need not have them.
    where = (
        f"which was used in the pipeline definition with the following traceback:\n\n{call_site.describe(node.origin)}\n\n"
        if node.origin
        else ""
    )
    return (
        f"Critical error in pipeline:\nError in {node.device.upper()} operator `{node.operator.display}`,\n"
        f"{where}encountered:\n\n{text}"
    )


def failed(node, error):
    """The error of a batch for one of an operator that runs in the interpreter."""
    return RuntimeError(in_operator(node, f"{type(error).__name__}: {error}"))


def read(node, batch_size):
    """The next batch of each output of a source."""
    node.fed = {}
    return _called(node, [], batch_size)


@uninterrupted
def stop(readers):
    """Closes what readers have open."""
    for node in readers:
        node.operator.stop(node)


def function_of(node):
    """The node as a function that the library calls, with its inputs and then the tensors that feed arguments."""
    return Function(functools.partial(_call, node), len(node.inputs) + len(node.tensors))


def _call(node, batches, batch_size):
    count = len(node.inputs)
    node.fed = {name: batch.arrays for name, batch in zip(sorted(node.tensors), batches[count:])}
    return _called(node, batches[:count], batch_size)


def _called(node, inputs, batch_size):
    try:
        if is_large_constant(node):
            return _constant(node, batch_size)
        return node.operator.run_python(node, inputs, batch_size)
    except Exception as error:
        raise failed(node, error) from error
