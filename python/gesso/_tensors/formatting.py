"""Tensors and batches as text, laid out as DALI prints them."""

import numpy as np

_EDGE = 2
_MANY_ELEMENTS = 1000


def _with_gap(items, keep):
    return items[:keep] + ["..."] + items[-keep:] if keep is not None and len(items) > 2 * keep + 1 else items


def _assemble(name, lines, indent):
    separator = ",\n" + indent
    return f"{name}(\n{indent}{separator.join(lines)})"


def _facts(value):
    facts = [f"dtype={value.dtype}"]
    if value.layout():
        facts.append(f'layout="{value.layout()}"')
    return [*facts, f'device="{value.device_name}"']


def format_tensor(tensor, show_data=True):
    """One tensor."""
    indent = " " * 4
    lines = [np.array2string(tensor.as_cpu().array, prefix=indent, edgeitems=_EDGE)] if show_data else []
    return _assemble(type(tensor).__name__, [*lines, *_facts(tensor), f"shape={tuple(tensor.shape())}"], indent)


def _format_samples(batch, indent):
    arrays = batch.as_cpu().arrays
    if not arrays:
        return "[]"
    elements = sum(max(array.size, 1) for array in arrays)
    crop = len(arrays) > 2 * _EDGE + 1 and elements > _MANY_ELEMENTS
    rank = arrays[0].ndim
    if crop:
        arrays = [*arrays[:_EDGE], None, *arrays[-_EDGE:]]
    texts = ["..." if array is None else np.array2string(array, prefix=indent, edgeitems=_EDGE) for array in arrays]
    separator = ", " if rank == 0 else ",\n" + "\n" * (rank - 1) + indent
    return f"[{separator.join(texts)}]"


def _format_shapes(shapes, indent):
    crop = len(shapes) > 16 or (len(shapes) > 2 * _EDGE + 1 and len(shapes) * len(shapes[0]) > 100)
    texts = _with_gap([str(shape) for shape in shapes], _EDGE if crop else None)
    line = ", ".join(texts)
    if len(line) > 75:
        line = (", \n" + indent + " " * len("shape=[")).join(texts)
    return f"shape=[{line}]"


def format_batch(batch, show_data=True, indent=""):
    """A batch."""
    inner = indent + " " * 4
    lines = [_format_samples(batch, inner)] if show_data else []
    lines += [*_facts(batch), f"num_samples={len(batch)}", _format_shapes(batch.shape(), inner)]
    return _assemble(type(batch).__name__, lines, inner)
